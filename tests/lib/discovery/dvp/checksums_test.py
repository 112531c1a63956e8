"""A checksum changes exactly when machines must be recreated."""

import copy
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.discovery.dvp import checksums

BARE: dict[str, Any] = {
    "virtualMachine": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}},
    "rootDisk": {
        "size": "50Gi",
        "image": {"kind": "ClusterVirtualImage", "name": "ubuntu"},
    },
}
# Field, another value, and whether it counts for the older and the newer formula.
FIELDS: list[tuple[str, object, bool, bool]] = [
    ("virtualMachine.virtualMachineClassName", "big", True, True),
    ("virtualMachine.bootloader", "BIOS", True, True),
    ("virtualMachine.cpu.cores", 8, True, True),
    ("virtualMachine.memory.size", "16Gi", True, True),
    ("rootDisk.storageClass", "fast", True, True),
    ("rootDisk.image.kind", "VirtualImage", True, True),
    ("rootDisk.image.name", "debian", True, True),
    ("additionalDisks", [{"size": "1Gi", "storageClass": "fast"}], True, True),
    # The two mistakes of the older formula.
    ("virtualMachine.cpu.coreFraction", "50%", False, True),
    ("rootDisk.size", "60Gi", False, True),
    # Fields that no machine of Cluster API has.
    ("etcdDisk", {"size": "15Gi", "storageClass": "fast"}, False, False),
    ("virtualMachine.runPolicy", "AlwaysOn", False, False),
    ("virtualMachine.liveMigrationPolicy", "AlwaysSafe", False, False),
    ("virtualMachine.nodeSelector", {"a": "b"}, False, False),
    ("virtualMachine.tolerations", [{"operator": "Exists"}], False, False),
    ("virtualMachine.priorityClassName", "high", False, False),
    ("virtualMachine.additionalLabels", {"a": "b"}, False, False),
]


def with_field(spec: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(spec)
    *parents, last = path.split(".")
    place = changed
    for name in parents:
        place = place[name]
    place[last] = value
    return changed


@pytest.mark.parametrize(("field", "value", "old", "new"), FIELDS)
def test_which_fields_count(field: str, value: object, old: bool, new: bool) -> None:
    """Each field of a class in both formulas, and by name."""
    spec = with_field(BARE, field, value)
    before, after = map(checksums.of_old_generation, (BARE, spec))
    assert (before != after) == old
    before, after = map(checksums.by_rollout_fields, (BARE, spec))
    assert (before != after) == new
    assert checksums.changed(BARE, spec) == ([field] if new else [])


def test_each_rollout_field_has_a_row() -> None:
    """A field that joins the contract needs a decision here."""
    rows = {row[0] for row in FIELDS if row[3]}
    assert rows == set(checksums.ROLLOUT_FIELDS)


def test_missing_fields_and_numbers() -> None:
    """Null is missing and 4.0 is 4 in the newer formula; null is missing in both."""
    null = with_field(BARE, "rootDisk.storageClass", None)
    number = with_field(BARE, "virtualMachine.cpu.cores", 4.0)
    scalar = {**BARE, "rootDisk": "50Gi"}
    assert checksums.changed(BARE, null) == []
    assert checksums.changed(BARE, number) == []
    assert checksums.changed(scalar, {**scalar}) == []
    assert checksums.by_rollout_fields(BARE) == checksums.by_rollout_fields(null)
    assert checksums.by_rollout_fields(BARE) == checksums.by_rollout_fields(number)
    assert checksums.of_old_generation(BARE) == checksums.of_old_generation(null)


def test_a_manual_rollout_counts() -> None:
    """Its ID is part of the newer formula; the older one does not have it."""
    first, second = (checksums.by_rollout_fields(BARE, text) for text in ("1", "2"))
    assert len({first, second, checksums.by_rollout_fields(BARE)}) == 3


_VALUES = strategies.none() | strategies.integers(0, 3) | strategies.sampled_from("ab")
_SPECS = strategies.dictionaries(
    strategies.sampled_from(checksums.ROLLOUT_FIELDS[:-1]), _VALUES
)


def spec_of(fields: dict[str, object]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for path, value in fields.items():
        *parents, last = path.split(".")
        place = spec
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    return spec


@hypothesis.settings(deadline=None)
@hypothesis.given(_SPECS, _SPECS)
def test_the_checksum_is_the_comparison(
    before: dict[str, object], after: dict[str, object]
) -> None:
    """Two classes have one checksum exactly if no field of the contract changed."""
    old, new = spec_of(before), spec_of(after)
    is_same = checksums.by_rollout_fields(old) == checksums.by_rollout_fields(new)
    assert is_same == (not checksums.changed(old, new))
