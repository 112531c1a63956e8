"""Every rule of the simulated engine has a scenario, and every behaviour a rule."""

import pathlib
import re

import pytest

from lib.lab import zvirt
from lib.lab.zvirt.transitions import RULES
from tests.lib.lab.zvirt import scenarios_of_machines
from tests.lib.lab.zvirt.scenarios import SCENARIOS, Scenario
from tests.lib.lab.zvirt.stage import Stage

del scenarios_of_machines  # imported to register its scenarios


def _sentence(scenario: Scenario) -> str:
    return scenario.run.__name__.replace("_", " ")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_sentence)
def test_a_scenario_proves_its_rules(scenario: Scenario) -> None:
    stage = Stage(*scenario.lines)
    scenario.run(stage)
    assert [rule for rule in scenario.rules if not stage.engine.exercised[rule]] == []


def test_every_rule_has_a_scenario() -> None:
    proved = {rule for scenario in SCENARIOS for rule in scenario.rules}
    assert proved == set(RULES)


def test_every_rule_is_applied_by_code_and_every_name_in_code_is_a_rule() -> None:
    # Whoever applies a rule names it: Engine.rule, refuse and later raise KeyError for
    # another name, and a rule without a name in the code would be dead text.
    folder = pathlib.Path(zvirt.__file__).parent
    texts = [
        file.read_text()
        for file in folder.glob("*.py")
        if file.name != "transitions.py"
    ]
    named = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', "\n".join(texts)))
    assert set(RULES) - named == set()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_names_its_section(rule: str) -> None:
    row = RULES[rule]
    assert re.match(r"1\.[1-8] ", row.section)
    assert row.behaviour
    assert (row.status >= 400) == bool(row.status)
