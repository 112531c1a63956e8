"""Before there is a cluster, its discovery data is what the layout will make."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.discovery.openstack import assumed, model

Configuration = Callable[[str], dict[str, Any]]
SECURED = model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY
SEA = ("sea",)

# Layout, its settings besides the required ones, internal and external names, mode,
# main network, additional networks, security groups.
ROWS: list[tuple[str, dict[str, object], tuple[object, ...]]] = [
    ("Standard", {}, (SEA, ("public",), SECURED, "sea", (), SEA)),
    (
        "Standard",
        {"internalNetworkSecurity": False},
        (SEA, ("public",), model.PodNetworkMode.DIRECT, "sea", (), ()),
    ),
    ("StandardWithNoRouter", {}, (SEA, ("public",), SECURED, "public", SEA, SEA)),
    (
        "Simple",
        {},
        (("public",), (), model.PodNetworkMode.VXLAN, "public", (), ()),
    ),
    (
        "Simple",
        {"podNetworkMode": "DirectRouting"},
        (("public",), (), model.PodNetworkMode.DIRECT, "public", (), ()),
    ),
    ("SimpleWithInternalNetwork", {}, ((), (), SECURED, "", (), ())),
    (
        "SimpleWithInternalNetwork",
        {"externalNetworkName": "out", "podNetworkMode": "VXLAN"},
        ((), ("out",), model.PodNetworkMode.VXLAN, "", (), ()),
    ),
]


@pytest.mark.parametrize(("layout", "more", "expected"), ROWS)
def test_each_layout(
    configuration: Configuration,
    layout: str,
    more: dict[str, object],
    expected: tuple[object, ...],
) -> None:
    """Networks, mode and security groups as the layout will report them."""
    document = configuration(layout)
    document[layout[0].lower() + layout[1:]].update(more)
    document["zones"] = ["b", "a"]
    observed = assumed.discovered(document, "sea")
    assert (
        observed.internal_network_names,
        observed.external_network_names,
        observed.pod_network_mode,
        observed.instances.main_network,
        observed.instances.additional_networks,
        observed.instances.security_groups,
    ) == expected
    assert observed.zones == ("b", "a")
    assert observed.instances.image_name == "ubuntu"
    assert observed.load_balancer == model.LoadBalancerPlace()


def test_without_a_prefix_some_networks_have_no_name(
    configuration: Configuration,
) -> None:
    """Nothing is made up."""
    observed = assumed.discovered(configuration("Standard"), "")
    assert observed.internal_network_names == ()
    assert observed.instances.security_groups == ()
