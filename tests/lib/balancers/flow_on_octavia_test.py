"""The flow and the Octavia room together, on Octavia's state machine in memory.

The counts are those of the wire, polls included; beside them what was counted of the
reference on a real Octavia.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lib.balancers.model import Topic
from lib.cloud.load_balancers import Reason
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason
from lib.kube import resources
from lib.plans import model as plans

MakeScene = Callable[..., Any]


def test_a_service_gets_its_load_balancer_and_leaves_nothing(
    make_scene: MakeScene,
) -> None:
    """Status, annotations and finalizer; then no trace of it."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80, 443))
    (balancer,) = scene.cloud.octavia.load_balancers.values()
    (ip,) = scene.cloud.neutron.floating_ips.values()
    result = scene.ground.get("web")["metadata"]
    assert scene.address("web") == ip["floating_ip_address"]
    assert result["annotations"] == {
        keys.LOAD_BALANCER_ID: balancer["id"],
        keys.OWNED_ID: balancer["id"],
        keys.LOAD_BALANCER_ADDRESS: ip["floating_ip_address"],
    }
    assert result["finalizers"] == ["service.kubernetes.io/load-balancer-cleanup"]
    scene.calls(lambda: scene.ground.delete("web"))
    assert scene.cloud.octavia.load_balancers == {}
    assert scene.cloud.neutron.floating_ips == {}
    assert scene.ground.get("web") is None


def test_one_in_error_is_made_again_with_pauses_in_between(
    make_scene: MakeScene,
) -> None:
    """Three failures, then it works; other Services are not affected."""
    scene = make_scene()
    scene.cloud.octavia.builds_fail = 3
    scene.ground.service("web", 80)
    for _ in range(20):
        scene.process.settle(60.0)
    assert scene.address("web")
    assert len(scene.cloud.octavia.load_balancers) == 1
    calls = [call for call in scene.cloud.writes if call.path == "lbaas/loadbalancers"]
    assert len(calls) == 4


def test_what_it_costs(make_scene: MakeScene) -> None:
    """The table of calls: ours at most what was promised."""
    table: list[tuple[str, int, int, str]] = []
    monitored = settings.LoadBalancer(create_monitor=True)
    scene = make_scene(10, monitored)
    ports = range(8000, 8020)
    create = scene.calls(lambda: scene.ground.service("web", *ports))
    table.append(("create: 20 ports, monitors, 10 Nodes", create, 40, "82-90"))
    scene.process.settle(60.0)
    change = scene.calls(lambda: scene.again(Topic.DRIFT))
    table.append(("no change, all read", change, 8, "64"))
    table.append(("60 s of nothing", scene.calls(), 0, "0"))
    restart = scene.calls(scene.start)
    table.append(("restart", restart, 20, "110"))
    scene.process.settle(60.0)
    node = scene.calls(scene.add_node)
    table.append(("one Node added, 20 ports", node, 65, "143"))
    delete = scene.calls(lambda: scene.ground.delete("web"))
    table.append(("delete", delete, 12, "12-16"))
    two = make_scene(10)
    two.calls(lambda: two.ground.service("web", 80, 443))
    two.process.settle(60.0)
    two.calls(lambda: two.again(Topic.DRIFT))
    table.append(("one Node added, 2 ports", two.calls(two.add_node), 14, "27"))
    ten = make_scene(10)
    names = [f"web-{at}" for at in range(10)]

    def all_ten() -> None:
        for name in names:
            ten.ground.service(name, 80, 443)

    def none() -> None:
        for name in names:
            ten.ground.delete(name)

    table.append(("10 Services of 2 ports: create", ten.calls(all_ten), 140, "242"))
    ten.process.settle(60.0)
    table.append(("10 Services: 60 s of nothing", ten.calls(), 0, "0"))
    table.append(("10 Services: restart", ten.calls(ten.start), 30, "146"))
    table.append(("10 Services: delete", ten.calls(none), 90, "111"))
    for what, owned, most, reference in table:
        print(f"{what:40} {owned:4} <= {most:3}   reference {reference}")
    assert [row for row in table if row[1] > row[2]] == []


