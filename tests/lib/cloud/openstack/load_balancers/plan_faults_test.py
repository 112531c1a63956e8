"""ERROR, refusals, providers that lack things, and how many calls all this costs."""

import dataclasses

import pytest

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Depth,
    Plan,
    Port,
    PortProtocol,
    Reason,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers import pace
from lib.cloud.openstack.load_balancers.read import children, plan_environment
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Asked, CommonReason, Gate, GateState

TCP, UDP = PortProtocol.TCP, PortProtocol.UDP


def start(
    config: settings.LoadBalancer | None = None, nodes: int = 2, **fields: object
) -> driver.Driver:
    on = driver.ground()
    created = tuple(on.node(number) for number in range(1, nodes + 1))
    return driver.Driver(on, driver.service(created, **fields), config)


def test_one_that_never_was_usable_is_made_again_after_a_backoff() -> None:
    """Its plan says that the queue's backoff has to come first."""
    driven = start()
    driven.cloud.octavia.builds_fail = 2
    driven.one_pass()
    driven.cloud.clock.sleep(10)
    plan = driven.plan()
    assert isinstance(plan, Plan)
    assert plan.backs_off
    assert [problem.reason for problem in plan.problems] == [Reason.IN_ERROR]
    driven.settle()
    assert driven.balancer["provisioning_status"] == "ACTIVE"
    assert len(driven.cloud.octavia.load_balancers) == 1


@pytest.mark.parametrize("policy", ["report", "failover", "recreate"])
def test_one_that_was_usable_follows_its_annotation(policy: str) -> None:
    """Nothing is deleted without its owner's word; the address stays in any case."""
    driven = start()
    driven.annotate({keys.ON_ERROR: policy})
    driven.settle()
    was, ingress = driven.balancer["id"], driven.facts.ingress
    driven.balancer["provisioning_status"] = "ERROR"
    plan = driven.plan()
    assert isinstance(plan, Plan)
    assert [problem.reason for problem in plan.problems] == [Reason.IN_ERROR]
    if policy == "report":
        assert (plan.steps, plan.retry_after_s) == ((), 60.0)
        return
    problem_reasons = set()
    while not driven.one_pass():
        problem_reasons |= {problem.reason for problem in driven.problems}
    assert problem_reasons == {Reason.IN_ERROR}  # no other client has deleted it
    assert (driven.balancer["id"] == was) == (policy == "failover")
    assert driven.facts.ingress == ingress


def test_one_whose_status_shows_a_name_was_usable() -> None:
    """The name tells no address, but clients used it: nothing is deleted unasked."""
    driven = start()
    driven.annotate({keys.HOSTNAME: "web.example"})
    driven.settle()
    driven.balancer["provisioning_status"] = "ERROR"
    plan = driven.plan()
    assert isinstance(plan, Plan)
    assert [problem.reason for problem in plan.problems] == [Reason.IN_ERROR]
    assert plan.steps == ()


def test_one_in_error_is_deleted_with_all_that_is_under_it() -> None:
    """Also where the configuration wants no cascade."""
    driven = start(settings.LoadBalancer(cascade_delete=False))
    driven.settle()
    driven.balancer["provisioning_status"] = "ERROR"
    driven.settle(gone=True)
    assert driven.cloud.octavia.load_balancers == {}


def test_without_cascade_children_go_one_by_one() -> None:
    """Pools before listeners before the load balancer."""
    driven = start(settings.LoadBalancer(cascade_delete=False))
    driven.settle()
    steps = driven.settle(gone=True)
    kinds = [step.split(":")[0].split(" / ")[-1].split("_")[0] for step in steps]
    assert kinds == [
        "delete floating IP 198.51.100.100",
        "pool pool",
        "listener listener",
        "delete load balancer kube",
    ]
    assert driven.cloud.octavia.load_balancers == {}


