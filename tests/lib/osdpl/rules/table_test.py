"""Each rule with an invalid and a valid example; no example violates another rule."""

import re

import pytest

from lib.osdpl.rules import cron, table
from tests.lib.osdpl.rules.examples import EXAMPLES, Example, Tree, change, theme


def violated(tree: Tree) -> dict[str, str]:
    return {
        rule.name: str(observed) for rule, observed in table.violations(change(tree))
    }


def test_each_rule_has_an_example() -> None:
    names = [rule.name for rule in table.RULES]
    assert len(set(names)) == len(names)
    assert sorted({item.rule for item in EXAMPLES}) == sorted(names)
    assert len({item.rule for item in EXAMPLES}) == len(EXAMPLES)
    print(f"{len(names)} rules")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_a_rule(example: Example) -> None:
    """The invalid example violates this rule only, the valid one none."""
    observed = violated(example.invalid)
    assert set(observed) == {example.rule}
    (message,) = observed.values()
    print(f"{example.rule} | {message}")
    assert re.search(": (must|not) |: not ", message)
    assert "PRIVATE KEY" not in message
    assert violated(example.valid) == {}


def test_a_rule_of_a_service_that_is_not_desired_is_no_rule() -> None:
    spec = theme("url")
    spec["features"]["services"] = []
    assert violated(spec) == {}


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "*/5 0-23/2 1,15 jan-dec MON", "@hourly", "0 0 ? * 7", "5 4 * * sun"],
)
def test_schedules(text: str) -> None:
    assert cron.is_valid(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *"),
        *("* * * 13 *", "* * * * 8", "*/0 * * * *", "5-1 * * * *", "a * * * *"),
        *("1,, * * * *", "@never", "-1 * * * *", "1- * * * *", "* * * jan 1-"),
    ],
)
def test_no_schedules(text: str) -> None:
    assert not cron.is_valid(text)