SLOW_S = (1.0, 3.0, 5.0, 10.0, 30.0, 60.0)
"""What Octavia takes for a change."""


def test_a_slow_octavia_raises_no_number_of_calls(make_scene: MakeScene) -> None:
    """A Node for 2 ports: 14 calls, 10 Services of 2 ports: 140, however long it takes.

    The first change of a load balancer shows how long its changes take; it is printed.
    """
    table: dict[float, tuple[int, list[int], int]] = {}
    for update_s in SLOW_S:
        two, ten = make_scene(10), make_scene(10)
        for scene in (two, ten):
            scene.cloud.octavia.update_s = update_s
            scene.cloud.octavia.build_s = max(5.0, 2 * update_s)
        two.ground.service("web", 80, 443)
        two.process.settle(200.0)
        nodes = [two.calls(two.add_node, quiet_s=200.0) for _ in range(5)]
        for number in range(10):
            ten.ground.service(f"web-{number}", 80, 443)
        table[update_s] = nodes[0], nodes[1:], ten.calls(quiet_s=200.0)
    for update_s, (first, later, create) in table.items():
        print(f"{update_s:5.0f} s: Nodes {first}, then {later} <= 14; {create} <= 140")
    assert table.keys() == set(SLOW_S)
    assert {s: row for s, row in table.items() if max(row[1]) > 14} == {}
    assert {s: row for s, row in table.items() if row[2] > 140} == {}


def test_what_others_delete_while_members_are_set_is_repaired(
    make_scene: MakeScene,
) -> None:
    """The verification reads only members, and lists all again when they differ."""
    scene = make_scene()
    octavia = scene.cloud.octavia
    scene.calls(lambda: scene.ground.service("web", 80, 443))
    scene.process.settle(60.0)
    scene.calls(lambda: scene.again(Topic.DRIFT))
    (deleted,) = (
        x for x, row in octavia.listeners.items() if row["protocol_port"] == 80
    )

    def delete(call: wire.Call) -> None:
        if call.method == "PUT" and call.parts[-1] == "members":
            octavia.listeners.pop(deleted, None)

    scene.cloud.after = delete
    calls = scene.calls(scene.add_node)
    print(f"{calls} calls")
    assert calls <= 40
    assert {listener["protocol_port"] for listener in octavia.listeners.values()} == {
        80,
        443,
    }


@pytest.mark.parametrize("late_s", [0.0, 6.0, 21.0])
def test_what_was_made_though_nobody_heard_is_found_soon(
    make_scene: MakeScene, late_s: float
) -> None:
    """Octavia comes to it late and takes its time: no second one, and few calls."""
    scene = make_scene()
    octavia, ground = scene.cloud.octavia, scene.ground
    octavia.build_s = 20.0
    lost = scene.lose_creation()
    ground.service("web", 80)
    began = ground.now_s
    reads: list[float] = []
    while not octavia.load_balancers or ground.now_s < began + late_s + 30:
        before = len(scene.cloud.calls)
        scene.process.services.relist()
        scene.process.turn()
        reads += [ground.now_s] * (len(scene.cloud.calls) - before)
        ground.now_s += 0.25
        if lost and not octavia.load_balancers and ground.now_s >= began + late_s:
            octavia.answer(lost[0])
            ready_at = ground.now_s + octavia.build_s
    assert scene.address("web")
    assert len(octavia.load_balancers) == 1
    assert min(at for at in reads if at >= ready_at) - ready_at <= 4.0
    assert len(reads) <= 30 + late_s