def test_serial_providers_get_everything_in_single_calls() -> None:
    """The load balancer is made without children; the result is the same."""
    driven = start(settings.LoadBalancer(provider_requires_serial_api_calls=True))
    driven.annotate({keys.ENABLE_MONITOR: "true"})
    driven.settle()
    first = driven.cloud.writes[0]
    assert "listeners" not in wire.part(first.body, "loadbalancer")
    assert len(driven.members) == 2
    assert driven.monitor["type"] == "TCP"


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ((2, 0), "timeout_client_data"),
        ((2, 4), "tags"),
        ((2, 11), "allowed_cidrs"),
    ],
)
def test_old_octavias_are_not_asked_for_what_they_lack(
    version: tuple[int, int], lacks: str
) -> None:
    """Neither at creation nor at change."""
    driven = start(source_ranges=("192.0.2.0/24",))
    driven.cloud.octavia.version = version
    driven.settle()
    driven.annotate({keys.CONNECTION_LIMIT: "7"})
    driven.settle()
    for call in driven.cloud.writes:
        assert lacks not in str(call.body)
    messages = [problem.event for problem in driven.problems]
    assert messages == ["LoadBalancerSourceRangesIgnored"]


def test_batches_are_additive_only_where_octavia_knows_it() -> None:
    """Below 2.11 it would take the part for the whole."""
    for version, is_additive in (((2, 11), True), ((2, 10), False)):
        driven = start()
        driven.cloud.octavia.version = version
        driven.settle()
        driven.change(nodes=(*driven.facts.nodes, driven.ground.node(3)))
        driven.settle()
        (call,) = (c for c in driven.cloud.writes if c.parts[-1] == "members")
        assert (call.one("additive_only") == "true") == is_additive
        assert len(wire.objects(call.body, "members")) == (1 if is_additive else 3)
        assert len(driven.members) == 3


def test_local_traffic_gets_a_monitor_or_a_warning() -> None:
    """By default what we make; forbidden, or adopted, or ovn: a warning."""
    driven = start(is_local=True, health_check_node_port=31000)
    driven.settle()
    assert driven.monitor["type"] == "HTTP"
    assert {member["monitor_port"] for member in driven.members} == {31000}
    assert [problem.reason for problem in driven.problems] == []
    driven.annotate({keys.ENABLE_MONITOR: "false"})
    driven.settle()
    assert driven.monitor == {}
    assert [problem.reason for problem in driven.problems] == [Reason.NO_HEALTH_CHECK]
    ovn = start(settings.LoadBalancer(lb_provider="ovn", lb_method="SOURCE_IP_PORT"))
    ovn.change(is_local=True, health_check_node_port=31000)
    ovn.settle()
    assert ovn.monitor["type"] == "TCP"
    assert Reason.NO_HEALTH_CHECK in {problem.reason for problem in ovn.problems}


def test_a_health_check_port_that_changes_is_seen() -> None:
    """Only lists of members show it; they are not read again for nothing."""
    driven = start(is_local=True, health_check_node_port=31000)
    driven.depth = Depth.CHANGED
    for _ in range(3):
        driven.settle()
        driven.cloud.clock.sleep(60)
    before = len(driven.cloud.calls)
    driven.settle()
    paths = [call.parts[-1] for call in driven.cloud.calls[before:]]
    assert "members" not in paths
    driven.change(health_check_node_port=31001)
    driven.settle()
    assert {member["monitor_port"] for member in driven.members} == {31001}


@pytest.mark.parametrize("status", [403, 409, 413, 429, 500, 503, 0])
def test_a_refused_write_is_tried_again_later(status: int) -> None:
    """Whatever the cloud answers, the next pass goes on from what is there."""
    driven = start()
    left = [True]

    def fault(call: wire.Call) -> session.Fault | None:
        if call.method == "POST" and left:
            left.clear()
            return session.Fault(status)
        return None

    driven.cloud.fault = fault
    driven.settle()
    assert len(driven.cloud.octavia.load_balancers) == 1


