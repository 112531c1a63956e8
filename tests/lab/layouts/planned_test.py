"""What roots would create, for inputs of each kind: plans without a cloud.

The names of objects are those of the reference; docs/layouts.md lists them.
"""

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lib.lab.layouts import tofu
from lib.layouts.openstack import layout_objects
from tests.harness.layouts import inputs, mocks

POD_CIDR = "10.111.0.0/16"
TAG = f"cluster-uuid={inputs.UUID}"
ANTI_AFFINITY = {"serverGroup": {"policy": "AntiAffinity"}}
MANUAL = {"serverGroup": {"policy": "ManuallyManaged", "manuallyManaged": {"id": "g"}}}
INSTANCE, VOLUME = "openstack_compute_instance_v2", "openstack_blockstorage_volume_v3"
PORT, GROUP = "openstack_networking_port_v2", "openstack_networking_secgroup_v2"
RULE, SUBNET = "openstack_networking_secgroup_rule_v2", "openstack_networking_subnet_v2"
FLOATING_IP = "openstack_networking_floatingip_v2"
SERVER_GROUP = "openstack_compute_servergroup_v2"
EVERY, OWN_NETWORK = tuple(inputs.LAYOUTS), ("Standard", "StandardWithNoRouter")
# The default tier plans what all layouts share for the first one only.
IS_LONG = os.environ.get("MOORING_TIER") == "long"
WITH_PORTS = (*OWN_NETWORK, "SimpleWithInternalNetwork")
VOLUME_TYPES = {"volumeTypeMap": {"az2": "slow"}}
WITH_DHCP = ("StandardWithNoRouter", "Simple", "SimpleWithInternalNetwork")

