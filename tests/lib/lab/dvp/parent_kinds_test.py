"""The lab's definitions of a parent are the platform's, by facts kept in the tree.

The facts are those of deckhouse/virtualization, crds/ at commit cf3a9e6c; see
`tests/harness/dvp/definition_facts.py` for newer ones.
"""

import copy

from lib.kube.fake import schemas
from lib.lab.dvp import parent_kinds
from tests.harness.dvp import definition_facts, parent_api


def test_the_lab_lacks_nothing() -> None:
    """Prints what it lacks (-), and what it has besides (+)."""
    kept = definition_facts.KEPT.read_text().splitlines()
    rows = definition_facts.differences(kept)
    print("\n".join(rows) or f"{len(kept)} facts, no difference")
    assert rows == []
    assert len(kept) > 800


def test_a_fact_that_is_missing_is_printed() -> None:
    """A field, a limit, a required field, a version."""
    definition = copy.deepcopy(parent_kinds.definitions()[0])
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = parent_kinds.field(schema, "spec")
    del spec["properties"]["runPolicy"]
    del parent_kinds.field(schema, "spec.cpu.cores")["minimum"]
    spec["required"].remove("cpu")
    definition["spec"]["versions"][0]["served"] = False
    whole = [definition, *parent_kinds.definitions()[1:]]
    kept = definition_facts.KEPT.read_text().splitlines()
    missing = set(kept) - set(definition_facts.facts(whole))
    print("\n".join(sorted(missing)))
    assert len(missing) == 4


def problems(plural: str, **parts: object) -> list[str]:
    group = "virtualization.deckhouse.io"
    schema = parent_api.SCHEMAS[group, plural]["v1alpha2"]
    return list(schemas.problems(schema, {"metadata": {}, **parts}))


SPEC: dict[str, object] = {
    "virtualMachineClassName": "generic",
    "cpu": {"cores": 2},
    "memory": {"size": "+4Gi"},
    "blockDeviceRefs": [{"kind": "VirtualDisk", "name": "d"}],
}


def test_what_the_platform_refuses_or_drops_is_refused() -> None:
    """One row for each kind of a mistake; a valid object has none."""
    assert problems("virtualmachines", spec=SPEC) == []
    rows: dict[str, tuple[dict[str, object], str]] = {
        "memory as a number": ({"memory": {"size": 1}}, "must be string"),
        "an empty priority": ({"priorityClassName": ""}, "minLength"),
        "a toleration with a misspelled field": (
            {"tolerations": [{"keys": "a"}]},
            ".spec.tolerations[0].keys: unknown field",
        ),
        "a misspelled affinity": ({"affinity": {"nodes": {}}}, "unknown field"),
        "a provisioning of two kinds": (
            {"provisioning": {"type": "UserData", "userData": "x", "userDataRef": {}}},
            "oneOf",
        ),
        "no cores": ({"cpu": {}}, ".spec.cpu.cores: is required"),
        "an unknown policy": ({"runPolicy": "Never"}, "enum"),
        "no device": ({"blockDeviceRefs": []}, "minItems"),
        "null": ({"nodeSelector": None}, "must not be null"),
    }
    for title, (change, expected) in rows.items():
        mistakes = problems("virtualmachines", spec={**SPEC, **change})
        print(title, mistakes)
        assert len(mistakes) >= 1
        assert expected in "; ".join(mistakes)


def test_a_condition_is_whole() -> None:
    """A condition without reason, message or time cannot exist."""
    bare = {"type": "Ready", "status": "True"}
    rows = problems("virtualdisks", spec={}, status={"conditions": [bare]})
    assert len(rows) == 3