def test_a_list_that_fails_makes_unknown_and_nothing_is_written() -> None:
    """Also when only one of several lists fails."""
    for path in ("lbaas/loadbalancers", "floatingips", "lbaas/pools", "ports"):
        driven = start()
        driven.settle()
        driven.annotate({keys.CONNECTION_LIMIT: "9"})
        driven.cloud.clock.sleep(plan_environment.KEPT_S)

        def fault(call: wire.Call, path: str = path) -> session.Fault | None:
            return session.Fault(500) if call.path == path else None

        driven.cloud.fault = fault
        assert isinstance(driven.plan(), Unknown), path


# ------------------------------------------------------------------ gates, calls


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("ACTIVE", GateState.OPEN),
        ("PENDING_CREATE", GateState.CLOSED),
        ("PENDING_UPDATE", GateState.CLOSED),
        ("PENDING_DELETE", GateState.CLOSED),
        ("ERROR", GateState.LOST),
        ("DELETED", GateState.LOST),
        ("SOMETHING", GateState.LOST),
    ],
)
def test_each_status_opens_closes_or_ends(status: str, state: GateState) -> None:
    """A gate is one call, for one load balancer or for many."""
    driven = start()
    driven.settle()
    driven.balancer["provisioning_status"] = status
    asked = [Asked(str(driven.balancer["id"]), 0.0), Asked("nobody", 0.0)]
    before = len(driven.cloud.calls)
    for some in (asked[:1], asked):
        observations = driven.balancers.gates(some)
        row = observations[asked[0].id]
        assert isinstance(row, Gate)
        assert row.state is state
        assert (row.retry_after_s > 0) == (state is GateState.CLOSED)
    assert observations["nobody"] == Gate(GateState.LOST)
    assert len(driven.cloud.calls) == before + 2


