"""OpenStackClusterConfiguration is judged by its schema; messages name the field."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lib.discovery.openstack import documents, schemas
from lib.process import config

LAYOUTS = ("Standard", "StandardWithNoRouter", "Simple", "SimpleWithInternalNetwork")
Configuration = Callable[[str], dict[str, Any]]
NODE_CLASS = {"flavorName": "m1", "imageName": "ubuntu", "mainNetwork": "inner"}
NODES = {"name": "front", "replicas": 1, "instanceClass": NODE_CLASS}
DISK = {**NODE_CLASS, "rootDiskSize": 20}
MISSING = object()


def told(document: object) -> list[str]:
    judge = schemas.Schema.CLUSTER_CONFIGURATION
    return [str(problem) for problem in schemas.problems(judge, document)]


def put(document: dict[str, Any], path: str, value: object) -> None:
    """Set a field, or remove it."""
    *parents, last = path.split(".")
    for name in parents:
        document = document.setdefault(name, {})
    if value is MISSING:
        document.pop(last, None)
    else:
        document[last] = copy.deepcopy(value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_smallest_configuration_is_accepted(
    configuration: Configuration, layout: str
) -> None:
    """What is required is enough, in each layout."""
    assert told(configuration(layout)) == []


GOOD: list[tuple[str, object]] = [
    ("apiVersion", "deckhouse.io/v1alpha1"),
    ("sshAllowList", ["192.0.2.0/24", "2001:db8::/32"]),
    ("tags", {"a": "b"}),
    ("zones", ["a"]),
    ("provider.tenantName", "other"),
    ("masterNodeGroup.serverGroup", {"policy": "AntiAffinity"}),
    (
        "masterNodeGroup.serverGroup",
        {"policy": "ManuallyManaged", "manuallyManaged": {"id": "1"}},
    ),
    ("masterNodeGroup.instanceClass.etcdDiskSizeGb", 20),
    ("masterNodeGroup.instanceClass.additionalTags", {"a": "b"}),
    ("nodeGroups", [NODES]),
    (
        "nodeGroups",
        [{**NODES, "instanceClass": DISK, "volumeTypeMap": {"a": "b"}, "zones": ["a"]}],
    ),
    (
        "nodeGroups",
        [{**NODES, "nodeTemplate": {"taints": [{"effect": "NoExecute", "key": "a"}]}}],
    ),
    ("standard.internalNetworkSecurity", False),
    (
        "standard.bastion",
        {"zone": "a", "instanceClass": {"flavorName": "a", "imageName": "b"}},
    ),
]


@pytest.mark.parametrize(("path", "value"), GOOD)
def test_what_may_be_set_is_accepted(
    configuration: Configuration, path: str, value: object
) -> None:
    """Each optional field, in the layout Standard."""
    document = configuration("Standard")
    put(document, path, value)
    assert told(document) == []


# Layout, field to set (or remove), value, how the one problem begins.
BAD: list[tuple[str, str, object, str]] = [
    (
        "Standard",
        "apiVersion",
        "v1",
        'apiVersion: unsupported value "v1": must be one of deckhouse.io/v1,',
    ),
    (
        "Standard",
        "kind",
        "X",
        'kind: invalid value "X": must be OpenStackClusterConfiguration',
    ),
    (
        "Standard",
        "layout",
        "Mixed",
        'layout: unsupported value "Mixed": must be one of Standard, Standard',
    ),
    (
        "Standard",
        "layout",
        MISSING,
        "layout: not set",
    ),
    (
        "Standard",
        "sshPublicKey",
        "ssh-rsa x",
        'sshPublicKey: invalid value "ssh-rsa x": must be a publ',
    ),
    (
        "Standard",
        "sshAllowList",
        ["192.0.2.1"],
        'sshAllowList[0]: invalid value "192.0.2.1": must be a',
    ),
    (
        "Standard",
        "tags",
        {"a": 1},
        'tags.a: invalid value "1": must be a string (this is an integer)',
    ),
    (
        "Standard",
        "zones",
        [],
        "zones: invalid value: must be a list of at least 1 item",
    ),
    (
        "Standard",
        "zones",
        ["a", "a"],
        "zones: invalid value: must be a list of unique items",
    ),
    (
        "Standard",
        "colour",
        "red",
        "colour: unknown field: must be one of ",
    ),
    (
        "Standard",
        "provider",
        "s3cr3t",
        "provider: invalid value [redacted]: must be an object",
    ),
    (
        "Standard",
        "provider.password",
        42,
        "provider.password: invalid value [redacted]: must be a str",
    ),
    (
        "Standard",
        "provider.password",
        "",
        "provider.password: invalid value [redacted]: must be a text",
    ),
    (
        "Standard",
        "provider.region",
        MISSING,
        "provider.region: not set",
    ),
    (
        "Standard",
        "provider.authURL",
        "keystone",
        'provider.authURL: invalid value "keystone": must',
    ),
    (
        "Standard",
        "provider.caCert",
        "PEM",
        'provider.caCert: invalid value "PEM": must be certificates',
    ),
    (
        "Standard",
        "provider.tenantID",
        "7",
        "provider: must set exactly one of tenantName,",
    ),
    (
        "Standard",
        "provider.tenantName",
        MISSING,
        "provider: must set exactly one of tenan",
    ),
    (
        "Standard",
        "provider.token",
        "s3cr3t",
        "provider.token: unknown field: must be one of ",
    ),
    (
        "Standard",
        "masterNodeGroup.replicas",
        0,
        'masterNodeGroup.replicas: invalid value "0": must',
    ),
    ("Standard", "masterNodeGroup.volumeTypeMap", {}, "masterNodeGroup.volumeTypeMap:"),
    (
        "Standard",
        "masterNodeGroup.volumeTypeMap",
        {"a": ""},
        (
            'masterNodeGroup.volumeTypeMap.a: invalid value "": must be a text of at'
            " least 1 character"
        ),
    ),
    (
        "Standard",
        "masterNodeGroup.instanceClass.flavorName",
        MISSING,
        ("masterNodeGroup.instanceClass.flavorName: not set"),
    ),
    (
        "Standard",
        "masterNodeGroup.serverGroup",
        {"policy": "ManuallyManaged"},
        (
            "masterNodeGroup.serverGroup.manuallyManaged: not set: must be an"
            " object with the id of"
        ),
    ),
    (
        "Standard",
        "masterNodeGroup.serverGroup",
        {"policy": "AntiAffinity", "manuallyManaged": {"id": "1"}},
        ("masterNodeGroup.serverGroup.manuallyManaged: must not be set unless policy"),
    ),
    (
        "Standard",
        "nodeGroups",
        [{**NODES, "instanceClass": DISK}],
        (
            "nodeGroups[0].volumeTypeMap: not set: must be an object of zones and"
            " volume types, since"
        ),
    ),
    (
        "Standard",
        "nodeGroups",
        [{**NODES, "volumeTypeMap": {"a": "b"}}],
        (
            "nodeGroups[0].volumeTypeMap: must not be set unless"
            " instanceClass.rootDisk"
        ),
    ),
    (
        "Standard",
        "nodeGroups",
        [{**NODES, "nodeTemplate": {"taints": [{"effect": "Never"}]}}],
        (
            'nodeGroups[0].nodeTemplate.taints[0].effect: unsupported value "Never":'
            " must be one of NoSchedule,"
        ),
    ),
    (
        "Standard",
        "standard.internalNetworkCIDR",
        "192.168.199.1/24",
        (
            'standard.internalNetworkCIDR: invalid value "192.168.199.1/24": must be an'
            " IPv4 network withou"
        ),
    ),
    (
        "Standard",
        "standard.internalNetworkCIDR",
        "192.168.199.0/33",
        (
            'standard.internalNetworkCIDR: invalid value "192.168.199.0/33": must be an'
            " IPv4 network"
        ),
    ),
    (
        "Standard",
        "standard.internalNetworkDNSServers",
        ["dns"],
        (
            'standard.internalNetworkDNSServers[0]: invalid value "dns": must be an'
            " IPv4 address"
        ),
    ),
    (
        "Standard",
        "standard",
        MISSING,
        "standard: not set: must be an object with the settings of",
    ),
    (
        "Standard",
        "simple",
        {"externalNetworkName": "a"},
        "simple: must not be set with layout Standard",
    ),
    (
        "Standard",
        "standard.bastion",
        {"size": 1},
        "standard.bastion.size: unknown field",
    ),
    (
        "StandardWithNoRouter",
        "standardWithNoRouter.externalNetworkDHCP",
        "no",
        (
            'standardWithNoRouter.externalNetworkDHCP: invalid value "no": must be true'
            " or false"
        ),
    ),
    (
        "Simple",
        "simple.podNetworkMode",
        "DirectRoutingWithPortSecurityEnabled",
        (
            "simple.podNetworkMode: unsupported value"
            ' "DirectRoutingWithPortSecurityEnabled": must be one of VX'
        ),
    ),
    (
        "SimpleWithInternalNetwork",
        "simpleWithInternalNetwork.internalSubnetName",
        MISSING,
        ("simpleWithInternalNetwork.internalSubnetName: not set"),
    ),
]


@pytest.mark.parametrize(("layout", "path", "value", "words"), BAD)
def test_what_is_wrong_is_named(
    configuration: Configuration, layout: str, path: str, value: object, words: str
) -> None:
    """One mistake gives one problem: the field, its value, what would be right."""
    document = configuration(layout)
    put(document, path, value)
    (message,) = told(document)
    assert message.startswith(words), message
    assert "s3cr3t" not in message


def test_each_field_at_the_top_has_a_row() -> None:
    """A field that joins the schema needs a row above."""
    document = schemas.validator(schemas.Schema.CLUSTER_CONFIGURATION).schema
    assert isinstance(document, dict)
    rows = {row[1].split(".")[0] for row in BAD}
    assert set(document["properties"]) <= rows


def test_all_problems_are_told_at_once(configuration: Configuration) -> None:
    """Whoever has made five mistakes learns of five."""
    document = configuration("Simple")
    for _, path, value, _ in BAD[:6]:
        put(document, path, value)
    with pytest.raises(config.ConfigError) as caught:
        documents.cluster_configuration(document)
    assert len(caught.value.problems) >= 5


DHCP = [
    ("Standard", None, True),
    ("StandardWithNoRouter", None, True),
    ("StandardWithNoRouter", False, False),
    ("Simple", False, False),
    ("Simple", True, True),
    ("SimpleWithInternalNetwork", None, True),
    ("SimpleWithInternalNetwork", False, False),
]


@pytest.mark.parametrize(("layout", "value", "expected"), DHCP)
def test_dhcp_is_that_of_the_layout(
    configuration: Configuration, layout: str, value: bool | None, expected: bool
) -> None:
    """True unless the layout has the switch and it is off."""
    document = configuration(layout)
    block = layout[0].lower() + layout[1:]
    if value is not None:
        put(document, f"{block}.externalNetworkDHCP", value)
    observed = documents.cluster_configuration(document)
    assert observed.external_network_dhcp is expected
    assert observed.connection.password == "s3cr3t"
    assert "s3cr3t" not in repr(observed)
