"""What a provider lacks: reported with advice that helps, and never sent."""

import dataclasses

import pytest

from lib.cloud.load_balancers import IpFamily, Port, PortProtocol, Reason
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason, Problem

OVN = settings.LoadBalancer(lb_provider="ovn", lb_method="SOURCE_IP_PORT")
AMPHORA = settings.LoadBalancer(lb_provider="amphora", lb_method="LEAST_CONNECTIONS")
F5 = settings.LoadBalancer(lb_provider="f5", lb_method="SOURCE_IP_PORT")
BOTH = (IpFamily.IPV4, IpFamily.IPV6)


def start(config: settings.LoadBalancer, **fields: object) -> driver.Driver:
    on = driver.ground()
    return driver.Driver(on, driver.service((on.node(1), on.node(2)), **fields), config)


def changed_to(driven: driver.Driver, config: settings.LoadBalancer) -> None:
    """Restart the process with another cloud.conf."""
    driven.config = config
    driven.restart()


def messages(driven: driver.Driver, reason: object) -> list[str]:
    return [p.message for p in driven.problems if p.reason == reason]


def refusals(driven: driver.Driver) -> list[Problem]:
    return [problem for problem in driven.problems if problem.is_fatal]


# ---------------------------------------------------------------- another provider


@pytest.mark.parametrize(
    ("first", "second", "added"),
    [
        pytest.param(AMPHORA, OVN, "ROUND_ROBIN", id="from amphora to ovn"),
        pytest.param(OVN, AMPHORA, "SOURCE_IP_PORT", id="from ovn to amphora"),
        pytest.param(F5, AMPHORA, "LEAST_CONNECTIONS", id="from f5 to amphora"),
        pytest.param(
            dataclasses.replace(AMPHORA, lb_provider="octavia"),
            OVN,
            "ROUND_ROBIN",
            id="from octavia, which is amphora, to ovn",
        ),
    ],
)
def test_a_load_balancer_keeps_the_algorithms_of_its_own_provider(
    first: settings.LoadBalancer, second: settings.LoadBalancer, added: str
) -> None:
    """Its pools stay, members follow the Nodes, and a new port is served."""
    driven = start(first)
    driven.settle()
    (pool,) = driven.cloud.octavia.pools.values()
    had = pool["lb_algorithm"]
    changed_to(driven, second)
    before = len(driven.cloud.writes)
    driven.settle()
    is_kept = "f5" not in (first.lb_provider, second.lb_provider)
    assert (len(driven.cloud.writes) == before) == is_kept
    ports = (*driven.facts.ports, Port(443, PortProtocol.TCP, 30443, "https"))
    driven.change(ports=ports, nodes=(*driven.facts.nodes, driven.ground.node(3)))
    driven.settle()
    pools = driven.cloud.octavia.pools.values()
    assert [p["lb_algorithm"] for p in pools] == [had if is_kept else added, added]
    assert len(driven.members) == 3
    assert "lb-provider is" in "".join(messages(driven, CommonReason.IMMUTABLE))
    assert messages(driven, CommonReason.UNSUPPORTED) == []


def test_features_follow_the_provider_of_the_load_balancer() -> None:
    """Timeouts and source ranges, which ovn lacks, are still set on amphora."""
    driven = start(AMPHORA, source_ranges=("10.9.0.0/16",))
    driven.settle()
    changed_to(driven, OVN)
    driven.annotate({keys.TIMEOUT_CLIENT_DATA: "7000"})
    driven.change(source_ranges=("10.8.0.0/16",))
    driven.settle()
    assert driven.listener["timeout_client_data"] == 7000
    assert driven.listener["allowed_cidrs"] == ["10.8.0.0/16"]
    assert messages(driven, CommonReason.UNSUPPORTED) == []


def test_features_that_the_provider_of_the_load_balancer_lacks_are_not_sent() -> None:
    driven = start(OVN)
    driven.settle()
    changed_to(driven, AMPHORA)
    driven.annotate({keys.TIMEOUT_CLIENT_DATA: "7000"})
    driven.change(source_ranges=("10.8.0.0/16",))
    before = len(driven.cloud.writes)
    driven.settle()
    assert len(driven.cloud.writes) == before
    texts = messages(driven, CommonReason.UNSUPPORTED)
    assert any("timeout annotations: not supported" in text for text in texts)
    assert any("LoadBalancerSourceRanges are ignored" in text for text in texts)