Check = Callable[[mocks.Planned], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One input of a step for some layouts, and what must be planned.

    changes: of the document, see `inputs.document`. expected: what `check` returns.
    """

    step: str
    changes: Mapping[str, Any]
    check: Check
    expected: object
    layouts: tuple[str, ...] = EVERY
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def names(kind: str) -> Check:
    """Return a check that lists the names of the planned objects of a type."""
    return lambda planned: [values["name"] for values in planned.of_type(kind)]


def fields(kind: str, *keys: str) -> Check:
    """Return a check that lists some fields of the planned objects of a type."""

    def check(planned: mocks.Planned) -> object:
        values = planned.of_type(kind)
        return [tuple(value[name] for name in keys) for value in values]

    return check


def pairs(planned: mocks.Planned) -> object:
    """List the address pairs of each port."""
    return [
        sorted(pair["ip_address"] for pair in port["allowed_address_pairs"])
        for port in planned.of_type(PORT)
    ]


def count(kind: str) -> Check:
    """Return a check that counts the planned objects of a type."""
    return lambda planned: len(planned.of_type(kind))


def hints(planned: mocks.Planned) -> object:
    """List the server groups that servers ask for."""
    (server,) = planned.of_type(INSTANCE)
    return [hint["group"] for hint in server["scheduler_hints"]]


def ssh(planned: mocks.Planned) -> object:
    """List the networks that may use SSH."""
    rules = planned.of_type(RULE)
    return sorted(
        rule["remote_ip_prefix"] for rule in rules if rule["port_range_max"] == 22
    )


def discovered(*keys: str) -> Check:
    """Return a check that reads fields of the discovery data."""

    def check(planned: mocks.Planned) -> object:
        data = planned.outputs["cloud_discovery_data"]
        return tuple(data[name] for name in keys)

    return check


def untagged(planned: mocks.Planned) -> object:
    """List the objects that lack the ownership tag though they can carry it."""
    return [
        address
        for address, values in planned.created.items()
        if (INSTANCE in address or VOLUME in address)
        and values["metadata"].get("cluster-uuid") != inputs.UUID
        or INSTANCE not in address
        and "tags" in values
        and TAG not in values["tags"]
    ]


FIRST, THIRD = {"nodeIndex": "0"}, {"nodeIndex": "2"}
FRONT = {"nodeIndex": "0", "nodeGroupName": "front"}
ROOT_DISK = {"instance_class": {"rootDiskSize": 20}}
ROWS = {
    "the key pair has the prefix as its name": Row(
        inputs.BASE, {}, names("openstack_compute_keypair_v2"), ["prod"]
    ),
    "without a server group none is created": Row(
        inputs.BASE, {}, count(SERVER_GROUP), 0
    ),
    "anti-affinity creates a server group": Row(
        inputs.BASE,
        {"masters": ANTI_AFFINITY},
        fields(SERVER_GROUP, "name", "policies"),
        [("prod", ["anti-affinity"])],
    ),
    "soft anti-affinity is a wish": Row(
        inputs.BASE,
        {"masters": ANTI_AFFINITY},
        fields(SERVER_GROUP, "policies"),
        [(["soft-anti-affinity"],)],
        extra={"softAntiAffinity": True},
    ),
    "a given server group is not created": Row(
        inputs.BASE, {"masters": MANUAL}, count(SERVER_GROUP), 0
    ),
    "zones are those of the configuration": Row(
        inputs.BASE,
        {"top": {"zones": ["az3", "az1"]}},
        discovered("zones"),
        (["az1", "az3"],),
    ),
    "everything of the base has the ownership tag": Row(
        inputs.BASE, {"top": {"tags": {"team": "a"}}}, untagged, []
    ),
    "everything of a master has the ownership tag": Row(
        inputs.MASTER,
        {**ROOT_DISK, "top": {"tags": {"team": "a"}}},
        untagged,
        [],
        extra=FIRST,
    ),
    "everything of a node has the ownership tag": Row(
        inputs.STATIC,
        {
            "groups": [
                {
                    **inputs.group(rootDiskSize=9, floatingIPPools=["public"]),
                    **VOLUME_TYPES,
                }
            ]
        },
        untagged,
        [],
        extra=FRONT,
    ),
    "the names of a master": Row(
        inputs.MASTER, {}, names(INSTANCE), ["prod-master-2"], extra=THIRD
    ),
    "the names of a master's volumes": Row(
        inputs.MASTER,
        ROOT_DISK,
        fields(VOLUME, "name", "size"),
        [("prod-kubernetes-data-2", 1), ("prod-master-root-volume-2", 20)],
        extra=THIRD,
    ),
    "masters are in the zones of the map in turn": Row(
        inputs.MASTER,
        {},
        lambda planned: (
            planned.of_type(INSTANCE)[0]["availability_zone"],
            planned.of_type(VOLUME)[0]["availability_zone"],
            planned.of_type(VOLUME)[0]["volume_type"],
        ),
        ("az2", "az2", "slow"),
        extra={"nodeIndex": "3"},
    ),
    "the image is not beside a boot volume": Row(
        inputs.MASTER,
        ROOT_DISK,
        lambda planned: (
            planned.of_type(INSTANCE)[0]["image_id"] == "the-image",
            planned.of_type(VOLUME)[1]["image_id"],
        ),
        (False, "the-image"),
        extra=FIRST,
    ),
    "the image of a flavor's disk": Row(
        inputs.MASTER, {}, fields(INSTANCE, "image_id"), [("the-image",)], extra=FIRST
    ),
    "volumes grow while attached": Row(
        inputs.MASTER,
        ROOT_DISK,
        fields(VOLUME, "enable_online_resize"),
        [(True,), (True,)],
        extra=FIRST,
    ),
    "a given server group is asked for": Row(
        inputs.MASTER, {"masters": MANUAL}, hints, ["g"], extra=FIRST
    ),
    "tags and additional tags are metadata": Row(
        inputs.MASTER,
        {"top": {"tags": {"a": "1"}}, "instance_class": {"additionalTags": {"b": "2"}}},
        fields(INSTANCE, "metadata"),
        [({"a": "1", "b": "2", "cluster-uuid": inputs.UUID},)],
        extra=FIRST,
    ),
    "user data is that of the installer": Row(
        inputs.MASTER,
        {},
        count(INSTANCE),
        1,
        extra={**FIRST, "cloudConfig": "I2Nsb3Vk"},
    ),
    "the disk of etcd is found by its ID": Row(
        inputs.MASTER,
        {},
        lambda planned: planned.outputs["kubernetes_data_device_path"][:23],
        "/dev/disk/by-id/virtio-",
        extra=FIRST,
    ),
    "a node of a group has one zone for server and volume": Row(
        inputs.STATIC,
        {"groups": [{**inputs.group(rootDiskSize=9), **VOLUME_TYPES}]},
        lambda planned: (
            planned.of_type(INSTANCE)[0]["name"],
            planned.of_type(INSTANCE)[0]["availability_zone"],
            planned.of_type(VOLUME)[0]["availability_zone"],
            planned.of_type(VOLUME)[0]["volume_type"],
        ),
        ("prod-front-0", "az2", "az2", "slow"),
        extra=FRONT,
    ),
    "a node has a port in each network": Row(
        inputs.STATIC,
        {"groups": [inputs.group(additionalNetworks=["dmz", "store"])]},
        names(PORT),
        ["prod-front-0"] * 3,
        extra=FRONT,
    ),
    "a network without port security has no group": Row(
        inputs.STATIC,
        {
            "groups": [
                inputs.group(
                    additionalNetworks=["dmz"], networksWithSecurityDisabled=["dmz"]
                )
            ]
        },
        fields(PORT, "no_security_groups"),
        [(True,), (None,)],
        extra=FRONT,
    ),
    "a node has a floating IP of each pool": Row(
        inputs.STATIC,
        {"groups": [inputs.group(floatingIPPools=["public", "second"])]},
        fields(FLOATING_IP, "pool"),
        [("public",), ("second",)],
        extra=FRONT,
    ),
    "a config drive as configured": Row(
        inputs.STATIC,
        {"groups": [inputs.group(configDrive=True)]},
        fields(INSTANCE, "config_drive"),
        [(True,)],
        extra=FRONT,
    ),
    "without DHCP masters have a config drive": Row(
        inputs.MASTER,
        {"externalNetworkDHCP": False},
        fields(INSTANCE, "config_drive"),
        [(True,)],
        layouts=WITH_DHCP,
        extra=FIRST,
    ),
    "with DHCP masters have none": Row(
        inputs.MASTER,
        {},
        fields(INSTANCE, "config_drive"),
        [(None,)],
        layouts=WITH_DHCP,
        extra=FIRST,
    ),
    "the pool follows from the mask": Row(
        inputs.BASE,
        {"internalNetworkCIDR": "10.5.0.0/22"},
        lambda planned: planned.of_type(SUBNET)[0]["allocation_pool"],
        [{"start": "10.5.0.2", "end": "10.5.3.254"}],
        layouts=OWN_NETWORK,
    ),
    "the pool of a small network": Row(
        inputs.BASE,
        {"internalNetworkCIDR": "10.5.0.16/28"},
        lambda planned: planned.of_type(SUBNET)[0]["allocation_pool"],
        [{"start": "10.5.0.18", "end": "10.5.0.30"}],
        layouts=OWN_NETWORK,
    ),
    "SSH is open to the list": Row(
        inputs.BASE, {}, ssh, ["192.0.2.0/24", "198.51.100.7/32"], layouts=OWN_NETWORK
    ),
    "an empty list permits no SSH": Row(
        inputs.BASE, {"top": {"sshAllowList": []}}, ssh, [], layouts=OWN_NETWORK
    ),
    "node ports are open for UDP when asked": Row(
        inputs.BASE,
        {},
        lambda planned: sorted(
            rule["protocol"]
            for rule in planned.of_type(RULE)
            if rule["port_range_max"] == 32767
        ),
        ["tcp", "udp"],
        layouts=OWN_NETWORK,
        extra={"nodePortsUDP": True},
    ),
    "rules for IPv6 when asked": Row(
        inputs.BASE,
        {},
        lambda planned: sum(
            rule["ethertype"] == "IPv6" for rule in planned.of_type(RULE)
        ),
        3,
        layouts=OWN_NETWORK,
        extra={"ipv6Rules": True},
    ),
    "without port security there is no group": Row(
        inputs.BASE,
        {"internalNetworkSecurity": False},
        lambda planned: (
            len(planned.of_type(GROUP)) + len(planned.of_type(RULE)),
            discovered("podNetworkMode")(planned),
        ),
        (0, ("DirectRouting",)),
        layouts=OWN_NETWORK,
    ),
    "without port security ports have no group": Row(
        inputs.MASTER,
        {"internalNetworkSecurity": False},
        lambda planned: {
            (port["no_security_groups"], len(port["allowed_address_pairs"]))
            for port in planned.of_type(PORT)
        },
        {(True, 0)},
        layouts=OWN_NETWORK,
        extra=FIRST,
    ),
    "the pair of pods is on the internal port": Row(
        inputs.MASTER,
        {},
        pairs,
        [[POD_CIDR]],
        ("Standard", "SimpleWithInternalNetwork"),
        FIRST,
    ),
    "the pair of pods is not on the external port": Row(
        inputs.MASTER, {}, pairs, [[], [POD_CIDR]], ("StandardWithNoRouter",), FIRST
    ),
    "direct routing without port security needs no pair": Row(
        inputs.MASTER,
        {"podNetworkMode": "DirectRouting"},
        pairs,
        [[]],
        ("SimpleWithInternalNetwork",),
        FIRST,
    ),
    "additional groups of a layout without its own group": Row(
        inputs.MASTER,
        {"instance_class": {"additionalSecurityGroups": ["x"]}},
        lambda planned: len(planned.of_type(PORT)[0]["security_group_ids"]),
        1,
        ("SimpleWithInternalNetwork",),
        FIRST,
    ),
    "a master of Simple has groups by name": Row(
        inputs.MASTER,
        {"instance_class": {"additionalSecurityGroups": ["x", "y"]}},
        lambda planned: (
            planned.of_type(INSTANCE)[0]["security_groups"],
            planned.of_type(INSTANCE)[0]["network"][0]["name"],
            len(planned.of_type(PORT)) + len(planned.of_type(FLOATING_IP)),
        ),
        (["x", "y"], "lab-net", 0),
        ("Simple",),
        FIRST,
    ),
    "a master has a floating IP": Row(
        inputs.MASTER,
        {},
        fields(FLOATING_IP, "pool"),
        [("public",)],
        ("Standard", "SimpleWithInternalNetwork"),
        FIRST,
    ),
    "a master of a layout without a router has none": Row(
        inputs.MASTER,
        {},
        count(FLOATING_IP),
        0,
        ("StandardWithNoRouter", "Simple"),
        FIRST,
    ),
    "a bastion has the floating IP in place of the masters": Row(
        inputs.MASTER,
        {"bastion": inputs.BASTION},
        count(FLOATING_IP),
        0,
        ("Standard",),
        FIRST,
    ),
    "an existing floating IP is not created": Row(
        inputs.MASTER,
        {},
        lambda planned: (
            len(planned.of_type(FLOATING_IP)),
            planned.outputs["master_ip_address_for_ssh"],
        ),
        (0, "198.51.100.9"),
        ("Standard", "SimpleWithInternalNetwork"),
        {**FIRST, "floatingIPAddress": "198.51.100.9"},
    ),
    "masters without a floating IP when configured so": Row(
        inputs.MASTER,
        {"masterWithExternalFloatingIP": False},
        count(FLOATING_IP),
        0,
        ("SimpleWithInternalNetwork",),
        FIRST,
    ),
    "the objects of a bastion": Row(
        inputs.BASE,
        {"bastion": inputs.BASTION},
        lambda planned: (
            names(INSTANCE)(planned),
            fields(VOLUME, "name", "size", "availability_zone")(planned),
            names(PORT)(planned),
            len(planned.of_type(FLOATING_IP)),
        ),
        (
            ["prod-bastion"],
            [("prod-bastion-root-volume", 1, "az2")],
            ["prod-bastion"],
            1,
        ),
        ("Standard",),
    ),
    "the discovery data of Standard": Row(
        inputs.BASE,
        {},
        discovered("internalNetworkNames", "externalNetworkNames", "podNetworkMode"),
        (["prod"], ["public"], "DirectRoutingWithPortSecurityEnabled"),
        ("Standard",),
    ),
    "the discovery data of StandardWithNoRouter": Row(
        inputs.BASE,
        {},
        discovered("internalNetworkNames", "externalNetworkNames", "loadBalancer"),
        (["prod"], ["lab-net"], {}),
        ("StandardWithNoRouter",),
    ),
    "the discovery data of Simple": Row(
        inputs.BASE,
        {"podNetworkMode": "DirectRouting"},
        discovered(
            "internalNetworkNames",
            "externalNetworkNames",
            "podNetworkMode",
            "loadBalancer",
        ),
        (["lab-net"], [], "DirectRouting", {}),
        ("Simple",),
    ),
    "an external network is optional": Row(
        inputs.BASE,
        {"externalNetworkName": None},
        discovered("externalNetworkNames", "loadBalancer"),
        ([], {}),
        ("SimpleWithInternalNetwork",),
    ),
}


def _tier(row: Row) -> tuple[str, ...]:
    """Return the layouts that a row is planned for."""
    return row.layouts if IS_LONG or row.layouts != EVERY else EVERY[:1]


CASES = [
    pytest.param(layout, name, id=f"{layout}: {name}")
    for name, row in ROWS.items()
    for layout in _tier(row)
]


@pytest.fixture(scope="module")
def planned(
    program: tofu.Tofu, layouts: pathlib.Path
) -> Mapping[tuple[str, str], mocks.Planned]:
    """Plan all rows: one run of `tofu test` for each root."""
    results: dict[tuple[str, str], mocks.Planned] = {}
    for layout, folder in inputs.LAYOUTS.items():
        for step in inputs.STEPS:
            rows = {
                name: row
                for name, row in ROWS.items()
                if row.step == step and layout in _tier(row)
            }
            cases = {name: _case(layout, row) for name, row in rows.items()}
            root = layouts / "layouts" / folder / step
            plans = mocks.plan(program, root, cases)
            results.update({(layout, name): plan for name, plan in plans.items()})
    return results


def _case(layout: str, row: Row) -> mocks.Case:
    document = inputs.document(layout, inputs.NO_CLOUD, **row.changes)
    return mocks.Case(mocks.variables(document, **row.extra))


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_an_input_is_planned_as_documented(
    planned: Mapping[tuple[str, str], mocks.Planned], layout: str, name: str
) -> None:
    row = ROWS[name]

    assert row.check(planned[layout, name]) == row.expected


KINDS = {
    "openstack_compute_keypair_v2": "key pair",
    "openstack_networking_network_v2": "network",
    "openstack_networking_router_v2": "router",
    FLOATING_IP: "floating IP",
    GROUP: "security group",
    INSTANCE: "server",
    PORT: "port",
    SERVER_GROUP: "server group",
    SUBNET: "subnet",
    VOLUME: "volume",
}


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_check_lists_the_objects_that_are_planned(
    planned: Mapping[tuple[str, str], mocks.Planned], layout: str, name: str
) -> None:
    row = ROWS[name]
    index = int(row.extra.get("nodeIndex", "0"))
    document = inputs.document(layout, inputs.NO_CLOUD, **row.changes)
    document["masterNodeGroup"]["replicas"] = index + 1
    node = {
        inputs.BASE: "",
        inputs.MASTER: f" prod-master-{index}",
        inputs.STATIC: f" prod-front-{index}",
    }[row.step]

    created = planned[layout, name].created
    listed = [
        (each.kind, each.name)
        for each in layout_objects.planned(document, "prod")
        if each.root == row.step + node
    ]
    if "floatingIPAddress" in row.extra:
        listed.remove(("floating IP", ""))

    kinds = {address: KINDS.get(_type(address)) for address in created}
    assert sorted(listed) == sorted(
        (kind, created[address].get("name", ""))
        for address, kind in kinds.items()
        if kind is not None
    )


def _type(address: str) -> str:
    """Return the type in an address, whose keys may contain dots."""
    return re.sub(r"\[.*?\]", "", address).split(".")[-2]


@pytest.mark.parametrize("layout", inputs.LAYOUTS)
def test_a_layout_has_at_least_twelve_inputs(layout: str) -> None:
    assert sum(layout in row.layouts for row in ROWS.values()) >= 12
