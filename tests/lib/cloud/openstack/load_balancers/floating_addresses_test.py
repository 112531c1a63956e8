"""Floating IPs, VIPs of two families, the status, security groups."""

import dataclasses

import pytest

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Depth,
    Ingress,
    IpFamily,
    IpMode,
    Plan,
    Port,
    PortProtocol,
    Reason,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason

V4, V6 = IpFamily.IPV4, IpFamily.IPV6
MANAGED = settings.LoadBalancer(manage_security_groups=True)


def start(
    config: settings.LoadBalancer | None = None, **fields: object
) -> driver.Driver:
    on = driver.ground()
    facts = driver.service((on.node(1), on.node(2)), **fields)
    return driver.Driver(on, facts, config)


def add_ip(
    driven: driver.Driver, address: str, port_id: str | None = None
) -> wire.Json:
    ip: wire.Json = {
        "id": f"id-{address}",
        "floating_ip_address": address,
        "floating_network_id": driven.ground.external_id,
        "port_id": port_id,
        "description": "of the user",
        "tags": [],
        "revision_number": 0,
    }
    driven.cloud.neutron.floating_ips[str(ip["id"])] = ip
    return ip


@pytest.mark.parametrize("what", ["attach", "delete"])
def test_a_floating_ip_that_a_server_got_meanwhile_stays_there(what: str) -> None:
    """Between the plan and its last step Octavia may take minutes."""
    driven = start()
    if what == "attach":
        ip = add_ip(driven, "198.51.100.7")
        driven.change(load_balancer_ip="198.51.100.7")
        while not driven.facts.annotations:
            driven.one_pass()
        driven.cloud.octavia.finish()
        plan = driven.plan()
    else:
        driven.settle()
        ip = driven.floating_ip
        plan = driven.plan(gone=True)
    assert isinstance(plan, Plan)
    server = driven.cloud.neutron.add_port(driven.ground.subnet_id, "", "server-9")
    ip["port_id"], ip["revision_number"] = server, int(str(ip["revision_number"])) + 1
    (step,) = (step for step in plan.steps if "floating IP" in step.path[0])
    with pytest.raises(errors.Busy):
        driven.balancers.apply(step)
    assert ip["port_id"] == server
    assert ip["id"] in driven.cloud.neutron.floating_ips


def test_a_floating_ip_of_the_users_is_attached_and_only_detached_at_the_end() -> None:
    """loadBalancerIP names a free one; it outlives the Service."""
    driven = start(load_balancer_ip="198.51.100.7")
    ip = add_ip(driven, "198.51.100.7")
    driven.settle()
    assert ip["port_id"] == driven.balancer["vip_port_id"]
    assert driven.facts.ingress == (Ingress("198.51.100.7", ip_mode=IpMode.VIP),)
    driven.settle(gone=True)
    assert ip["port_id"] is None
    assert list(driven.cloud.neutron.floating_ips) == [ip["id"]]


def test_an_address_in_use_is_said_and_the_old_one_stays() -> None:
    """Nothing is taken off before the other is to be had."""
    driven = start()
    driven.settle()
    before = driven.facts.ingress
    other = driven.ground.cloud.neutron.add_port(driven.ground.subnet_id)
    add_ip(driven, "198.51.100.7", other)
    driven.change(load_balancer_ip="198.51.100.7")
    assert driven.settle() == []
    assert [problem.reason for problem in driven.problems] == [Reason.ADDRESS_TAKEN]
    assert driven.facts.ingress == before


def test_an_address_that_nobody_has_is_made_before_the_old_one_goes() -> None:
    """As administrators may do; the old one was made for us and is deleted."""
    driven = start()
    driven.settle()
    driven.change(load_balancer_ip="198.51.100.77")
    steps = driven.settle()
    assert [step.split(":")[0] for step in steps] == [
        "create floating IP 198.51.100.77",
        "delete floating IP 198.51.100.100",
        "change floating IP 198.51.100.77",
    ]
    assert driven.facts.ingress[0].ip == "198.51.100.77"
    assert len(driven.cloud.neutron.floating_ips) == 1