def test_the_next_poll_comes_soon_after_the_end() -> None:
    """The poll that sees a change's end: 1.5 s late in the median, 5 s at most."""
    late: list[float] = []
    soon = 1200  # those that end within two minutes
    for tenth in range(1, 3000):
        ends = tenth / 10
        at = pace.FIRST_POLL_S
        while at < ends:
            at += pace.poll_after_s(at)
        late.append(at - ends)
    assert sorted(late[:soon])[soon // 2] <= 1.5
    assert max(late) <= 5.0


def many(count: int) -> list[driver.Driver]:
    """Return Services on one ground, served by one process."""
    on = driver.ground()
    nodes = tuple(on.node(number) for number in range(1, 11))
    ports = tuple(Port(80 + at, TCP, 30080 + at) for at in range(2))
    drivers = [
        driver.Driver(
            on, driver.service(nodes, name=f"web-{at}", uid=f"uid-{at}", ports=ports)
        )
        for at in range(count)
    ]
    for each in drivers:
        each.balancers = drivers[0].balancers
    return drivers


def test_what_follows_at_once_reads_little_again() -> None:
    """Children once per load balancer; networks and the Nodes' subnet once a minute."""
    first, second, third = many(3)
    reads: list[dict[str, int]] = []
    for each in (first, second, third):
        each.depth = Depth.CHANGED
        if each is third:
            each.cloud.clock.sleep(plan_environment.KEPT_S)
        before = len(each.cloud.calls)
        each.settle()
        paths = [c.path for c in each.cloud.calls[before:] if c.method == "GET"]
        kinds = ("networks", "ports", "lbaas/listeners")
        reads.append({kind: paths.count(kind) for kind in kinds})
    once = {"networks": 1, "ports": 1, "lbaas/listeners": 1}
    assert reads == [once, {**once, "networks": 0, "ports": 0}, once]


def observe(services: list[driver.Driver], depth: Depth) -> int:
    """Observe all at once with a process that knows nothing; count calls and steps."""
    first = services[0]
    first.restart()
    targets = []
    for each in services:
        spec = first.balancers.parse(each.facts)
        targets.append(Target(first.balancers.refer(each.facts), spec))  # type: ignore[arg-type]
    before = len(first.cloud.calls)
    observations = first.balancers.observe(targets, depth)
    for target in targets:
        observation = observations[target.ref]
        assert isinstance(observation, Seen)
        assert first.balancers.plan(target, observation.value, driver.NOW).settled
    return len(first.cloud.calls) - before


def test_calls_do_not_grow_with_what_is_in_a_load_balancer() -> None:
    """The table of reads: for one Service of 20 ports, for 10, for 30."""
    table: dict[str, int] = {}
    ports = tuple(Port(80 + at, TCP, 30080 + at) for at in range(20))
    config = settings.LoadBalancer(create_monitor=True)
    single = start(config, nodes=10, ports=ports)
    single.cloud.octavia.build_s = 0.0
    before = len(single.cloud.calls)
    single.settle()
    table["create 20 ports, without polls"] = len(single.cloud.calls) - before
    single.cloud.clock.sleep(60)
    before = len(single.cloud.calls)
    single.one_pass()
    table["no change, 20 ports, monitors"] = len(single.cloud.calls) - before
    single.depth = Depth.CHANGED
    single.cloud.clock.sleep(60)
    single.one_pass()
    before = len(single.cloud.calls)
    single.one_pass()
    table["no change, nothing new"] = len(single.cloud.calls) - before
    for count in (10, 30):
        services = many(count)
        for each in services:
            each.settle()
        services[0].cloud.clock.sleep(60)
        table[f"{count} Services at once"] = observe(services, Depth.TREE)
    for name, calls in table.items():
        print(f"{name:35} {calls:4}")
    assert table["create 20 ports, without polls"] <= 30
    assert table["no change, 20 ports, monitors"] <= 8
    assert table["no change, nothing new"] <= 3
    assert table["10 Services at once"] <= 17
    assert table["30 Services at once"] <= 37


def test_what_is_kept_is_not_trusted_after_a_change() -> None:
    """Anything that moves updated_at is read anew, at whichever depth."""
    driven = start()
    driven.depth = Depth.CHANGED
    driven.settle()
    for _ in range(3):
        driven.cloud.clock.sleep(60)
        driven.one_pass()
    balancer_id = str(driven.balancer["id"])
    body: wire.Json = {"listener": {"connection_limit": 3}}
    url = f"fake://load-balancer/lbaas/listeners/{driven.listener['id']}"
    driven.cloud.octavia.answer(wire.call_of("load-balancer", "PUT", url, body, {}))
    driven.cloud.clock.sleep(60)
    steps = driven.settle()
    assert len(steps) == 1
    assert driven.listener["connection_limit"] == -1
    assert driven.balancer["id"] == balancer_id


def test_a_thousand_nodes_cost_the_same_lists() -> None:
    """With managed security groups: calls per observation do not grow with Nodes."""
    counts = []
    for nodes in (2, 200):
        driven = start(settings.LoadBalancer(manage_security_groups=True), nodes=nodes)
        driven.settle()
        driven.cloud.clock.sleep(60)
        before = len(driven.cloud.calls)
        driven.one_pass()
        counts.append(len(driven.cloud.calls) - before)
    assert counts[0] == counts[1] <= 9


def test_a_service_with_wrong_facts_writes_nothing_and_can_be_deleted() -> None:
    """What can't be parsed does not keep its load balancer for ever."""
    driven = start()
    driven.settle()
    writes = len(driven.cloud.writes)
    driven.annotate({keys.SUBNET_ID: "not-an-id"})
    driven.change(ports=())
    driven.settle()
    assert len(driven.cloud.writes) == writes
    assert {problem.reason for problem in driven.problems} == {
        Reason.INVALID_ANNOTATION,
        Reason.INVALID_SERVICE,
    }
    driven.settle(gone=True)
    assert driven.cloud.octavia.load_balancers == {}


def test_members_without_a_node_port_are_left_out() -> None:
    """allocateLoadBalancerNodePorts is false: an empty pool, and a problem."""
    driven = start(ports=(Port(80, TCP, 0), Port(81, TCP, 30081)))
    driven.settle()
    assert driven.members == []
    assert [problem.reason for problem in driven.problems] == [Reason.NO_NODE_PORT]


def test_session_affinity_that_is_changed_is_applied() -> None:
    """Octavia can; the reference does it only when it makes a pool."""
    driven = start()
    driven.settle()
    for affinity, observed in ((True, {"type": "SOURCE_IP"}), (False, None)):
        driven.change(has_affinity=affinity)
        driven.settle()
        assert driven.pool["session_persistence"] == observed


def test_plans_of_others_are_refused() -> None:
    """A step or an observation of another room is a bug, not a wish."""
    driven = start()
    plan = driven.plan()
    assert isinstance(plan, Plan)
    foreign = dataclasses.replace(plan.steps[0], native=None)
    with pytest.raises(TypeError):
        driven.balancers.apply(foreign)


def test_a_vip_port_that_was_deleted_is_reported() -> None:
    """It is looked for at depth FULL, all load balancers with one call."""
    driven = start()
    driven.settle()
    del driven.cloud.neutron.ports[str(driven.balancer["vip_port_id"])]
    driven.depth = Depth.FULL
    driven.one_pass()
    assert [problem.reason for problem in driven.problems] == [CommonReason.DRIFT]
    assert "was deleted by another client" in driven.problems[0].message


def test_a_header_that_was_taken_away_by_hand_comes_back() -> None:
    """Others that somebody has added stay."""
    driven = start(annotations={keys.FORWARDED_FOR: "true"})
    driven.settle()
    driven.listener["insert_headers"] = {"X-Forwarded-Port": "true"}
    assert len(driven.settle()) == 1
    assert driven.listener["insert_headers"] == {
        "X-Forwarded-Port": "true",
        "X-Forwarded-For": "true",
    }


@pytest.mark.parametrize("to_local", [False, True])
def test_members_are_asked_at_the_right_port_when_the_policy_changes(
    to_local: bool,
) -> None:
    """At once, though no list shows where they are asked now."""
    local: dict[str, object] = {"is_local": True, "health_check_node_port": 31000}
    cluster: dict[str, object] = {"is_local": False, "health_check_node_port": 0}
    driven = start()
    driven.annotate({keys.ENABLE_MONITOR: "true"})
    driven.change(**(cluster if to_local else local))
    driven.settle()
    driven.restart()
    driven.depth = Depth.TREE
    driven.change(**(local if to_local else cluster))
    driven.settle()
    asked = {member["monitor_port"] for member in driven.members}
    assert asked == {31000 if to_local else None}
    assert driven.monitor["type"] == ("HTTP" if to_local else "TCP")
    assert driven.settle() == []


def test_what_was_read_right_after_a_change_is_not_kept_for_long() -> None:
    """updated_at has a resolution of a second: another change may hide in it."""
    driven = start()
    driven.depth = Depth.CHANGED
    driven.settle()
    driven.balancer["updated_at"] = "2026-02-01T00:00:00"
    driven.one_pass()
    driven.listener["connection_limit"] = 3  # within that second
    driven.cloud.clock.sleep(children.FRESH_S)
    assert len(driven.settle()) == 1
    assert driven.listener["connection_limit"] == -1


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (keys.NETWORK_ID, driver.UID, "a requested network does not exist"),
        (keys.PORT_ID, driver.UID, "a requested port does not exist"),
    ],
)
def test_what_octavia_does_not_know_is_said_in_words(
    key: str, value: str, message: str
) -> None:
    """The owner can do something about it; the bare status would not tell what."""
    driven = start()
    driven.annotate({key: value})
    plan = driven.plan()
    assert isinstance(plan, Plan)
    with pytest.raises(errors.InvalidRequest) as raised:
        driven.balancers.apply(plan.steps[0])
    assert message in raised.value.summary


