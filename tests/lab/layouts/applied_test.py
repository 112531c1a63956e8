"""Layouts in the lab's cloud: applied, planned again, destroyed.

All objects are read by the SDK before and after.
"""

import dataclasses
import os
import time
from collections.abc import Mapping
from typing import Any

import pytest

from lib.discovery.openstack import assumed, documents, schemas
from tests.harness.layouts import inputs, objects, roots

IS_LONG = os.environ.get("MOORING_TIER") == "long"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A layout with options: the roots to apply, and the names of their objects.

    addresses: number of floating IPs, which have no names.
    """

    layout: str
    applied: tuple[roots.Root, ...]
    objects: Mapping[str, list[str]]
    addresses: int
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)


BASE, FIRST = roots.BASE, roots.master(0)
STATIC = roots.static("front", 0)
KEY = {"key pair": ["prod"]}
OWN = {**KEY, "network": ["prod"], "subnet": ["prod"]}
MASTER = {"server": ["prod-master-0"], "volume": ["prod-kubernetes-data-0"]}
ROOT_VOLUME = ["prod-kubernetes-data-0", "prod-master-root-volume-0"]
DEFAULT = {
    "Standard with the options of a master, and a node of a group": Row(
        "Standard",
        (BASE, FIRST, STATIC),
        {
            **OWN,
            # The router's port has no name.
            "port": ["", "prod-front-0", "prod-master-0"],
            "router": ["prod"],
            "security group": ["prod"],
            "server": ["prod-front-0", "prod-master-0"],
            "server group": ["prod"],
            "volume": ["prod-front-0", *ROOT_VOLUME],
        },
        2,
        {
            "instance_class": {"rootDiskSize": 1, "additionalSecurityGroups": ["more"]},
            "masters": {"serverGroup": {"policy": "AntiAffinity"}},
            "top": {"tags": {"team": "a"}},
            "groups": [
                {
                    **inputs.group(rootDiskSize=1, floatingIPPools=["public"]),
                    "volumeTypeMap": {"az2": "slow"},
                }
            ],
        },
    ),
}
LONG = {
    "Standard without port security, with a bastion": Row(
        "Standard",
        (BASE, FIRST),
        {
            **OWN,
            "port": ["", "prod-bastion", "prod-master-0"],
            "router": ["prod"],
            "server": ["prod-bastion", "prod-master-0"],
            "volume": ["prod-bastion-root-volume", "prod-kubernetes-data-0"],
        },
        1,
        {"internalNetworkSecurity": False, "bastion": inputs.BASTION},
    ),
    "Standard with three masters": Row(
        "Standard",
        (BASE, FIRST, roots.master(1), roots.master(2)),
        {
            **OWN,
            "port": ["", *(f"prod-master-{number}" for number in range(3))],
            "router": ["prod"],
            "security group": ["prod"],
            "server": [f"prod-master-{number}" for number in range(3)],
            "server group": ["prod"],
            "volume": [f"prod-kubernetes-data-{number}" for number in range(3)],
        },
        3,
        {
            "masters": {
                "replicas": 3,
                "serverGroup": {"policy": "AntiAffinity"},
                "volumeTypeMap": {"az1": "fast", "az2": "slow", "az3": "fast"},
            }
        },
    ),
    "StandardWithNoRouter with a boot volume": Row(
        "StandardWithNoRouter",
        (BASE, FIRST),
        {
            **OWN,
            **MASTER,
            "port": ["prod-master-0", "prod-master-0-external"],
            "security group": ["prod"],
            "volume": ROOT_VOLUME,
        },
        0,
        {"instance_class": {"rootDiskSize": 1}},
    ),
    "StandardWithNoRouter without port security": Row(
        "StandardWithNoRouter",
        (BASE, FIRST),
        {**OWN, **MASTER, "port": ["prod-master-0", "prod-master-0-external"]},
        0,
        {"internalNetworkSecurity": False, "externalNetworkDHCP": False},
    ),
    "Simple with a boot volume": Row(
        "Simple",
        (BASE, FIRST),
        # The port of the master is Nova's, without a name.
        {**KEY, **MASTER, "port": [""], "volume": ROOT_VOLUME},
        0,
        {"instance_class": {"rootDiskSize": 1, "additionalSecurityGroups": ["more"]}},
    ),
    "Simple with a server group": Row(
        "Simple",
        (BASE, FIRST),
        {**KEY, **MASTER, "port": [""], "server group": ["prod"]},
        0,
        {"masters": {"serverGroup": {"policy": "AntiAffinity"}}},
    ),
    "SimpleWithInternalNetwork with a boot volume": Row(
        "SimpleWithInternalNetwork",
        (BASE, FIRST),
        {**KEY, **MASTER, "port": ["prod-master-0"], "volume": ROOT_VOLUME},
        1,
        {"instance_class": {"rootDiskSize": 1, "additionalSecurityGroups": ["more"]}},
    ),
    "SimpleWithInternalNetwork without a floating IP": Row(
        "SimpleWithInternalNetwork",
        (BASE, FIRST),
        {**KEY, **MASTER, "port": ["prod-master-0"]},
        0,
        {"masterWithExternalFloatingIP": False, "podNetworkMode": "VXLAN"},
    ),
}
ROWS = {**DEFAULT, **LONG} if IS_LONG else DEFAULT


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_layout_is_applied_planned_without_changes_and_destroyed(
    cluster: roots.MakeCluster, row: Row
) -> None:
    mine, user = cluster(row.layout, **row.changes)
    before = objects.take(user.connection)
    started = time.monotonic()

    outputs = [mine.apply(root) for root in row.applied]

    applied = time.monotonic()
    after = objects.take(user.connection)
    added = objects.added(before, after)
    assert len(added.pop("floating IP", ())) == row.addresses
    assert added == row.objects
    assert objects.untagged(before, after, inputs.UUID) == []
    assert [mine.plan(root) for root in row.applied] == [{}] * len(row.applied)
    _require_discovery_data(mine.document, outputs[0]["cloud_discovery_data"])
    _require_outputs_of_a_master(after, outputs[1])
    planned = time.monotonic()
    mine.destroy(*row.applied)
    assert objects.take(user.connection) == before
    print(
        f"{row.layout}: applied in {applied - started:.0f} s, planned in"
        f" {planned - applied:.0f} s, destroyed in {time.monotonic() - planned:.0f} s"
    )


def _require_discovery_data(document: inputs.Json, data: inputs.Json) -> None:
    """Require valid data that equal what `mooring migrate` and `render` assume."""
    assert not schemas.problems(schemas.Schema.CLOUD_DISCOVERY_DATA, data)
    read, likely = documents.discovered(data), assumed.discovered(document, "prod")
    if document["layout"] == "SimpleWithInternalNetwork":
        # The network of an existing subnet.
        main = read.instances.main_network
        likely = dataclasses.replace(
            likely,
            internal_network_names=read.internal_network_names,
            instances=dataclasses.replace(likely.instances, main_network=main),
        )
    assert read == dataclasses.replace(
        likely, load_balancer=read.load_balancer, zones=read.zones
    )


def _require_outputs_of_a_master(
    after: objects.Objects, outputs: Mapping[str, str]
) -> None:
    volumes = {
        f"/dev/disk/by-id/virtio-{volume['id'][:20]}": volume["name"]
        for volume in after["volume"].values()
    }
    path = outputs["kubernetes_data_device_path"]
    assert volumes[path] == "prod-kubernetes-data-0"
    ports = [
        port
        for port in after["port"].values()
        if outputs["node_internal_ip_address"]
        in [address["ip_address"] for address in port["fixed_ips"]]
    ]
    # Simple has none of our ports; the others have the node's name.
    assert [port["name"] for port in ports] in (["prod-master-0"], [""])
    assert "" not in outputs.values()