def test_subnets_are_tried_until_one_has_an_address() -> None:
    """A pattern that fits several: full ones are passed over."""
    driven = start(settings.LoadBalancer(floating_subnet="public-*"))
    neutron = driven.cloud.neutron
    neutron.add_subnet(driven.ground.external_id, "203.0.113.0/24", "public-b")
    neutron.full_subnets.add(driven.ground.external_subnet_id)
    driven.settle()
    assert driven.facts.ingress[0].ip.startswith("203.0.113.")


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (settings.LoadBalancer(floating_subnet="other-*"), "other-*"),
        (settings.LoadBalancer(floating_subnet_id="inside"), "inside"),
    ],
)
def test_a_subnet_that_is_not_there_is_said_before_anything_is_made(
    config: settings.LoadBalancer, named: str
) -> None:
    """Neither by pattern nor by id; the message names it."""
    driven = start(config)
    assert driven.settle() == []
    assert [problem.reason for problem in driven.problems] == [OctaviaReason.SUBNET]
    assert named in driven.problems[0].message


def test_without_an_external_network_the_vip_is_used_and_said() -> None:
    """As the reference does, with its Event."""
    driven = start()
    driven.cloud.neutron.networks[driven.ground.external_id]["router:external"] = False
    driven.settle()
    assert [(p.reason, p.event) for p in driven.problems] == [
        (OctaviaReason.NO_FLOATING_NETWORK, "LoadBalancerExternalNetworkSearchFailed"),
        (OctaviaReason.NO_FLOATING_NETWORK, "LoadBalancerForcedInternal"),
    ]
    assert driven.facts.ingress[0].ip == driven.balancer["vip_address"]


def test_an_ipv6_load_balancer_has_no_floating_ip() -> None:
    """Its VIP is the address; an Event says so."""
    driven = start(ip_families=(V6,))
    neutron = driven.cloud.neutron
    subnet_id = neutron.add_subnet(driven.ground.network_id, "fd00::/64", "v6")
    node = driven.facts.nodes[0]
    address = dataclasses.replace(node.addresses[0], address="fd00::1")
    neutron.add_port(subnet_id, "fd00::1", "server-1")
    driven.change(nodes=(dataclasses.replace(node, addresses=(address,)),))
    driven.settle()
    assert driven.listener["allowed_cidrs"] == ["::/0"]
    assert [n.reason for n in driven.notices] == ["LoadBalancerFloatingIPSkipped"]
    assert driven.facts.ingress[0].ip == driven.balancer["vip_address"]
    assert driven.members[0]["address"] == "fd00::1"


def test_two_families_get_a_second_vip_where_octavia_has_them() -> None:
    """Both addresses are in the status; older Octavias say what they lack."""
    driven = start(ip_families=(V4, V6))
    driven.cloud.neutron.add_subnet(driven.ground.network_id, "fd00::/64", "v6")
    driven.settle()
    assert len(driven.facts.ingress) == 2
    assert driven.facts.ingress[1].ip.startswith("fd00::")
    older = start(ip_families=(V4, V6))
    older.cloud.octavia.version = (2, 25)
    assert not older.one_pass()
    assert [problem.reason for problem in older.problems] == [CommonReason.UNSUPPORTED]
    older.settle()
    assert [problem.reason for problem in older.problems] == [CommonReason.UNSUPPORTED]
    assert len(older.facts.ingress) == 1


@pytest.mark.parametrize(
    ("annotations", "config", "expected"),
    [
        ({}, {}, Ingress("198.51.100.100", ip_mode=IpMode.VIP)),
        (
            {keys.PROXY_PROTOCOL: "true"},
            {},
            Ingress("198.51.100.100", ip_mode=IpMode.PROXY),
        ),
        (
            {keys.PROXY_PROTOCOL: "v2"},
            {"enable_ingress_hostname": True},
            Ingress(hostname="198.51.100.100.nip.io"),
        ),
        ({keys.HOSTNAME: "a.example"}, {}, Ingress(hostname="a.example")),
    ],
)
def test_the_status_is_as_the_reference_writes_it(
    annotations: dict[str, str], config: dict[str, object], expected: Ingress
) -> None:
    """Address with its mode, or a hostname."""
    balancer = dataclasses.replace(settings.LoadBalancer(), **config)  # type: ignore[arg-type]
    driven = start(balancer, annotations=annotations)
    driven.settle()
    assert driven.facts.ingress == (expected,)
    address = driven.facts.annotations[keys.LOAD_BALANCER_ADDRESS]
    assert address == "198.51.100.100"