def test_a_tls_container_that_can_not_be_read_is_said_before_anything_is_made() -> None:
    """With container-store external nobody looks."""
    driven = start()
    driven.annotate({keys.TLS_REF: f"https://keys.example/v1/secrets/{driver.UID}"})
    assert driven.settle() == []
    assert [(p.reason, p.is_fatal) for p in driven.problems] == [
        (OctaviaReason.TLS, True)
    ]
    other = start(settings.LoadBalancer(container_store="external"))
    other.annotate({keys.TLS_REF: "anything"})
    other.settle()
    assert other.listener["default_tls_container_ref"] == "anything"


def test_tls_in_a_cloud_without_a_key_manager_is_a_wrong_wish() -> None:
    """Not an outage: it is told once, and counted, as long as it is asked for."""
    driven = start()
    driven.cloud.absent = {"key-manager"}
    driven.annotate({keys.TLS_REF: f"https://keys.example/v1/secrets/{driver.UID}"})
    for _ in range(20):
        assert driven.settle() == []
        assert [problem.reason for problem in driven.problems] == [OctaviaReason.TLS]
    driven.annotate({keys.TLS_REF: None})
    driven.settle()
    assert driven.facts.ingress


def test_udp_monitors_get_the_least_delay_and_keep_a_shorter_one() -> None:
    """Octavia refuses less than 3 s by default; its operator may allow it."""
    driven = start(ports=(Port(53, UDP, 30053),))
    driven.annotate({keys.ENABLE_MONITOR: "true", keys.MONITOR_DELAY: "2"})
    driven.settle()
    assert driven.monitor["delay"] == 3
    driven.monitor["delay"] = 2
    assert driven.settle() == []


