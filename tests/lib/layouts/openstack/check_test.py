"""Invalid inputs are reported together, with field, value and what is valid."""

from typing import Any

import pytest

from lib.layouts.openstack import check
from tests.harness.layouts import changes, inputs

DOCUMENT = inputs.document("Standard", inputs.NO_CLOUD, groups=[inputs.group()])
CLUSTER = inputs.cluster("prod")
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "a misspelt field": ({"sshAllowlist": []}, {}, ("sshAllowlist",)),
    "a network with host bits": (
        {"standard.internalNetworkCIDR": "192.0.2.7/24"},
        {},
        ("standard.internalNetworkCIDR", "192.0.2.7/24", "host bits"),
    ),
    "a network that is too small": (
        {"standard.internalNetworkCIDR": "192.0.2.0/29"},
        {},
        ("standard.internalNetworkCIDR", "192.0.2.0/29", "/28"),
    ),
    "a network of pods": (
        {"standard.internalNetworkCIDR": "10.111.8.0/24"},
        {},
        ("10.111.8.0/24", "podSubnetCIDR 10.111.0.0/16"),
    ),
    "a network of Services": (
        {"standard.internalNetworkCIDR": "10.0.0.0/8"},
        {},
        ("10.0.0.0/8", "serviceSubnetCIDR 10.222.0.0/16"),
    ),
    "an invalid name server": (
        {"standard.internalNetworkDNSServers": ["dns"]},
        {},
        ("internalNetworkDNSServers", "dns", "IPv4 address"),
    ),
    "an invalid SSH key": (
        {"sshPublicKey": "ssh-rsa"},
        {},
        ("sshPublicKey", "ssh-rsa"),
    ),
    "an invalid SSH list": ({"sshAllowList": ["lan"]}, {}, ("sshAllowList", "lan")),
    "a long tag": ({"tags": {"a": "x" * 60}}, {}, ("tags.a", "60 characters")),
    "a long prefix": ({}, {"cloud": {"prefix": "p" * 41}}, ("cloud.prefix", "40")),
    "zones without a volume type": (
        {"zones": ["az7"]},
        {},
        ("masterNodeGroup.volumeTypeMap", "az1, az2", "az7"),
    ),
    "a network that the group lacks": (
        {"nodeGroups.0.instanceClass.networksWithSecurityDisabled": ["dmz"]},
        {},
        ("nodeGroups[0].instanceClass.networksWithSecurityDisabled", "dmz", "lab-net"),
    ),
    "a name of a node that is too long": (
        {"nodeGroups.0.name": "g" * 60},
        {},
        ("nodeGroups[0].name", "63 characters"),
    ),
    "a group outside of the zones": (
        {"zones": ["az1"], "nodeGroups.0.zones": ["az2"]},
        {},
        ("nodeGroups[0].zones", "az2"),
    ),
}


@pytest.mark.parametrize(("change", "cluster", "named"), ROWS.values(), ids=ROWS)
def test_a_problem_is_named(
    change: dict[str, Any], cluster: dict[str, Any], named: tuple[str, ...]
) -> None:
    document = changes.changed(DOCUMENT, change)

    problems = check.problems(document, {**CLUSTER, **cluster})

    text = "\n".join(map(str, problems))
    for words in named:
        assert words in text
    assert "secret" not in text


def test_problems_are_reported_together() -> None:
    document = changes.changed(
        DOCUMENT, {"zones": ["az7"], "tags": {"a": "x" * 60, "b": ","}}
    )

    problems = check.problems(document, inputs.cluster("p" * 41))

    assert [problem.field for problem in problems] == [
        "cloud.prefix",
        "masterNodeGroup.volumeTypeMap",
        "tags.a",
        "tags.b",
    ]


@pytest.mark.parametrize("layout", inputs.LAYOUTS)
def test_valid_inputs_have_no_problem(layout: str) -> None:
    document = inputs.document(layout, inputs.NO_CLOUD, groups=[inputs.group()])

    assert check.problems(document, CLUSTER) == ()