# ------------------------------------------------------------------ security groups


def rules(driven: driver.Driver) -> set[tuple[object, ...]]:
    """The ingress rules of the only group."""
    (group,) = driven.cloud.neutron.groups.values()
    return {
        (rule["protocol"], rule["port_range_min"], rule["remote_ip_prefix"])
        for rule in wire.objects(group, "security_group_rules")
        if rule["direction"] == "ingress"
    }


def carriers(driven: driver.Driver) -> list[str]:
    """The servers whose ports carry the Service's group."""
    (group_id,) = (id_ for id_ in driven.cloud.neutron.groups if id_ != "another")
    return sorted(
        str(port["device_id"])
        for port in driven.cloud.neutron.ports.values()
        if group_id in wire.texts(port["security_groups"])
    )


def test_a_managed_group_follows_ports_and_nodes() -> None:
    """Rules per nodePort from the members' subnet, on the members' ports only."""
    driven = start(MANAGED, ports=(Port(80, PortProtocol.TCP, 30080),))
    driven.settle()
    assert rules(driven) == {("tcp", 30080, "10.0.0.0/16")}
    assert carriers(driven) == ["server-1", "server-2"]
    driven.change(
        ports=(Port(53, PortProtocol.UDP, 30053),),
        nodes=(driven.facts.nodes[1], driven.ground.node(3)),
        is_local=True,
        health_check_node_port=31000,
    )
    driven.settle()
    assert rules(driven) == {
        ("udp", 30053, "10.0.0.0/16"),
        ("tcp", 31000, "10.0.0.0/16"),
    }
    assert carriers(driven) == ["server-2", "server-3"]
    driven.config = settings.LoadBalancer()
    driven.restart()
    driven.settle()
    assert driven.cloud.neutron.groups == {}


def test_groups_that_are_kept_no_more_go_before_anything_waits() -> None:
    """What is seen only by a look for drift is done by the plan of that look."""
    driven = start(MANAGED)
    driven.settle()
    driven.config = settings.LoadBalancer(lb_method="SOURCE_IP")
    driven.restart()
    plan = driven.plan()
    assert isinstance(plan, Plan)
    assert [step.is_gated for step in plan.steps] == [False, False, False, True]


def test_a_group_of_others_that_goes_meanwhile_is_no_failure() -> None:
    """Services have their groups on the same ports, and leave them at once."""
    first = start(MANAGED)
    first.settle()
    second = driver.Driver(
        first.ground, driver.service(first.facts.nodes, name="second", uid="2"), MANAGED
    )
    second.settle()
    plan = second.plan(gone=True)
    assert isinstance(plan, Plan)
    (step, *_) = (step for step in plan.steps if step.path[0].startswith("port "))
    first.settle(gone=True)
    with pytest.raises(errors.Busy, match="has deleted a group of the port"):
        second.balancers.apply(step)
    second.settle(gone=True)
    assert first.cloud.neutron.groups == {}


def test_a_port_that_was_changed_meanwhile_is_looked_at_again() -> None:
    """Somebody else's group on the port is not lost."""
    driven = start(MANAGED)
    another: wire.Json = {"id": "another", "name": "another", "description": ""}
    another["security_group_rules"] = []
    driven.cloud.neutron.groups["another"] = another
    changed: list[str] = []

    def fault(call: wire.Call) -> session.Fault | None:
        if call.method == "PUT" and call.parts[0] == "ports" and not changed:
            changed.append(call.parts[1])
            port = driven.cloud.neutron.ports[call.parts[1]]
            port |= {"security_groups": ["another"], "revision_number": 7}
        return None

    driven.cloud.fault = fault
    driven.settle()
    assert carriers(driven) == ["server-1", "server-2"]
    port = driven.cloud.neutron.ports[changed[0]]
    assert "another" in wire.texts(port["security_groups"])