def test_deleting_what_is_gone_is_done() -> None:
    """Somebody, or we ourselves before a death, was there first."""
    driven = start()
    driven.settle()
    plan = driven.plan(gone=True)
    assert isinstance(plan, Plan)
    driven.cloud.octavia._drop(str(driven.balancer["id"]))
    driven.cloud.neutron.floating_ips.clear()
    for step in plan.steps:
        driven.balancers.apply(step)
    assert driven.settle(gone=True) == []


def test_a_listener_that_was_deleted_by_hand_gets_its_pool_back() -> None:
    """Its members and their states stay; no pool is left that nobody uses."""
    driven = start()
    driven.settle()
    octavia, pool_id = driven.cloud.octavia, driven.pool["id"]
    url = f"fake://load-balancer/lbaas/listeners/{driven.listener['id']}"
    octavia.answer(wire.call_of("load-balancer", "DELETE", url, {}, {}))
    octavia.finish()
    steps = driven.settle()
    assert [step.split()[0] for step in steps] == ["create"]
    assert driven.pool["id"] == pool_id
    assert list(octavia.pools) == [pool_id]


def test_an_address_that_is_taken_is_no_conflict_of_a_moment() -> None:
    """Octavia answers both with 409; this one only another wish can end."""
    driven = start(load_balancer_ip="10.0.0.1")  # that of a Node
    driven.annotate({keys.INTERNAL: "true"})
    plan = driven.plan()
    assert isinstance(plan, Plan)
    with pytest.raises(errors.InvalidRequest) as raised:
        driven.balancers.apply(plan.steps[0])
    assert "the address 10.0.0.1 is already in use" in raised.value.summary


LACKING = [
    # annotation, value, the API that lacks it, what is said as the reference says it
    (keys.AVAILABILITY_ZONE, "az1", (2, 13), "LoadBalancerAvailabilityZonesIgnored"),
    (keys.SOURCE_RANGES, "10.0.0.0/8", (2, 11), "LoadBalancerSourceRangesIgnored"),
    (keys.FLAVOR_ID, "00000000-0000-4000-8000-00000000000f", (2, 5), ""),
    (keys.TIMEOUT_MEMBER_DATA, "7000", (2, 0), ""),
]