@pytest.mark.parametrize(
    ("config", "method", "allowed"),
    [
        (OVN, "ROUND_ROBIN", "SOURCE_IP_PORT with provider ovn"),
        (AMPHORA, "SOURCE_IP_PORT", "ROUND_ROBIN or LEAST_CONNECTIONS or SOURCE_IP"),
    ],
)
def test_a_named_algorithm_that_the_provider_lacks_is_refused(
    config: settings.LoadBalancer, method: str, allowed: str
) -> None:
    """A new load balancer is not created; on an existing one its Nodes still change."""
    new = start(config, annotations={keys.METHOD: method})
    new.one_pass()
    (problem,) = refusals(new)
    field = f"annotation {keys.METHOD}: unsupported value"
    assert problem.message.startswith(f'{field} "{method}": must be {allowed}')
    assert not new.cloud.writes
    existing = start(config)
    existing.settle()
    before = existing.cloud.octavia.pools.copy()
    existing.annotate({keys.METHOD: method})
    existing.change(nodes=(*existing.facts.nodes, existing.ground.node(3)))
    existing.settle()
    assert len(existing.members) == 3
    assert existing.cloud.octavia.pools == before
    assert refusals(existing) == []
    assert allowed in "".join(messages(existing, CommonReason.UNSUPPORTED))


def test_an_algorithm_of_the_own_provider_may_be_named_after_a_change() -> None:
    driven = start(AMPHORA)
    driven.settle()
    changed_to(driven, OVN)
    driven.annotate({keys.METHOD: "SOURCE_IP"})
    driven.settle()
    (pool,) = driven.cloud.octavia.pools.values()
    assert pool["lb_algorithm"] == "SOURCE_IP"


# ---------------------------------------------------------------- health monitors


@pytest.mark.parametrize(
    ("config", "version", "ports", "enabled", "expected"),
    [
        pytest.param(AMPHORA, (2, 30), "TCP UDP", "true", [], id="probed"),
        pytest.param(
            AMPHORA,
            (2, 15),
            "TCP UDP",
            "true",
            ["healthCheckNodePort for 81/UDP: Nodes without a Pod drop traffic; set"
             " externalTrafficPolicy to Cluster: a health monitor of UDP can probe it"
             " only with Octavia API 2.16"],
            id="a port of UDP before 2.16",
        ),
        pytest.param(
            AMPHORA, (2, 15), "UDP", "true", ["Octavia API 2.16"], id="UDP only"
        ),
        pytest.param(AMPHORA, (2, 15), "TCP", "true", [], id="TCP before 2.16"),
        pytest.param(
            AMPHORA,
            (2, 15),
            "TCP UDP",
            "false",
            ["81/UDP: Nodes", "80/TCP: Nodes without a Pod drop traffic; set"
             f' annotation {keys.ENABLE_MONITOR} to "true"'],
            id="disabled, and before 2.16",
        ),
        pytest.param(
            AMPHORA, (2, 30), "TCP UDP", "false",
            ["healthCheckNodePort: Nodes without a Pod drop traffic; set annotation"],
            id="disabled",
        ),
        pytest.param(
            OVN, (2, 30), "TCP UDP", "true",
            ["healthCheckNodePort: Nodes without a Pod drop traffic; set"
             " externalTrafficPolicy to Cluster: health monitors of provider ovn cannot"
             " probe it"],
            id="ovn with the annotation",
        ),
        pytest.param(
            OVN, (2, 30), "TCP", "false", ["of provider ovn cannot probe it"],
            id="ovn without the annotation",
        ),
    ],
)  # fmt: skip
def test_ports_that_no_monitor_probes_are_named_with_what_helps(
    config: settings.LoadBalancer,
    version: tuple[int, int],
    ports: str,
    enabled: str,
    expected: list[str],
) -> None:
    listed = tuple(
        Port(80 + n, PortProtocol(protocol), 30080 + n, protocol.lower())
        for n, protocol in enumerate(ports.split())
    )
    driven = start(config, ports=listed, is_local=True, health_check_node_port=31000)
    driven.cloud.octavia.version = version
    driven.annotate({keys.ENABLE_MONITOR: enabled})
    driven.settle()
    texts = messages(driven, Reason.NO_HEALTH_CHECK)
    assert len(texts) == len(expected)
    for part, text in zip(expected, texts, strict=True):
        assert part in text


# ---------------------------------------------------------------- second family


def with_ipv6(driven: driver.Driver) -> None:
    driven.cloud.neutron.add_subnet(driven.ground.network_id, "fd00::/64", "inside-v6")


def test_a_network_without_ipv6_is_named_and_no_recreation_advised() -> None:
    """PreferDualStack on an IPv4 network: nothing would be better afterwards."""
    driven = start(AMPHORA, ip_families=BOTH)
    driven.settle()
    for _ in range(2):
        assert messages(driven, CommonReason.IMMUTABLE) == []
        (text,) = messages(driven, CommonReason.UNSUPPORTED)
        assert text == (
            "spec.ipFamilies: the load balancer has no IPv6 address: the network of the"
            " VIP has no IPv6 subnet; only IPv4 is served"
        )
        driven.restart()
        driven.settle()