def test_a_port_without_port_security_is_passed_over() -> None:
    """Neutron would refuse a group there."""
    driven = start(MANAGED)
    for port in driven.cloud.neutron.ports.values():
        port["port_security_enabled"] = port["device_id"] != "server-1"
    driven.settle()
    assert carriers(driven) == ["server-2"]


def test_ovn_lets_the_clients_in_instead_of_the_subnet() -> None:
    """It keeps the address of the client."""
    config = settings.LoadBalancer(
        lb_provider="ovn", lb_method="SOURCE_IP_PORT", manage_security_groups=True
    )
    driven = start(config, source_ranges=("192.0.2.0/24", "10.0.0.0/8"))
    driven.settle()
    assert rules(driven) == {
        ("tcp", 30080, "192.0.2.0/24"),
        ("tcp", 30080, "10.0.0.0/8"),
    }
    assert driven.listener["allowed_cidrs"] is None


def test_ovn_lets_in_only_clients_of_the_subnets_family() -> None:
    """A Service of two families allows both; Neutron takes no rule that mixes them."""
    config = settings.LoadBalancer(
        lb_provider="ovn", lb_method="SOURCE_IP_PORT", manage_security_groups=True
    )
    driven = start(config, ip_families=(V4, V6))
    driven.settle()
    assert rules(driven) == {("tcp", 30080, "0.0.0.0/0")}


def test_an_address_in_several_networks_is_ambiguous() -> None:
    """Which one the Nodes are in can't be told; the message names them."""
    driven = start()
    nameless = (dataclasses.replace(x, provider_id="") for x in driven.facts.nodes)
    driven.change(nodes=tuple(nameless))
    neutron = driven.cloud.neutron
    neutron.add_port(driven.ground.other_subnet_id, "10.0.0.1", "server-of-others")
    assert driven.settle() == []
    (problem,) = driven.problems
    assert problem.reason is OctaviaReason.SUBNET
    assert driven.ground.subnet_id in problem.message
    assert driven.ground.other_subnet_id in problem.message
    driven.annotate({keys.SUBNET_ID: driven.ground.subnet_id})
    assert driven.settle() != []


def test_no_subnet_is_taken_for_granted() -> None:
    """One that is not there is named; nothing is made."""
    driven = start()
    unknown_id = "00000000-0000-4000-8000-0000000000ee"
    for key in (keys.SUBNET_ID, keys.MEMBER_SUBNET_ID):
        driven.annotate({key: unknown_id})
        assert driven.settle() == []
        (problem,) = driven.problems
        assert (problem.reason, problem.is_fatal) == (OctaviaReason.SUBNET, True)
        assert f"{key.rpartition('/')[2]}: subnet {unknown_id}" in problem.message
        driven.annotate({key: None})
    assert driven.settle() != []


def test_a_selector_that_no_node_fits_leaves_the_load_balancer_empty() -> None:
    """It is made where the Nodes are, and gets members when one fits."""
    driven = start()
    driven.annotate({keys.NODE_SELECTOR: "role=edge"})
    driven.settle()
    assert driven.balancer["vip_subnet_id"] == driven.ground.subnet_id
    assert driven.members == []
    node, *_ = driven.facts.nodes
    driven.change(nodes=(dataclasses.replace(node, labels=(("role", "edge"),)),))
    driven.settle()
    assert [member["address"] for member in driven.members] == ["10.0.0.1"]