@pytest.mark.parametrize("ovn", [False, True], ids=["old", "ovn"])
@pytest.mark.parametrize(("key", "value", "version", "event"), LACKING)
def test_what_the_provider_lacks_is_said_as_long_as_it_is_asked_for(
    key: str, value: str, version: tuple[int, int], event: str, ovn: bool
) -> None:
    """The Service is served all the same; without the annotation nothing is said."""
    config = settings.LoadBalancer()
    if ovn:
        config = settings.LoadBalancer(lb_provider="ovn", lb_method="SOURCE_IP_PORT")
    driven = start(config)
    if not ovn:
        driven.cloud.octavia.version = version
    driven.annotate({key: value})
    driven.settle()
    assert driven.facts.ingress
    problems = [p for p in driven.problems if p.reason is CommonReason.UNSUPPORTED]
    assert [problem.event for problem in problems] == [event]
    driven.annotate({key: None})
    driven.settle()
    assert driven.problems == ()


def test_a_key_manager_that_does_not_answer_delays_nobody_for_long() -> None:
    """Services with TLS are unknown; the others of the batch are observed."""
    on = driver.ground()
    node = on.node(1)
    balancers = driver.Driver(on, driver.service((node,))).balancers
    url = "https://keys.example/v1/containers/00000000-0000-4000-8000-0000000000"

    def target(number: int, annotations: dict[str, str]) -> Target:
        facts = driver.service(
            (node,), name=f"web-{number}", uid=f"{number}", annotations=annotations
        )
        spec = balancers.parse(facts)
        assert isinstance(spec, Spec)
        return Target(balancers.refer(facts), spec)

    tls = [target(n, {keys.TLS_REF: f"{url}{n}"}) for n in range(10, 30)]
    plain = [target(n, {}) for n in range(5)]

    def hang(call: wire.Call) -> session.Fault | None:
        if call.service != "key-manager":
            return None
        on.cloud.clock.sleep(min(60.0, on.cloud.timeout_s))
        return session.Fault()

    on.cloud.fault = hang
    began = on.cloud.clock.now
    for _ in range(3):
        observations = balancers.observe([*tls, *plain], Depth.TREE)
        assert all(isinstance(observations[target.ref], Unknown) for target in tls)
        assert all(isinstance(observations[target.ref], Seen) for target in plain)
    assert on.cloud.clock.now - began <= plan_environment.TLS_TIMEOUT_S
    on.cloud.fault = session.nothing
    on.cloud.clock.sleep(plan_environment.TLS_PAUSE_S)
    observations = balancers.observe([*tls, *plain], Depth.TREE)
    assert all(isinstance(observation, Seen) for observation in observations.values())


@pytest.mark.parametrize("number", [1, 2, 10])
def test_a_project_that_is_mostly_of_others_is_not_read_whole(number: int) -> None:
    """Listeners, pools and monitors are asked for by load balancer."""
    on = driver.ground()
    node = on.node(1)
    config = settings.LoadBalancer(create_monitor=True)
    facts = driver.service((node,))
    driven = [
        driver.Driver(
            on, dataclasses.replace(facts, name=f"web-{n}", uid=f"uid-{n}"), config
        )
        for n in range(number)
    ]
    for row in driven:
        row.settle()
    octavia = on.cloud.octavia
    some = dict(driven[0].balancer)
    for n in range(children.CROWD):
        other = {**some, "id": f"other-{n}", "name": f"other-{n}", "tags": []}
        octavia.load_balancers[f"other-{n}"] = {**other, "vip_port_id": ""}
    fresh = driver.Driver(on, facts, config).balancers
    targets = []
    for row in driven:
        spec = fresh.parse(row.facts)
        assert isinstance(spec, Spec)
        targets.append(Target(fresh.refer(row.facts), spec))
    before = len(on.cloud.calls)
    observations = fresh.observe(targets, Depth.TREE)
    calls = on.cloud.calls[before:]
    for target, read in observations.items():
        assert isinstance(read, Seen)
        plan = fresh.plan(
            next(row for row in targets if row.ref == target), read.value, driver.NOW
        )
        assert plan.settled
    whole = [c for c in calls if c.path in ("lbaas/listeners", "lbaas/healthmonitors")]
    assert all(call.query.get("load_balancer_id") for call in whole)
    assert len(calls) <= 6 + 4 * number