@pytest.mark.parametrize("late_s", [1.0, 10.0, 25.0])
def test_who_is_deleted_before_it_is_known_what_was_made_leaves_nothing(
    make_scene: MakeScene, late_s: float
) -> None:
    """Octavia comes to a request whose answer was lost when the Service is deleted."""
    scene = make_scene()
    octavia, ground = scene.cloud.octavia, scene.ground
    lost = scene.lose_creation()
    ground.service("web", 80)
    scene.process.services.relist()
    scene.process.turn()
    assert lost
    ground.delete("web")
    began = ground.now_s
    while ground.now_s < began + late_s:
        scene.process.services.relist()
        scene.process.turn()
        ground.now_s += 0.5
    octavia.answer(lost[0])
    scene.process.settle(60.0)
    assert octavia.load_balancers == {}
    assert scene.cloud.neutron.floating_ips == {}
    assert ground.get("web") is None


def test_what_was_made_when_nobody_looked_any_more_goes_soon(
    make_scene: MakeScene,
) -> None:
    """A second one was created in between; the next drift check is far away."""
    scene = make_scene()
    octavia = scene.cloud.octavia
    lost = scene.lose_creation()
    scene.ground.service("web", 80)
    scene.process.settle(60.0)
    assert scene.address("web")
    octavia.answer(lost[0])
    assert len(octavia.load_balancers) == 2
    scene.process.settle(150.0)
    (left,) = octavia.load_balancers.values()
    assert left["vip_address"]
    (ip,) = scene.cloud.neutron.floating_ips.values()
    assert (ip["port_id"], scene.address("web")) == (
        left["vip_port_id"],
        ip["floating_ip_address"],
    )


def test_what_octavia_refuses_is_one_event_and_counted_until_it_is_corrected(
    make_scene: MakeScene,
) -> None:
    """Repeated after nine minutes, however often it is retried."""
    scene = make_scene(config=settings.LoadBalancer())
    ground = scene.ground
    unknown_id = {keys.NETWORK_ID: "00000000-0000-4000-8000-0000000000ee"}
    ground.service("web", 80, annotations=unknown_id)
    for _ in range(15):
        scene.process.settle(60.0)
    tries = [call for call in scene.cloud.calls if call.method == "POST"]
    assert len(tries) > 3
    scene.process.say()
    messages = [event for event in ground.events() if event.startswith("Warning")]
    assert len(messages) == 1
    assert "a requested network does not exist" in messages[0]
    events = ground.api.all(resources.EVENTS)
    assert {e["count"] for e in events if e["type"] == "Warning"} == {2}
    assert scene.process.flow.problems()[CommonReason.REFUSED] == 1
    ground.service("web", 80, annotations=dict.fromkeys(unknown_id))
    scene.process.settle(60.0)
    assert scene.address("web")
    assert set(scene.process.flow.problems().values()) == {0}


