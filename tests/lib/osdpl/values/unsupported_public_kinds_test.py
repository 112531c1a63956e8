"""Kinds of OpenStackDeployments that public repositories hold, written anew.

Each row is accepted, or refused or reported with the intended message.
"""

import pathlib
from typing import Any

import pytest
import yaml

from lib.osdpl.api import spec
from lib.osdpl.reconcile import decide, snapshot
from lib.osdpl.values import ignored, layers, render, required_secrets
from lib.process import config
from tests.lib.osdpl import samples

ROWS: dict[str, Any] = yaml.safe_load(
    (pathlib.Path(__file__).parent / "public_kinds.yaml").read_text()
)


@pytest.mark.parametrize("name", ROWS)
def test_a_public_kind_is_accepted_or_refused_by_name(name: str) -> None:
    row = ROWS[name]
    messages = judged(yaml.safe_load(row["spec"]))
    assert len(messages) == len(row["expected"]), messages
    for message, beginning in zip(messages, row["expected"], strict=True):
        assert message.startswith(beginning)


def judged(changes: dict[str, Any]) -> list[str]:
    """Return the problems of a spec, and its fields without effect."""
    document = samples.document(**changes)
    # As written, and not merged into those of the sample.
    features = changes.get("features", {})
    document["spec"]["features"]["services"] = features.get("services", [])
    try:
        deployment = spec.parse(document)
        desired = snapshot.Desired(deployment, spec=layers.effective(deployment.spec))
    except config.ConfigError as error:
        return [str(problem) for problem in error.problems]
    messages = [str(x) for x in decide.violations(document, desired, None, {})]
    services = layers.services(desired.spec)
    try:
        inputs = render.Inputs(
            deployment=deployment, credentials=required_secrets.placeholders(services)
        )
        refusals = render.render(inputs).refusals
    except config.ConfigError as error:
        return [*messages, *(str(problem) for problem in error.problems)]
    messages += [f"{x.service}: {p}" for x in refusals for p in x.problems]
    fields = ignored.fields(deployment.spec, services)
    return [*messages, *(f"without effect: {text}" for text in fields)]
