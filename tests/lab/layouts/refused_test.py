"""Invalid inputs are refused before the cloud is asked: field, value and remedy."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from lib.lab.layouts import tofu
from tests.harness.layouts import inputs, mocks

LAYOUT = "Standard"
LONG_TAG = {"owner": "x" * 60}


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One invalid input, and texts that its error must have."""

    named: tuple[str, ...]
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    step: str = inputs.BASE
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


def _cluster(**changes: Any) -> inputs.Json:
    return {"clusterConfiguration": {**inputs.cluster("prod"), **changes}}


FIRST = {"nodeIndex": "0"}
IMAGES = "openstack_images_image_ids_v2"
ROWS = {
    "a misspelt field": Row(
        ("unknown fields: sshAllowlist",), {"top": {"sshAllowlist": []}}
    ),
    "a misspelt field of the masters": Row(
        ("masterNodeGroup has unknown fields: serverGrup",),
        {"masters": {"serverGrup": {}}},
    ),
    "a misspelt field of the masters' class": Row(
        ("instanceClass has unknown fields: rootDisk",),
        {"instance_class": {"rootDisk": 1}},
    ),
    "a misspelt field of the layout": Row(
        ("unknown fields: internalNetworkSecure",), {"internalNetworkSecure": True}
    ),
    "a misspelt field of a group": Row(
        ("nodeGroups has unknown fields: instanceClass.pool",),
        {"groups": [inputs.group(pool="x")]},
    ),
    "a network with host bits": Row(
        ("internalNetworkCIDR", '"192.168.199.7/24"', "without host bits"),
        {"internalNetworkCIDR": "192.168.199.7/24"},
    ),
    "a network that is too small": Row(
        ("internalNetworkCIDR", '"192.168.199.0/29"', "16 addresses"),
        {"internalNetworkCIDR": "192.168.199.0/29"},
    ),
    "a text in place of a network": Row(
        ("internalNetworkCIDR", '"lan"', "such as 192.168.199.0/24"),
        {"internalNetworkCIDR": "lan"},
    ),
    "a network that contains that of pods": Row(
        ("overlaps podSubnetCIDR", '"10.0.0.0/8"', '"10.111.0.0/16"'),
        {"internalNetworkCIDR": "10.0.0.0/8"},
    ),
    "a network within that of services": Row(
        ("overlaps", "serviceSubnetCIDR", '"10.222.4.0/24"', '"10.222.0.0/16"'),
        {"internalNetworkCIDR": "10.222.4.0/24"},
    ),
    "an invalid name server": Row(
        ("internalNetworkDNSServers", '"dns.example"', "IPv4 address"),
        {"internalNetworkDNSServers": ["192.0.2.53", "dns.example"]},
    ),
    "an invalid SSH key": Row(
        ("sshPublicKey", '"ssh-ed25519 AAAA"', "public SSH key"),
        {"top": {"sshPublicKey": "ssh-ed25519 AAAA"}},
    ),
    "an SSH list with an address": Row(
        ("sshAllowList", '"192.0.2.7"', "such as 192.0.2.0/24"),
        {"top": {"sshAllowList": ["192.0.2.7", "198.51.100.0/24"]}},
    ),
    "a zone that does not exist": Row(
        ("providerClusterConfiguration.zones", "az9", "It has az1, az2, az3"),
        {"top": {"zones": ["az1", "az9"]}},
    ),
    "a map without a zone that exists": Row(
        ("volumeTypeMap has no zone to use", "az8", "Nova has az1, az2, az3"),
        {"masters": {"volumeTypeMap": {"az8": "fast"}}},
        inputs.MASTER,
        FIRST,
    ),
    "a map without a zone that is permitted": Row(
        ("volumeTypeMap has no zone to use", "permitted are az3"),
        {"top": {"zones": ["az3"]}},
        inputs.MASTER,
        FIRST,
    ),
    "an image that does not exist": Row(
        ("masterNodeGroup.instanceClass.imageName", '"tiny"', "no such image"),
        {},
        inputs.MASTER,
        FIRST,
        {IMAGES: {"ids": []}},
    ),
    "two images of one name": Row(
        ("imageName", '"tiny"', "images one, two", "rename"),
        {},
        inputs.MASTER,
        FIRST,
        {IMAGES: {"ids": ["one", "two"]}},
    ),
    "no internal network": Row(
        (
            "clusterConfiguration.cloud.prefix",
            '"prod"',
            "apply base-infrastructure first",
        ),
        {},
        inputs.MASTER,
        FIRST,
        {"openstack_networking_subnet_ids_v2": {"ids": []}},
    ),
    "two internal networks": Row(
        ("clusterConfiguration.cloud.prefix", '"prod"', "subnets one, two"),
        {},
        inputs.MASTER,
        FIRST,
        {"openstack_networking_subnet_ids_v2": {"ids": ["one", "two"]}},
    ),
    "a network without security that the group lacks": Row(
        ("networksWithSecurityDisabled", '"dmz"', "additionalNetworks"),
        {"groups": [inputs.group(networksWithSecurityDisabled=["dmz"])]},
    ),
    "an unknown group": Row(
        ("nodeGroupName", '"back"', '["front"]'),
        {"groups": [inputs.group()]},
        inputs.STATIC,
        {**FIRST, "nodeGroupName": "back"},
    ),
    "an index that is no number": Row(
        ("nodeIndex", '"first"', "a number"), {}, inputs.MASTER, {"nodeIndex": "first"}
    ),
    "no index": Row(("nodeIndex", '""', "a number"), {}, inputs.MASTER),
    "a prefix that is too long": Row(
        ("cloud.prefix", "41 characters", "at most 40"),
        extra=_cluster(cloud={"prefix": "p" * 41}),
    ),
    "a prefix that is no host name": Row(
        ("cloud.prefix", '"My_cluster"', "lower-case"),
        extra=_cluster(cloud={"prefix": "My_cluster"}),
    ),
    "a name of a node that is too long": Row(
        ("is no host name", "longer than 63", "shorten"),
        {"groups": [{**inputs.group(), "name": "g" * 57}]},
        inputs.STATIC,
        {**FIRST, "nodeGroupName": "g" * 57},
    ),
    "a network of pods that is none": Row(
        ("podSubnetCIDR", '"all"', "10.111.0.0/16"), extra=_cluster(podSubnetCIDR="all")
    ),
    "user data that is not base64": Row(
        ("cloudConfig is not valid base64", '"#cloud-c"'),
        {},
        inputs.MASTER,
        {**FIRST, "cloudConfig": "#cloud-config"},
    ),
    "user data over Nova's limit": Row(
        ("cloudConfig", "65536 bytes", "65535"),
        {},
        inputs.MASTER,
        {**FIRST, "cloudConfig": "A" * 65536},
    ),
    "a tag over 60 characters": Row(
        ("providerClusterConfiguration.tags", "owner=xxx", "60 characters"),
        {"top": {"tags": LONG_TAG}},
    ),
    "a tag's name that Nova refuses": Row(
        ("tags", '"a/b"', "letters, digits"), {"top": {"tags": {"a/b": "x"}}}
    ),
    "a server group without its ID": Row(
        ("serverGroup", "ManuallyManaged with manuallyManaged.id"),
        {"masters": {"serverGroup": {"policy": "ManuallyManaged"}}},
    ),
    "an invalid UUID": Row(
        ("clusterUUID", '"prod"', "UUID"), extra={"clusterUUID": "prod"}
    ),
    "an invalid duration": Row(
        ("resourceManagementTimeout", '"soon"', "10m"),
        extra={"resourceManagementTimeout": "soon"},
    ),
    "another document": Row(
        ("providerClusterConfiguration.kind", '"Pod"', "OpenStackClusterConfiguration"),
        {"top": {"kind": "Pod"}},
    ),
}


@pytest.fixture(scope="module")
def planned(program: tofu.Tofu, layouts: pathlib.Path) -> Mapping[str, mocks.Planned]:
    """Plan all rows: one run of `tofu test` for each step."""
    results: dict[str, mocks.Planned] = {}
    for step in inputs.STEPS:
        rows = {name: row for name, row in ROWS.items() if row.step == step}
        cases = {name: _case(row) for name, row in rows.items()}
        root = layouts / "layouts" / inputs.LAYOUTS[LAYOUT] / step
        results.update(mocks.plan(program, root, cases))
    return results


def _case(row: Row) -> mocks.Case:
    document = inputs.document(LAYOUT, inputs.NO_CLOUD, **row.changes)
    return mocks.Case({**mocks.variables(document), **row.extra}, row.data)


@pytest.mark.parametrize("name", ROWS)
def test_an_invalid_input_is_refused_by_name(
    planned: Mapping[str, mocks.Planned], name: str
) -> None:
    text = "\n".join(planned[name].errors)

    assert text
    for words in ROWS[name].named:
        assert words in text
