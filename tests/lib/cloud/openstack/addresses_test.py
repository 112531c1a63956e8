"""Golden tables for each rule by which a server's addresses are chosen and ordered."""

import ipaddress

import pytest

from lib.cloud.model import Address, AddressType
from lib.cloud.openstack import native
from lib.cloud.openstack.config.settings import Networking
from lib.cloud.openstack.instances import addresses
from lib.cloud.openstack.instances.addresses import Wiring

INT, EXT, HOST = (
    AddressType.INTERNAL_IP,
    AddressType.EXTERNAL_IP,
    AddressType.HOSTNAME,
)
V4_ONLY = Networking(ipv6_support_disabled=True)


def port(*ips: str, status: str = "ACTIVE") -> native.Port:
    return native.Port(
        id="p", status=status, fixed_ips=tuple(native.FixedIp(ip) for ip in ips)
    )


def nova(**networks: tuple[str, ...]) -> dict[str, tuple[native.NovaAddress, ...]]:
    """Return Nova's addresses; one written "f:..." is floating."""
    return {
        name: tuple(
            native.NovaAddress(
                ip.removeprefix("f:"), "floating" if ip.startswith("f:") else "fixed"
            )
            for ip in ips
        )
        for name, ips in networks.items()
    }


def addresses_of(
    networking: Networking | None = None,
    ports: tuple[native.Port, ...] = (),
    trunked: tuple[tuple[str, str], ...] = (),
    **server: object,
) -> list[tuple[AddressType, str]]:
    result = addresses.of_server(
        native.Server(id="s", **server),  # type: ignore[arg-type]  # any field
        Wiring(ports, trunked),
        networking or Networking(),
    )
    return [(address.type, address.address) for address in result]


def test_rule_1_active_ports_give_their_addresses_in_api_order() -> None:
    """Ports in their order, each with its IPs in their order, once each."""
    ports = (port("10.0.0.9", "fd00::9"), port("10.0.0.1"), port("10.0.0.9"))
    assert addresses_of(ports=ports) == [
        (INT, "10.0.0.9"),
        (INT, "fd00::9"),
        (INT, "10.0.0.1"),
    ]


@pytest.mark.parametrize("status", ["DOWN", "BUILD", "ERROR", "N/A", ""])
def test_rule_1_other_ports_give_nothing(status: str) -> None:
    """Only ACTIVE counts; the same address from Nova may still follow."""
    assert addresses_of(ports=(port("10.0.0.1", status=status),)) == []


def test_rule_2_access_addresses_are_external() -> None:
    """accessIPv4 and accessIPv6, after the ports; empty and null are none."""
    result = addresses_of(
        ports=(port("10.0.0.1"),), access_ipv4="1.1.1.1", access_ipv6="2::2"
    )
    assert result == [(INT, "10.0.0.1"), (EXT, "1.1.1.1"), (EXT, "2::2")]
    assert addresses_of(access_ipv4="", access_ipv6=None) == []


def test_rule_3_the_metadata_may_name_the_host() -> None:
    """The key "hostname", if not empty; other keys never."""
    assert addresses_of(metadata={"hostname": "h", "other": "x"}) == [(HOST, "h")]
    assert addresses_of(metadata={"hostname": ""}) == []


def test_rule_4_without_names_all_of_novas_networks_are_internal_and_sorted() -> None:
    """Networks by name, addresses in Nova's order, floating ones external."""
    result = addresses_of(
        addresses=nova(b=("10.0.2.1", "f:5.5.5.5"), a=("10.0.1.1", "fd::1"))
    )
    assert result == [
        (INT, "10.0.1.1"),
        (INT, "fd::1"),
        (INT, "10.0.2.1"),
        (EXT, "5.5.5.5"),
    ]


def test_rule_4_a_public_network_takes_its_addresses_out_of_the_internal_ones() -> None:
    """The address of a port becomes external, and goes to the end."""
    result = addresses_of(
        Networking(public_network_names=("pub",)),
        ports=(port("8.8.8.8"), port("10.0.0.1")),
        addresses=nova(pub=("8.8.8.8",), int=("10.0.0.1",)),
    )
    assert result == [(INT, "10.0.0.1"), (EXT, "8.8.8.8")]


def test_rule_4_addresses_of_networks_that_are_not_internal_vanish() -> None:
    """With internal names given, all else goes, even an access address."""
    result = addresses_of(
        Networking(internal_network_names=("int",)),
        ports=(port("10.0.0.1"), port("10.9.0.1")),
        access_ipv4="10.9.0.1",
        addresses=nova(storage=("10.9.0.1",), int=("10.0.0.1", "f:5.5.5.5")),
    )
    assert result == [(INT, "10.0.0.1"), (EXT, "5.5.5.5")]