IN_USE = "The VIP IP address is already in use: "
REFUSALS = {
    # what is refused, the text of the 409, what the owner is told
    "address": (
        "lbaas/loadbalancers",
        f"{IN_USE}IP address 10.0.0.9 already allocated in subnet x",
        "already in use or not available",
    ),
    "subnet": (
        "lbaas/loadbalancers",
        f"{IN_USE}No more IP addresses available on network x.",
        "the subnet has no address left",
    ),
    "ports": (
        "lbaas/loadbalancers",
        f"{IN_USE}Quota exceeded for resources: ['port'].",
        "the project's network quota is used up",
    ),
    "floating IPs": (
        "floatingips",
        "Quota exceeded for resources: ['floatingip'].",
        "the project's network quota is used up",
    ),
    "floating address": (
        "floatingips",
        "IP address 203.0.113.9 already allocated in subnet x",
        "the address is already in use",
    ),
    "other": (
        "lbaas/loadbalancers",
        "Pool x is in use by L7 policy y",
        "it conflicts with an object that is in use",
    ),
    "for minutes": (
        "lbaas/loadbalancers",
        "Load Balancer x is immutable and cannot be updated.",
        "the load balancer is immutable: another operation is in progress, for minutes",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_conflict_that_lasts_is_reported(make_scene: MakeScene, name: str) -> None:
    """Octavia and Neutron answer 409 to all of them; only one would end by itself."""
    path, text, message = REFUSALS[name]
    scene = make_scene()
    scene.cloud.fault = lambda call: (
        session.Fault(409, message=text)
        if (call.method, call.path) == ("POST", path)
        else None
    )
    scene.ground.service("web", 80)
    for _ in range(10):
        scene.process.settle(60.0)
    scene.process.say()
    events = [event for event in scene.ground.events() if event.startswith("Warning")]
    assert len(events) == 1
    assert "SyncLoadBalancerFailed" in events[0]
    assert message in events[0]
    assert scene.process.flow.problems()[CommonReason.REFUSED] == 1
    scene.cloud.fault = session.nothing
    scene.process.settle(400.0)
    assert scene.address("web")
    assert set(scene.process.flow.problems().values()) == {0}


def test_a_conflict_that_ends_soon_is_not_reported(make_scene: MakeScene) -> None:
    """Another client changes the load balancer at this moment."""
    scene = make_scene()
    until = scene.ground.now_s + 60
    scene.cloud.fault = lambda call: (
        session.Fault(409, message="Load Balancer x is immutable and cannot be updated")
        if call.method == "POST" and scene.ground.now_s < until
        else None
    )
    scene.ground.service("web", 80)
    scene.process.settle(120.0)
    scene.process.say()
    assert not [event for event in scene.ground.events() if event.startswith("Warning")]
    assert scene.address("web")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "1"}])
def test_a_creation_that_a_proxy_did_not_wait_for_is_not_made_twice(
    make_scene: MakeScene, status: int, headers: dict[str, str]
) -> None:
    """Its outcome is unknown, whatever header the answer has."""
    scene = make_scene()
    octavia = scene.cloud.octavia
    lost: list[wire.Call] = []

    def late(call: wire.Call) -> session.Fault | None:
        if (call.method, call.path) != ("POST", "lbaas/loadbalancers") or lost:
            return None
        lost.append(call)
        return session.Fault(status, headers=headers)

    scene.cloud.fault = late
    scene.ground.service("web", 80)
    began = scene.ground.now_s
    while scene.ground.now_s < began + 60:
        scene.process.services.relist()
        scene.process.turn()
        scene.ground.now_s += 0.5
        if scene.ground.now_s == began + 20:
            octavia.answer(lost[0])
    posts = [c for c in scene.cloud.writes if c.path == "lbaas/loadbalancers"]
    assert len(posts) == 1
    assert len(octavia.load_balancers) == 1
    assert scene.address("web")


def test_what_every_pass_finds_is_said_once(make_scene: MakeScene) -> None:
    """The reference says it at each of its passes; the metric shows that it lasts."""
    scene = make_scene(config=settings.LoadBalancer(lb_method="BEST"))
    scene.ground.service("web", 80)
    for _ in range(5):
        scene.process.settle(120.0)
        scene.again(Topic.DRIFT)
        scene.process.say()
    messages = [
        event
        for event in scene.ground.api.all(resources.EVENTS)
        if event["reason"] == "LoadBalancerLbMethodUnknown"
    ]
    assert [event["count"] for event in messages] == [1]
    assert scene.process.flow.problems()[Reason.INVALID_ANNOTATION] == 1


