"""Every rule of schema and parent, broken one by one: one line that names the field."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lib.discovery.dvp import parent_rules, sources
from lib.process import config
from tests.lib.discovery.dvp.samples import CONFIGURATION, KUBECONFIG, UUID

Document = dict[str, Any]

MASTERS = "masterNodeGroup.instanceClass"
MACHINE = f"{MASTERS}.virtualMachine"
LONG = "x" * 55
POLICIES = "AlwaysForced, AlwaysSafe, PreferForced, PreferSafe"
REJECTS = f"must be one of {POLICIES}: the parent rejects Manual and Never"
DISK = {"size": "1Gi", "storageClass": "fast"}

# Path, value (None: removed), field in the message, and a part of the message.
BAD: list[tuple[str, object, str, str]] = [
    ("apiVersion", "v1", "apiVersion", "must be one of deckhouse.io/v1"),
    ("layout", "Simple", "layout", "must be one of Standard"),
    ("sshPublicKey", "ssh", "sshPublicKey", "must be a public SSH key"),
    ("sshPublicKey", None, "sshPublicKey", "not set"),
    ("zones", ["a", "b", "a"], "zones", 'unique items (repeated: "a")'),
    ("typo", 1, "typo", "unknown field: must be one of apiVersion"),
    ("masterNodeGroup.replicas", 0, "masterNodeGroup.replicas", "must be 1 or more"),
    ("masterNodeGroup.zones", ["c"], "masterNodeGroup.zones", "one of the zones a, b"),
    (f"{MASTERS}.etcdDisk", None, f"{MASTERS}.etcdDisk", "not set"),
    (f"{MASTERS}.rootDisk.size", "big", f"{MASTERS}.rootDisk.size", "such as 50Gi"),
    (
        f"{MASTERS}.rootDisk.image.kind",
        "VirtualDisk",
        f"{MASTERS}.rootDisk.image.kind",
        "must be one of ClusterVirtualImage, VirtualImage",
    ),
    (f"{MACHINE}.cpu.cores", 0, f"{MACHINE}.cpu.cores", "must be 1 or more"),
    (
        f"{MACHINE}.cpu.coreFraction",
        "0%",
        f"{MACHINE}.cpu.coreFraction",
        "from 1% to 100%",
    ),
    (f"{MACHINE}.memory.size", "-1Gi", f"{MACHINE}.memory.size", "such as 50Gi"),
    (f"{MACHINE}.bootloader", "GRUB", f"{MACHINE}.bootloader", "must be one of BIOS"),
    (f"{MACHINE}.runPolicy", "Off", f"{MACHINE}.runPolicy", "must be one of AlwaysOn"),
    (
        f"{MACHINE}.liveMigrationPolicy",
        "Manual",
        f"{MACHINE}.liveMigrationPolicy",
        REJECTS,
    ),
    (
        f"{MACHINE}.liveMigrationPolicy",
        "Never",
        f"{MACHINE}.liveMigrationPolicy",
        REJECTS,
    ),
    (f"{MACHINE}.ipAddresses", ["x"], f"{MACHINE}.ipAddresses[0]", "or Auto"),
    (f"{MACHINE}.ipAddresses", ["Auto"] * 4, f"{MACHINE}.ipAddresses", "at most 3"),
    (
        f"{MACHINE}.ipAddresses",
        ["192.0.2.7", "192.0.2.7"],
        f"{MACHINE}.ipAddresses",
        "of one VM alone",
    ),
    (
        f"{MACHINE}.additionalLabels",
        {"virtualization.deckhouse.io/x": "1"},
        f"{MACHINE}.additionalLabels",
        "the parent reserves it",
    ),
    (
        f"{MACHINE}.additionalAnnotations",
        {"a.virtualization.deckhouse.io": "1"},
        f"{MACHINE}.additionalAnnotations",
        "the parent reserves it",
    ),
    (
        f"{MASTERS}.additionalDisks",
        [DISK] * 15,
        f"{MASTERS}.additionalDisks",
        "at most 14 disks",
    ),
    ("nodeGroups.0.name", "Front", "nodeGroups[0].name", "must be a DNS label"),
    ("nodeGroups.0.name", "master", "nodeGroups[0].name", "no other group has"),
    ("nodeGroups.0.name", LONG, "nodeGroups[0].name", "must be at most 50 characters"),
    ("nodeGroups.0.replicas", None, "nodeGroups[0].replicas", "not set"),
    (
        "nodeGroups.0.instanceClass.etcdDisk",
        DISK,
        "nodeGroups[0].instanceClass.etcdDisk",
        "unknown field",
    ),
    ("provider.namespace", "No", "provider.namespace", "namespace of the project"),
    ("provider.networkPolicy", "Open", "provider.networkPolicy", "Isolated, None"),
    ("provider.ingressPorts", [0], "provider.ingressPorts[0]", "must be 1 or more"),
    (
        "provider.additionalVMLabels",
        {"virtualization.deckhouse.io": "1"},
        "provider.additionalVMLabels",
        "the parent reserves it",
    ),
    (
        "provider.kubeconfigDataBase64",
        "s3cr3t!",
        "provider.kubeconfigDataBase64",
        "in base64, on one line",
    ),
    (
        "provider.kubeconfigDataBase64",
        "czNjcjN0",
        "provider.kubeconfigDataBase64",
        "must be a kubeconfig in YAML",
    ),
]


def with_field(document: Document, path: str, value: object) -> Document:
    changed = copy.deepcopy(document)
    *parents, last = path.split(".")
    place: Any = changed
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


def problems(document: Document) -> list[str]:
    cluster = {"kind": "ClusterConfiguration", "cloud": {"prefix": "ha"}}
    with pytest.raises(config.ConfigError) as caught:
        sources.read([document, cluster], UUID)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(("path", "value", "field", "part"), BAD)
def test_a_broken_rule_is_one_line(
    path: str, value: object, field: str, part: str
) -> None:
    """Field, value and what is valid; never the kubeconfig."""
    (line,) = problems(with_field(CONFIGURATION, path, value))
    print(line)
    assert line.startswith(f"DVPClusterConfiguration {field}: ")
    assert part in line
    assert "s3cr3t" not in line


def test_problems_of_all_fields_are_reported_together() -> None:
    """Rules of the parent as well, not the first one alone."""
    document = with_field(CONFIGURATION, f"{MACHINE}.liveMigrationPolicy", "Never")
    document = with_field(document, "masterNodeGroup.zones", ["c"])
    document = with_field(document, "nodeGroups.0.name", "Front")
    assert len(problems(document)) == 3


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"current-context": "x"}, "current-context: names no context of it"),
        ({"contexts": None}, "current-context: names no context of it"),
        ({"users": []}, "user: must be a user with a token"),
        ({"clusters": []}, "server: must be the https URL"),
        (
            {
                "clusters": [
                    {"name": "parent", "cluster": {"server": "http://parent.example"}}
                ]
            },
            "server: must be the https URL",
        ),
        (
            {"users": [{"name": "child", "user": {"tokenFile": "/token"}}]},
            "tokenFile: must not be set",
        ),
        (
            {"users": [{"name": "child", "user": {"exec": {"command": "x"}}}]},
            "exec: must not be set",
        ),
    ],
)
def test_a_kubeconfig_must_be_whole(
    with_kubeconfig: Callable[..., Document], changes: Document, part: str
) -> None:
    """A pod has neither the files nor the programs of its author."""
    (line,) = problems(with_kubeconfig(**changes))
    assert part in line
    assert KUBECONFIG["users"][0]["user"]["token"] not in line


def test_an_instance_class_has_the_same_rules() -> None:
    """Of a group that Cluster API creates."""
    spec = copy.deepcopy(CONFIGURATION["masterNodeGroup"]["instanceClass"])
    spec["virtualMachine"]["liveMigrationPolicy"] = "Never"
    (problem,) = parent_rules.of_class("", spec)
    assert str(problem).startswith("virtualMachine.liveMigrationPolicy: unsupported")