@pytest.mark.parametrize(
    "annotations",
    [
        {keys.FLOATING_NETWORK_ID: "{other}"},
        {keys.FLOATING_SUBNET_ID: "{subnet}"},
        {keys.FLOATING_SUBNET: "public-v5"},
        {keys.FLOATING_SUBNET_TAGS: "blue"},
    ],
)
def test_a_floating_ip_stays_where_it_is_and_an_event_says_so(
    annotations: dict[str, str],
) -> None:
    """Another network or subnet for it would be another address."""
    driven = start()
    neutron = driven.cloud.neutron
    other = neutron.add_network("other-public", external=True)
    names = {
        "other": other,
        "subnet": neutron.add_subnet(
            driven.ground.external_id, "203.0.113.0/24", "public-v5"
        ),
    }
    blue = neutron.add_subnet(driven.ground.external_id, "203.0.114.0/24", "blue")
    neutron.subnets[blue]["tags"] = ["blue"]
    driven.annotate({keys.FLOATING_SUBNET: "public-v4"})
    driven.settle()
    assert list(driven.problems) == []
    address = driven.floating_ip["floating_ip_address"]
    driven.annotate({keys.FLOATING_SUBNET: None})
    driven.annotate({key: value.format(**names) for key, value in annotations.items()})
    assert driven.settle() == []
    assert [problem.reason for problem in driven.problems] == [CommonReason.IMMUTABLE]
    assert driven.floating_ip["floating_ip_address"] == address


def test_nobody_is_let_in_by_a_vip_that_is_not_there() -> None:
    """Octavia refuses CIDRs of a family that no VIP has; an Event names the lack."""
    driven = start()
    driven.settle()
    driven.change(ip_families=(V4, V6))
    assert driven.settle() == []
    reasons = [problem.reason for problem in driven.problems]
    assert reasons == [CommonReason.UNSUPPORTED]
    assert driven.listener["allowed_cidrs"] == ["0.0.0.0/0"]
    driven.change(source_ranges=("2001:db8::/64", "192.0.2.0/24"))
    driven.settle()
    assert driven.listener["allowed_cidrs"] == ["192.0.2.0/24"]
    driven.change(source_ranges=("2001:db8::/64",))
    for _ in range(3):
        driven.one_pass()
    assert driven.listener["allowed_cidrs"] == ["192.0.2.0/24"]


def test_another_member_subnet_is_applied_when_the_service_changes() -> None:
    """Status trees show no subnets, so its members are listed."""
    driven = start()
    driven.depth = Depth.CHANGED
    driven.settle()
    driven.cloud.clock.sleep(10)
    driven.settle()
    driven.annotate({keys.MEMBER_SUBNET_ID: driven.ground.other_subnet_id})
    driven.settle()
    desired = {driven.ground.other_subnet_id}
    assert {member["subnet_id"] for member in driven.members} == desired


@pytest.mark.parametrize(
    ("created", "desired", "is_said"),
    [
        ("amphora", "amphora", False),
        ("amphora", "octavia", False),
        ("octavia", "amphora", False),
        ("amphora", "f5", True),
    ],
)
def test_another_provider_is_said_once_a_load_balancer_is_there(
    created: str, desired: str, is_said: bool
) -> None:
    """None moves from one to another; two of the names mean the same."""
    first = start(settings.LoadBalancer(lb_provider=created))
    first.settle()
    config = settings.LoadBalancer(lb_provider=desired)
    later = driver.Driver(first.ground, first.facts, config)
    assert later.settle() == []
    messages = [problem.message for problem in later.problems]
    assert len(messages) == is_said
    assert all("lb-provider is amphora, desired f5" in event for event in messages)


def test_the_subnet_of_the_nodes_is_that_of_their_own_server() -> None:
    """A second cluster, a router or a user's port may have the Node's address, too."""
    driven = start()
    neutron = driven.cloud.neutron
    neutron.add_port(driven.ground.other_subnet_id, "10.0.0.1", "a-router")
    neutron.add_port(driven.ground.other_subnet_id, "10.0.0.1", "server-of-others")
    driven.settle()
    assert driven.problems == ()
    assert driven.balancer["vip_subnet_id"] == driven.ground.subnet_id
    assert driven.members[0]["subnet_id"] == driven.ground.subnet_id