@pytest.mark.parametrize(
    ("wrong", "event", "is_served", "right"),
    [
        ({keys.METHOD: "ROUND_ROBIN"}, "SyncLoadBalancerFailed", False, {}),
        (
            {keys.SOURCE_RANGES: "192.0.2.0/24"},
            "LoadBalancerSourceRangesIgnored",
            True,
            {keys.SOURCE_RANGES: None},
        ),
    ],
)
def test_what_provider_ovn_lacks_is_said_once(
    make_scene: MakeScene,
    wrong: dict[str, str],
    event: str,
    is_served: bool,
    right: dict[str, str | None],
) -> None:
    """Optional parts are omitted; the rest waits for a change."""
    config = settings.LoadBalancer(lb_provider="ovn", lb_method="SOURCE_IP_PORT")
    scene = make_scene(config=config)
    ground = scene.ground
    ground.service("web", 80, annotations=wrong)
    for _ in range(4):
        scene.process.settle(60.0)
        scene.again(Topic.DRIFT)
    scene.process.say()
    messages = [e for e in ground.api.all(resources.EVENTS) if e["type"] == "Warning"]
    assert [(event["reason"], event["count"]) for event in messages] == [(event, 1)]
    assert scene.process.flow.problems()[CommonReason.UNSUPPORTED] == 1
    assert bool(scene.cloud.octavia.load_balancers) is is_served
    ground.service("web", 80, annotations={keys.METHOD: "SOURCE_IP_PORT", **right})
    scene.process.settle(60.0)
    assert scene.address("web")
    assert scene.process.flow.problems()[CommonReason.UNSUPPORTED] == 0


def test_services_that_move_leave_nothing_and_never_get_in_each_others_way(
    make_scene: MakeScene,
) -> None:
    """In parallel: three from one load balancer to another, and one from its own."""
    scene = make_scene(config=settings.LoadBalancer(max_shared_lb=9))
    ground, octavia = scene.ground, scene.cloud.octavia
    for name in ("first", "second", "mover"):
        ground.service(name, 80)
    scene.process.settle(60.0)
    own = {
        name: ground.get(name)["metadata"]["annotations"][keys.LOAD_BALANCER_ID]
        for name in ("first", "second", "mover")
    }

    def send(where: str, **movers: int) -> None:
        for name, port in movers.items():
            ground.service(name, port, annotations={keys.LOAD_BALANCER_ID: own[where]})

    send("first", a=81, b=82, c=83)
    scene.process.settle(60.0)
    calls, writes = len(scene.cloud.calls), len(scene.cloud.writes)
    send("second", a=81, b=82, c=83, mover=84)
    scene.process.settle(120.0)
    calls, writes = len(scene.cloud.calls) - calls, len(scene.cloud.writes) - writes
    print(f"{calls} calls to move four, {writes} of them writes")
    # Tags, listener, pool, members there; pool, listener, tags here, or what is whole.
    assert writes == 4 * 4 + 3 * 3 + 2
    assert own["mover"] not in octavia.load_balancers
    ports: dict[str, list[int]] = {id_: [] for id_ in octavia.load_balancers}
    for listener in octavia.listeners.values():
        (on,) = wire.objects(listener, "loadbalancers")
        ports[str(on["id"])].append(int(str(listener["protocol_port"])))
    ports = {id_: sorted(some) for id_, some in ports.items()}
    assert ports == {own["first"]: [80], own["second"]: [80, 81, 82, 83, 84]}
    assert len(octavia.pools) == len(octavia.listeners)
    shown = {scene.address(name) for name in ("second", "mover", "a", "b", "c")}
    assert len(shown) == 1
    assert set(scene.process.flow.problems().values()) == {0}


def test_the_plan_of_a_service_that_is_gone_bars_nobody(make_scene: MakeScene) -> None:
    """Another client removes its finalizer during a write for it."""
    scene = make_scene()
    ground = scene.ground
    scene.calls(lambda: ground.service("web", 80))
    id_ = ground.get("web")["metadata"]["annotations"][keys.LOAD_BALANCER_ID]
    taken: list[wire.Call] = []

    def take(call: wire.Call) -> None:
        if call.method == "POST" and call.path == "lbaas/listeners" and not taken:
            taken.append(call)
            result = ground.get("second")
            result["metadata"]["finalizers"] = []
            ground.api.put(resources.SERVICES, result)
            ground.delete("second")
            scene.process.services.relist()

    scene.cloud.after = take
    ground.service("second", 81, annotations={keys.LOAD_BALANCER_ID: id_})
    scene.process.settle(60.0)
    assert taken
    ground.service("web", 80, 443)
    assert scene.process.settle(60.0) < 30.0
    listeners = scene.cloud.octavia.listeners.values()
    assert {listener["protocol_port"] for listener in listeners} == {80, 81, 443}