def test_recreation_is_advised_once_the_network_has_the_family() -> None:
    driven = start(AMPHORA, ip_families=BOTH)
    driven.settle()
    with_ipv6(driven)
    driven.cloud.clock.sleep(120)
    driven.settle()
    assert messages(driven, CommonReason.UNSUPPORTED) == []
    (text,) = messages(driven, CommonReason.IMMUTABLE)
    assert "there is no VIP of IPv6; recreate the Service" in text


@pytest.mark.parametrize(
    ("config", "version", "why"),
    [
        (OVN, (2, 30), "requires Octavia API 2.26 and a provider other than ovn"),
        (AMPHORA, (2, 25), "requires Octavia API 2.26 and a provider other than ovn"),
    ],
)
def test_a_provider_without_additional_vips_is_named(
    config: settings.LoadBalancer, version: tuple[int, int], why: str
) -> None:
    driven = start(config, ip_families=BOTH)
    driven.cloud.octavia.version = version
    with_ipv6(driven)
    driven.settle()
    assert any(why in text for text in messages(driven, CommonReason.UNSUPPORTED))
    assert messages(driven, CommonReason.IMMUTABLE) == []


def test_two_families_are_served_where_they_can_be() -> None:
    driven = start(AMPHORA, ip_families=BOTH)
    with_ipv6(driven)
    driven.settle()
    assert len(wire.objects(driven.balancer, "additional_vips")) == 1
    assert driven.problems == ()


def test_the_second_subnet_of_a_load_balancer_is_not_read_each_time() -> None:
    driven = start(AMPHORA, ip_families=BOTH)
    driven.settle()
    before = len(driven.cloud.calls)
    for _ in range(3):
        driven.settle()
    paths = [call.parts[0] for call in driven.cloud.calls[before:]]
    assert "subnets" not in paths


# ---------------------------------------------------------------- source ranges


@pytest.mark.parametrize(
    ("ranges", "sent", "expected"),
    [
        pytest.param(("10.0.0.0/8",), ["10.0.0.0/8"], None, id="of the VIP's family"),
        pytest.param(
            ("10.0.0.0/8", "fd00::/8"),
            ["10.0.0.0/8"],
            "fd00::/8: not of the family of the VIP, IPv4: ignored; must be CIDRs of"
            " IPv4",
            id="of both families",
        ),
    ],
)
def test_ranges_of_a_family_without_a_vip_are_reported(
    ranges: tuple[str, ...], sent: list[str], expected: str | None
) -> None:
    """Also while the load balancer exists already."""
    driven = start(AMPHORA, source_ranges=ranges)
    driven.settle()
    assert driven.listener["allowed_cidrs"] == sent
    texts = messages(driven, CommonReason.UNSUPPORTED)
    assert [t.partition("Ranges: ")[2] for t in texts] == [expected] * bool(expected)


@pytest.mark.parametrize("is_new", [True, False])
def test_ranges_of_the_other_family_alone_are_reported(is_new: bool) -> None:
    """They are never dropped: a list that is empty would allow all clients."""
    driven = start(AMPHORA)
    if not is_new:
        driven.settle()
    driven.change(source_ranges=("fd00::/8", "fd01::/16"))
    for _ in range(3):
        driven.one_pass()
    (text,) = messages(driven, CommonReason.UNSUPPORTED)
    assert "fd00::/8, fd01::/16: not of the family of the VIP, IPv4: Octavia" in text
    assert text.endswith("must be CIDRs of IPv4")
    listeners = driven.cloud.octavia.listeners.values()
    assert [x["allowed_cidrs"] for x in listeners] == (
        [] if is_new else [["0.0.0.0/0"]]
    )


def test_members_change_while_the_ranges_are_refused() -> None:
    driven = start(AMPHORA)
    driven.settle()
    nodes = (*driven.facts.nodes, driven.ground.node(3))
    driven.change(source_ranges=("fd00::/8",), nodes=nodes)
    for _ in range(4):
        driven.one_pass()
    assert len(driven.members) == 3


def test_many_ranges_are_one_short_problem() -> None:
    ranges = ("10.0.0.0/8", *(f"fd00:{n:x}::/32" for n in range(1, 40)))
    driven = start(AMPHORA, source_ranges=ranges)
    driven.settle()
    (text,) = messages(driven, CommonReason.UNSUPPORTED)
    assert (
        "fd00:1::/32, fd00:2::/32, fd00:3::/32, fd00:4::/32, fd00:5::/32, ...:" in text
    )


def test_ranges_that_ovn_ignores_are_reported_once() -> None:
    driven = start(OVN, source_ranges=("10.0.0.0/8", "fd00::/8"))
    driven.settle()
    (text,) = messages(driven, CommonReason.UNSUPPORTED)
    assert "does not support it" in text
