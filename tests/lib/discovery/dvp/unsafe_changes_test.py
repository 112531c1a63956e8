"""A change that destroys VMs or disks is named: field, from, to, effect."""

import copy
from typing import Any

import pytest

from lib.discovery.dvp import unsafe_changes

MASTERS = "masterNodeGroup.instanceClass"
FRONT = "nodeGroups[front]"

# Path, new value, and the beginning of the line; None as a value: removed.
UNSAFE: list[tuple[str, object, str]] = [
    ("provider.namespace", "other", "provider.namespace: from 'fleet' to 'other': "),
    ("sshPublicKey", "ssh-rsa BBBB", "sshPublicKey: from 'ssh-ed25519"),
    ("zones", ["a"], "zones: from with 'b' to without it: "),
    ("masterNodeGroup.replicas", 1, "masterNodeGroup.replicas: from 3 to 1: "),
    (f"{MASTERS}.rootDisk.image.name", "debian", f"{MASTERS}.rootDisk.image: from {{"),
    (
        f"{MASTERS}.virtualMachine.cpu.cores",
        8,
        f"{MASTERS}.virtualMachine.cpu: from {{",
    ),
    (
        f"{MASTERS}.virtualMachine.memory.size",
        "16Gi",
        f"{MASTERS}.virtualMachine.memory: from {{",
    ),
    (
        f"{MASTERS}.virtualMachine.nodeSelector",
        {"a": "b"},
        f"{MASTERS}.virtualMachine.nodeSelector: from nothing to {{",
    ),
    (
        f"{MASTERS}.virtualMachine.tolerations",
        [{"operator": "Exists"}],
        f"{MASTERS}.virtualMachine.tolerations: from nothing to [",
    ),
    (
        f"{MASTERS}.virtualMachine.priorityClassName",
        "high",
        f"{MASTERS}.virtualMachine.priorityClassName: from nothing to 'high'",
    ),
    (
        f"{MASTERS}.virtualMachine.ipAddresses",
        ["Auto"],
        f"{MASTERS}.virtualMachine.ipAddresses: from ['Auto', '192.0.2.7'] to ['Auto']",
    ),
    ("nodeGroups", [], f"{FRONT}: from a group of Nodes to nothing: "),
    ("nodeGroups.0.replicas", 1, f"{FRONT}.replicas: from 2 to 1: "),
    ("nodeGroups.0.zones", ["a"], f"{FRONT}.zones: from with 'b' to without it: "),
    (
        "nodeGroups.0.instanceClass.rootDisk.image.name",
        "debian",
        f"{FRONT}.instanceClass.rootDisk.image: from {{",
    ),
    (
        "nodeGroups.0.instanceClass.additionalDisks",
        None,
        f"{FRONT}.instanceClass.additionalDisks: from 1 disks to 0 disks: ",
    ),
]
SAFE: list[tuple[str, object]] = [
    ("zones", ["c", "b", "a"]),
    ("masterNodeGroup.replicas", 5),
    ("provider.kubeconfigDataBase64", "AAAA"),
    ("provider.networkPolicy", "None"),
    (f"{MASTERS}.rootDisk.size", "60Gi"),
    (f"{MASTERS}.virtualMachine.liveMigrationPolicy", "AlwaysSafe"),
    (f"{MASTERS}.virtualMachine.runPolicy", "AlwaysOn"),
]


def with_field(document: Any, path: str, value: object) -> dict[str, Any]:
    changed: dict[str, Any] = copy.deepcopy(document)
    *parents, last = path.split(".")
    place: Any = changed
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.fixture()
def before(configuration: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with an additional disk."""
    disks = [{"size": "10Gi", "storageClass": "fast"}]
    configuration["nodeGroups"][0]["instanceClass"]["additionalDisks"] = disks
    return configuration


@pytest.mark.parametrize(("path", "value", "beginning"), UNSAFE)
def test_an_unsafe_change_is_named(
    before: dict[str, Any], path: str, value: object, beginning: str
) -> None:
    """One change, one line, and the effect at its end."""
    (change,) = unsafe_changes.find(before, with_field(before, path, value))
    print(change)
    assert str(change).startswith(beginning)
    assert "would be" in change.effect
    assert unsafe_changes.find(before, before) == ()


@pytest.mark.parametrize(("path", "value"), SAFE)
def test_a_safe_change_is_not(before: dict[str, Any], path: str, value: object) -> None:
    """No false alarm, and no kubeconfig in one."""
    assert unsafe_changes.find(before, with_field(before, path, value)) == ()


def test_a_group_is_known_by_its_name(before: dict[str, Any]) -> None:
    """A group in front of it moves its index alone; new zones restrict all zones."""
    after = copy.deepcopy(before)
    group = copy.deepcopy(after["nodeGroups"][0])
    after["nodeGroups"].insert(0, {**group, "name": "new"})
    assert unsafe_changes.find(before, after) == ()
    del before["zones"]
    (change,) = unsafe_changes.find(before, after)
    assert str(change).startswith("zones: from all zones to a, b: ")