def test_who_shares_is_served_once_the_owner_has_its_address(
    make_scene: MakeScene,
) -> None:
    """It does not wait for the next drift check; until then it is rarely read."""
    scene = make_scene()
    ground = scene.ground
    scene.calls(lambda: ground.service("web", 80, annotations={keys.INTERNAL: "true"}))
    id_ = ground.get("web")["metadata"]["annotations"][keys.LOAD_BALANCER_ID]

    def share() -> None:
        ground.service("second", 81, annotations={keys.LOAD_BALANCER_ID: id_})
        for _ in range(20):
            scene.process.settle(30.0)

    print(f"{scene.calls(share)} calls in ten minutes without an address")
    assert scene.process.flow.problems()[OctaviaReason.NO_FLOATING_NETWORK] == 1
    ground.service("web", 80, annotations={keys.INTERNAL: None})
    began = ground.now_s
    while not ground.get("second").get("status", {}).get("loadBalancer"):
        scene.process.services.relist()
        scene.process.turn()
        ground.now_s += 0.5
        assert ground.now_s < began + 310.0
    assert scene.address("second") == scene.address("web")
    scene.process.settle(60.0)
    assert set(scene.process.flow.problems().values()) == {0}
    scene.process.say()
    messages = [e for e in ground.api.all(resources.EVENTS) if e["type"] == "Warning"]
    assert [(event["reason"], event["count"]) for event in messages] == [
        ("SyncLoadBalancerFailed", 2)
    ]


@pytest.mark.parametrize("status", ["PENDING_UPDATE", "PENDING_DELETE"])
def test_one_that_takes_long_to_go_is_asked_for_nothing_but_its_status(
    make_scene: MakeScene, status: str
) -> None:
    """Also by a process that has not begun to delete it; then nothing is left."""
    scene = make_scene()
    ground, octavia = scene.ground, scene.cloud.octavia
    scene.calls(lambda: ground.service("web", 80))
    (balancer,) = octavia.load_balancers.values()
    balancer["provisioning_status"] = status
    ground.delete("web")
    began, before = ground.now_s, len(scene.cloud.calls)
    scene.start()
    while ground.now_s < began + 600.0:
        scene.process.services.relist()
        scene.process.turn()
        ground.now_s += 0.5
    calls = len(scene.cloud.calls) - before
    print(f"{calls} calls in ten minutes")
    assert calls <= 320
    balancer["provisioning_status"] = "ACTIVE"
    assert scene.process.settle(60.0) <= 20.0
    assert octavia.load_balancers == scene.cloud.neutron.floating_ips == {}
    assert ground.get("web") is None


def test_a_group_that_others_use_is_said_while_the_service_waits_for_it(
    make_scene: MakeScene,
) -> None:
    """Another client has assigned it to a port that we cannot see."""
    scene = make_scene()
    managed = dataclasses.replace(scene.config, manage_security_groups=True)
    scene.config = managed
    scene.start()
    ground = scene.ground
    scene.calls(lambda: ground.service("web", 80))

    def refuse(call: wire.Call) -> session.Fault | None:
        if call.method == "DELETE" and call.parts[0] == "security-groups":
            return session.Fault(409, message="Security Group 1-2-3 in use.")
        return None

    scene.cloud.fault = refuse
    ground.delete("web")
    for _ in range(15):
        scene.process.settle(60.0)
    scene.process.say()
    events = ground.api.all(resources.EVENTS)
    (message,) = (event for event in events if event["type"] == "Warning")
    assert (message["reason"], message["count"]) == ("SyncLoadBalancerFailed", 2)
    assert "in use on ports" in message["message"]
    scene.cloud.fault = session.nothing
    scene.process.settle(300.0)
    assert scene.cloud.neutron.groups == {}
    assert ground.get("web") is None