def test_rule_4_a_floating_address_counts_on_every_network() -> None:
    """Floating is looked at before the names."""
    result = addresses_of(
        Networking(internal_network_names=("int",)),
        addresses=nova(storage=("10.9.0.1", "f:5.5.5.5")),
    )
    assert result == [(EXT, "5.5.5.5")]


def test_rule_4_public_comes_before_internal_when_a_name_is_in_both() -> None:
    """A network that is listed twice is public."""
    both = Networking(public_network_names=("n",), internal_network_names=("n",))
    assert addresses_of(both, addresses=nova(n=("10.0.0.1",))) == [(EXT, "10.0.0.1")]


def test_rule_4_ports_on_trunks_count_by_their_networks() -> None:
    """A trunked port's address joins its network, after Nova's own of that network."""
    trunked = (("vlan", "10.7.0.1"), ("int", "10.0.0.2"), ("pub", "8.8.8.8"))
    result = addresses_of(
        Networking(public_network_names=("pub",)),
        trunked=trunked,
        addresses=nova(int=("10.0.0.1",)),
    )
    assert result == [
        (INT, "10.0.0.1"),
        (INT, "10.0.0.2"),
        (EXT, "8.8.8.8"),
        (INT, "10.7.0.1"),
    ]


def test_an_address_is_given_once_per_type() -> None:
    """Port and Nova name the same; one type and address is one entry."""
    result = addresses_of(
        ports=(port("10.0.0.1"),),
        access_ipv4="10.0.0.1",
        addresses=nova(a=("10.0.0.1",), b=("10.0.0.1", "f:10.0.0.1")),
    )
    assert result == [(INT, "10.0.0.1"), (EXT, "10.0.0.1")]


def test_rule_5_without_ipv6_none_comes_from_anywhere() -> None:
    """Ports, accessIPv6, Nova, floating and trunks all lose theirs."""
    result = addresses_of(
        V4_ONLY,
        ports=(port("fd::1", "10.0.0.1"),),
        access_ipv6="2::2",
        access_ipv4="1.1.1.1",
        trunked=(("a", "fd::3"),),
        addresses=nova(a=("fd::2", "10.0.0.2"), b=("f:2::3",)),
    )
    assert result == [(INT, "10.0.0.1"), (EXT, "1.1.1.1"), (INT, "10.0.0.2")]


def test_rule_5_ipv4_in_ipv6_form_is_ipv4() -> None:
    """As in Go, ::ffff:a.b.c.d is no IPv6 address."""
    assert addresses_of(V4_ONLY, ports=(port("::ffff:10.0.0.1"),)) == [
        (INT, "::ffff:10.0.0.1")
    ]


def order(*networks: str) -> Networking:
    parsed = tuple(ipaddress.ip_network(network) for network in networks)
    return Networking(address_sort_order=parsed)


MIXED = (port("172.16.0.2", "10.0.0.20", "fd::5", "192.168.0.1", "10.0.0.3"),)


@pytest.mark.parametrize(
    ("networking", "expected"),
    [
        (order(), ["172.16.0.2", "10.0.0.20", "fd::5", "192.168.0.1", "10.0.0.3"]),
        (
            order("192.168.0.0/16", "10.0.0.0/8"),
            ["192.168.0.1", "10.0.0.3", "10.0.0.20", "172.16.0.2", "fd::5"],
        ),
        (
            order("10.0.0.16/28", "10.0.0.0/8"),
            ["10.0.0.20", "10.0.0.3", "172.16.0.2", "fd::5", "192.168.0.1"],
        ),
        (
            order("::/0"),
            ["fd::5", "172.16.0.2", "10.0.0.20", "192.168.0.1", "10.0.0.3"],
        ),
        (
            order("1.1.1.0/24"),
            ["172.16.0.2", "10.0.0.20", "fd::5", "192.168.0.1", "10.0.0.3"],
        ),
    ],
)
def test_rule_6_the_sort_order_puts_matching_networks_first(
    networking: Networking, expected: list[str]
) -> None:
    """By position of the first match, ascending inside it; the rest stays as it was."""
    assert [address for _, address in addresses_of(networking, ports=MIXED)] == expected


def test_rule_6_sorts_over_all_types_and_leaves_names_behind() -> None:
    """A host name matches nothing and keeps its place among those that don't."""
    result = addresses_of(
        order("5.0.0.0/8"),
        ports=(port("10.0.0.1"),),
        metadata={"hostname": "h"},
        addresses=nova(a=("f:5.5.5.5",)),
    )
    assert result == [(EXT, "5.5.5.5"), (INT, "10.0.0.1"), (HOST, "h")]


def test_the_result_is_of_the_models_own_type() -> None:
    """No native type leaves the room."""
    result = addresses.of_server(
        native.Server(id="s"), Wiring((port("10.0.0.1"),)), Networking()
    )
    assert result == (Address(INT, "10.0.0.1"),)