@pytest.mark.parametrize("moves", [False, True])
def test_one_that_fails_to_go_is_tried_again_less_and_less_often(
    make_scene: MakeScene, moves: bool
) -> None:
    """Octavia ends deletions in ERROR; reported once, and deleted in the end.

    moves: the Service has gone to another load balancer, and leaves its own.
    """
    scene = make_scene()
    ground, octavia = scene.ground, scene.cloud.octavia
    ground.service("other", 443)
    scene.calls(lambda: ground.service("web", 80))
    own, other = (
        ground.get(name)["metadata"]["annotations"][keys.LOAD_BALANCER_ID]
        for name in ("web", "other")
    )
    octavia.deletions_fail = 5
    began, before = ground.now_s, len(scene.cloud.calls)
    if moves:
        ground.service("web", 80, annotations={keys.LOAD_BALANCER_ID: other})
    else:
        ground.delete("web")
    while own in octavia.load_balancers:
        scene.process.services.relist()
        scene.process.turn()
        ground.now_s += 0.5
        assert ground.now_s < began + 700.0
    calls = scene.cloud.calls[before:]
    tries = [call for call in calls if call.method == "DELETE" and own in call.path]
    print(f"{len(calls)} calls in {ground.now_s - began} s")
    assert len(tries) == 6
    assert ground.now_s - began >= 10.0 + 20.0 + 40.0 + 80.0
    scene.process.settle(60.0)
    scene.process.say()
    messages = [e for e in ground.api.all(resources.EVENTS) if e["type"] == "Warning"]
    assert [(e["reason"], e["count"]) for e in messages] == [(Reason.IN_ERROR, 1)]
    assert set(scene.process.flow.problems().values()) == {0}


def test_a_look_for_drift_that_comes_due_amid_a_plan_is_made_at_its_end(
    make_scene: MakeScene,
) -> None:
    """It is not lost in a pass that only asks for a gate."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    scene.process.settle(60.0)
    (pool_id,) = scene.cloud.octavia.pools
    member = next(iter(scene.cloud.octavia.members[pool_id].values()))
    scene.ground.service("web", 80, 443, 8443)
    scene.process.services.relist()
    assert scene.process.turn()
    member["weight"] = 7
    scene.again(Topic.DEEP_DRIFT)
    scene.process.settle(60.0)
    assert member["weight"] == 1
    assert len(scene.cloud.octavia.listeners) == 3


def test_a_look_by_lists_reads_what_has_changed_only(make_scene: MakeScene) -> None:
    """Nothing has: lists alone. A change by hand, which moves updated_at: repaired."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))

    def look() -> list[str]:
        before = len(scene.cloud.calls)
        scene.process.settle(60.0)
        scene.calls(lambda: scene.again(Topic.LISTED_DRIFT))
        return [call.path for call in scene.cloud.calls[before:]]

    for _ in range(2):  # what was read right after a change is not kept for long
        look()
    assert look() == ["lbaas/loadbalancers", "floatingips"]
    (listener,) = scene.cloud.octavia.listeners.values()
    listener["connection_limit"] = 5
    (balancer,) = scene.cloud.octavia.load_balancers.values()
    balancer["updated_at"] = "2026-01-01T00:00:01"
    look()
    assert listener["connection_limit"] == -1


def test_one_reconciliation_makes_a_bounded_number_of_writes(
    make_scene: MakeScene,
) -> None:
    """A managed security group is set on the port of each Node."""
    scene = make_scene(70, settings.LoadBalancer(manage_security_groups=True))
    scene.ground.service("web", 80)
    writes: list[int] = []
    for _ in range(400):
        scene.process.services.relist()
        before = len(scene.cloud.writes)
        scene.process.turn()
        writes.append(len(scene.cloud.writes) - before)
        scene.ground.now_s += 0.5
    assert max(writes) <= plans.MOST_STEPS
    ports = [call for call in scene.cloud.writes if call.parts[0] == "ports"]
    assert len({call.parts[1] for call in ports}) == len(ports) == 70
    assert scene.address("web")