RULES = {
    "1: fixed IPs of ACTIVE ports, in API order, internal": (
        test_rule_1_active_ports_give_their_addresses_in_api_order,
        test_rule_1_other_ports_give_nothing,
    ),
    "2: accessIPv4 and accessIPv6, external": (
        test_rule_2_access_addresses_are_external,
    ),
    '3: metadata "hostname", host name': (test_rule_3_the_metadata_may_name_the_host,),
    "4: Nova's networks, sorted by name": (
        test_rule_4_without_names_all_of_novas_networks_are_internal_and_sorted,
    ),
    "4: floating, external": (test_rule_4_a_floating_address_counts_on_every_network,),
    "4: public-network-name, external, and no longer internal": (
        test_rule_4_a_public_network_takes_its_addresses_out_of_the_internal_ones,
        test_rule_4_public_comes_before_internal_when_a_name_is_in_both,
    ),
    "4: internal-network-name, all others vanish": (
        test_rule_4_addresses_of_networks_that_are_not_internal_vanish,
    ),
    "4: trunk sub-ports by their networks": (
        test_rule_4_ports_on_trunks_count_by_their_networks,
    ),
    "5: ipv6-support-disabled": (
        test_rule_5_without_ipv6_none_comes_from_anywhere,
        test_rule_5_ipv4_in_ipv6_form_is_ipv4,
    ),
    "6: address-sort-order": (
        test_rule_6_the_sort_order_puts_matching_networks_first,
        test_rule_6_sorts_over_all_types_and_leaves_names_behind,
    ),
    "all: once per type and address": (test_an_address_is_given_once_per_type,),
}


def test_every_rule_of_the_reference_has_its_golden_table() -> None:
    """Prints rule and tests; a test of a rule that no row names fails, too."""
    for rule, tests in RULES.items():
        print(f"{rule:58} {', '.join(test.__name__ for test in tests)}")
    assert {rule[0] for rule in RULES} == set("123456a")
    listed = {test.__name__ for tests in RULES.values() for test in tests}
    assert listed >= {name for name in globals() if name.startswith("test_rule_")}


# ---------------------------------------------------------------- no address is left


def problem_of(networking: Networking, wiring: Wiring, **fields: object) -> str:
    server = native.Server(id="s", **fields)  # type: ignore[arg-type]
    left = addresses.of_server(server, wiring, networking)
    return addresses.problem(server, wiring, networking, left)


FIXED = native.NovaAddress("10.0.0.1", "fixed")
SIX = native.NovaAddress("fd00::1", "fixed")


@pytest.mark.parametrize(
    ("networking", "known", "expected"),
    [
        pytest.param(
            Networking(internal_network_names=("lan", "prod")),
            {"wan": [FIXED], "dmz": [FIXED]},
            '[Networking] internal-network-name is "lan" or "prod", and the server has'
            ' addresses only in the networks "dmz", "wan": must be the name of one of'
            " them",
            id="no network of these names",
        ),
        pytest.param(
            Networking(internal_network_names=("",)),
            {"wan": [FIXED]},
            'internal-network-name is ""',
            id="an empty name",
        ),
        pytest.param(
            Networking(ipv6_support_disabled=True),
            {"wan": [SIX]},
            "ipv6-support-disabled is true, and all addresses of the server are of"
            ' IPv6, in the networks "wan"',
            id="addresses of IPv6 alone",
        ),
        pytest.param(
            Networking(internal_network_names=("lan",), ipv6_support_disabled=True),
            {"wan": [SIX]},
            "internal-network-name",
            id="both",
        ),
        pytest.param(
            Networking(internal_network_names=("lan",)), {"lan": [FIXED]}, "", id="fits"
        ),
        pytest.param(
            Networking(internal_network_names=("lan",)), {}, "", id="no address yet"
        ),
        pytest.param(
            Networking(internal_network_names=("lan",), public_network_names=("wan",)),
            {"wan": [FIXED]},
            "",
            id="a public one is left",
        ),
    ],
)
def test_a_filter_that_leaves_nothing_is_named(
    networking: Networking,
    known: dict[str, list[native.NovaAddress]],
    expected: str,
) -> None:
    """With the networks that the server has; a host name is no address."""
    text = problem_of(networking, Wiring(), addresses=known, metadata={"hostname": "h"})
    assert expected in text
    assert bool(text) == bool(expected)


def test_ports_that_the_filter_takes_away_count() -> None:
    """Nova and Neutron show the same address: the filter removes both."""
    networking = Networking(internal_network_names=("lan",))
    wiring = Wiring((port("10.0.0.1"),))
    text = problem_of(networking, wiring, addresses={"wan": [FIXED]})
    assert '"wan"' in text
