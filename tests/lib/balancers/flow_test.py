"""What the flow says, what it asks for, and what brings a Service in."""

from typing import Any

import pytest

from lib.balancers import flow, model
from lib.balancers.fake.snapshots import NOW
from lib.cloud import errors
from lib.cloud.fake import load_balancers as fake_cloud
from lib.cloud.load_balancers import Node, Reason
from lib.kube import objects, resources
from lib.plans import memory
from lib.plans.model import ApplyStep
from lib.reconcile import failure, queue, runner
from lib.reconcile.outcome import Outcome

ENSURED = [
    "Normal EnsuredLoadBalancer: Ensured load balancer",
    "Normal EnsuringLoadBalancer: Ensuring load balancer",
]


def new_events(ground: Any, process: Any) -> list[str]:
    """Return the Events since the last time."""
    before = getattr(ground, "reported", [])
    process.say()
    ground.reported = ground.events()
    return sorted(event for event in ground.reported if event not in before)


def test_a_life_is_told_in_the_words_of_the_reference(
    ground: Any, make_process: Any
) -> None:
    process = make_process(ground)
    ground.service("web", 80)
    process.settle()
    assert new_events(ground, process) == ENSURED
    ground.nodes = (Node("node-1"),)
    process.queue.add_many(flow.concerned(process.services), model.Topic.NODES)
    process.settle()
    assert new_events(ground, process) == [
        "Normal UpdatedLoadBalancer: Updated load balancer with new hosts"
    ]
    ground.nodes = ()
    process.queue.add_many(flow.concerned(process.services), model.Topic.NODES)
    process.settle()
    assert new_events(ground, process) == [
        "Warning NoNodes: no Node may receive traffic",
        "Warning UnAvailableLoadBalancer: There are no available nodes for "
        "LoadBalancer",
    ]
    ground.delete("web")
    process.settle()
    assert new_events(ground, process) == [
        "Normal DeletedLoadBalancer: Deleted load balancer",
        "Normal DeletingLoadBalancer: Deleting load balancer",
    ]
    assert ground.get("web") is None


def test_a_wrong_annotation_is_told_once_and_costs_no_call(
    ground: Any, make_process: Any
) -> None:
    """Others are not affected, and nothing is retried until it changes."""
    ground.service("wrong", 80, annotations={fake_cloud.ALGORITHM_ANNOTATION: "best"})
    process = make_process(ground)
    process.settle()
    assert not ground.cloud.calls
    assert new_events(ground, process) == [
        "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure "
        f"load balancer: annotation {fake_cloud.ALGORITHM_ANNOTATION}: unsupported "
        'value "best": must be one of round-robin, least-busy'
    ]
    assert process.flow.problems()[Reason.INVALID_ANNOTATION] == 1
    ground.service("wrong", 80, annotations={fake_cloud.ALGORITHM_ANNOTATION: None})
    process.settle()
    assert new_events(ground, process) == ENSURED
    assert not any(process.flow.problems().values())


def test_what_the_cloud_refuses_is_told_and_tried_more_and_more_seldom(
    ground: Any, make_process: Any
) -> None:
    ground.service("web", 80)
    full = errors.QuotaExceeded("no load balancer is left", operation="create")
    ground.cloud.faults = [None, full] * 5
    process = make_process(ground)
    took_s = process.settle(quiet_s=200)
    assert took_s >= 4 * failure.SLOW_S
    failed = (
        "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure "
        "load balancer: create: no load balancer is left; raise the quota of the"
        " project, or delete what is not used"
    )
    assert new_events(ground, process) == sorted([*ENSURED, failed])


def test_nodes_that_can_not_be_given_are_told_in_the_words_of_the_reference(
    ground: Any, make_process: Any
) -> None:
    """By the first twenty names, and once as long as it fails for the same reason."""
    ground.service("web", 80)
    process = make_process(ground)
    process.settle()
    new_events(ground, process)
    ground.nodes = tuple(Node(f"node-{number:02}") for number in range(25))
    full = errors.QuotaExceeded("no member is left", operation="change")
    ground.cloud.faults = [None, full] * 2
    process.queue.add_many(flow.concerned(process.services), model.Topic.NODES)
    process.settle(quiet_s=2 * failure.SLOW_S)
    names = " ".join(f"node-{number:02}" for number in range(20))
    assert new_events(ground, process) == [
        "Normal UpdatedLoadBalancer: Updated load balancer with new hosts",
        "Warning UpdateLoadBalancerFailed: Error updating load balancer with new hosts"
        f" [{names}] [node names limited, total number of nodes: 25], error: change: no"
        " member is left; raise the quota of the project, or delete what is not used",
    ]


@pytest.mark.parametrize("was_rejected", [False, True])
@pytest.mark.parametrize("named_s", [None, 1.0])
def test_what_may_have_been_made_is_waited_for(
    ground: Any, make_process: Any, named_s: float | None, was_rejected: bool
) -> None:
    """The request may still complete, whatever retry time a proxy names."""
    ground.service("web", 80)
    lost = errors.Unavailable(
        "no answer",
        operation="create",
        retry_after_s=named_s,
        was_rejected=was_rejected,
    )
    ground.cloud.faults = [None, lost]
    process = make_process(ground)
    made_at = began = ground.now_s
    while not ground.cloud.load_balancers:
        process.services.relist()
        process.turn()
        made_at, ground.now_s = ground.now_s, ground.now_s + 0.5
    assert (made_at - began >= memory.UNKNOWN_S) is not was_rejected


@pytest.mark.parametrize("number", [1, 30])
def test_reads_do_not_grow_with_the_services(
    ground: Any, make_process: Any, number: int
) -> None:
    """Created in parallel they share every read and every gate."""
    for n in range(number):
        ground.service(f"web-{n}", 80)
    make_process(ground).settle()
    reads = [c for c in ground.cloud.calls if c.startswith(("list", "read"))]
    assert reads == [
        "list load balancers (CHANGED)",
        "read gates",
        "read gates",
        "list load balancers (CHANGED)",
        "list load balancers (CHANGED)",
    ]


def test_those_that_wait_at_one_time_share_their_polls(
    ground: Any, make_process: Any
) -> None:
    """Made one after the other, they are asked for together, and none is seen late."""
    process = make_process(ground)
    ready_at: dict[str, float] = {}
    seen_at: dict[str, float] = {}
    for step in range(60):
        if step < 10:
            ground.service(f"web-{step}", 80)
        process.services.relist()
        process.turn()
        for balancer in ground.cloud.load_balancers.values():
            ready_at.setdefault(balancer.name, balancer.busy_until)
        for name, (_, addresses) in ground.state()["services"].items():
            if addresses:
                seen_at.setdefault(f"default/{name}", ground.now_s)
        ground.now_s += 0.2
    assert len(seen_at) == 10
    late_s = [at - ready_at[name] for name, at in seen_at.items()]
    assert max(late_s) <= 1.4, "a poll a second"
    polls = ground.cloud.calls.count("read gates")
    assert polls <= 8, "fifteen, if each asked for itself"


def test_drift_is_looked_for_with_one_read_and_mended(
    ground: Any, make_process: Any
) -> None:
    for name in ("a", "b", "c"):
        ground.service(name, 80)
    process = make_process(ground)
    process.settle()
    broken = ground.cloud.load_balancers["lb-2"]
    right = broken.request
    broken.request = fake_cloud.Request(frozenset(), frozenset(), "least-busy")
    drift = flow.Drift(process.services, process.queue.add_many)
    before = len(ground.cloud.calls)
    drift.check()
    process.turn()
    assert ground.cloud.calls[before] == "list load balancers (TREE)"
    assert [c for c in ground.cloud.calls[before:] if c.startswith("change")] == [
        "change load balancer default/b / sockets: they differ from" " the desired ones"
    ]
    process.settle()
    assert broken.request == right
    before = len(ground.cloud.calls)
    for _ in range(flow.DEEP_EVERY - 1):
        drift.check()
        process.turn()
    looks = ground.cloud.calls[before:]
    tree = ["list load balancers (TREE)"] * (flow.DEEP_EVERY - 2)
    assert looks == [*tree, "list load balancers (FULL)"]


@pytest.mark.parametrize(
    ("period_s", "deep_at_s"),
    [(60, [360, 720]), (600, [3600, 7200]), (1500, [3000, 6000]), (7200, [7200])],
)
def test_all_is_looked_at_once_an_hour_at_least(
    ground: Any, make_process: Any, period_s: int, deep_at_s: list[int]
) -> None:
    """Or as often as anything is, where that is more seldom."""
    ground.service("web", 80)
    process = make_process(ground)
    process.services.relist()
    topics: list[model.Topic] = []
    drift = flow.Drift(
        process.services, lambda keys, topic: topics.append(topic), period_s
    )
    for _ in range(0, 7200, period_s):
        drift.check()
    deep = [n for n, topic in enumerate(topics, 1) if topic is model.Topic.DEEP_DRIFT]
    assert [number * period_s for number in deep][: len(deep_at_s)] == deep_at_s


def test_looks_at_many_services_take_turns_with_deep_reads(
    ground: Any, make_process: Any
) -> None:
    """400 of 3 ports: all are compared at each look, 100 of them deeply."""
    keys = [f"default/s-{number:03}" for number in range(400)]
    for key in keys:
        ground.service(key.partition("/")[2], 80, 81, 82)
    process = make_process(ground)
    process.services.relist()
    looks: list[dict[model.Topic, list[str]]] = []
    drift = flow.Drift(
        process.services, lambda some, topic: looks[-1].update({topic: list(some)})
    )
    for number in range(5):
        looks.append({})
        drift.check()
        deep = looks[-1][model.Topic.DEEP_DRIFT]
        listed = looks[-1][model.Topic.LISTED_DRIFT]
        print(f"look {number + 1}: {len(deep)} deep, {len(listed)} by lists")
        assert len(deep) * 3 == flow.CALLS_PER_CHECK
        assert sorted([*deep, *listed]) == sorted(keys)
    turns = [key for look in looks[:4] for key in look[model.Topic.DEEP_DRIFT]]
    assert sorted(turns) == sorted(keys)
    assert looks[4][model.Topic.DEEP_DRIFT] == looks[0][model.Topic.DEEP_DRIFT]


def test_a_change_of_nodes_that_changes_nothing_costs_no_call(
    ground: Any, make_process: Any
) -> None:
    ground.service("web", 80)
    process = make_process(ground)
    process.settle()
    before = len(ground.cloud.calls)
    process.queue.add_many(flow.concerned(process.services), model.Topic.NODES)
    process.settle()
    assert len(ground.cloud.calls) == before


def service(**changes: Any) -> model.Service:
    meta = {
        key: changes.pop(key) for key in ("labels", "annotations") if key in changes
    }
    about = objects.ObjectMeta(name="web", namespace="default", uid="u", **meta)
    return model.Service(about, model.ServiceSpec(type="LoadBalancer", **changes))


PORT = model.ServicePort(port=80)


@pytest.mark.parametrize(
    ("old", "new", "is_changed"),
    [
        (None, service(), True),
        (service(), service(), False),
        (service(), service(labels={"a": "b"}), False),
        (service(), service(annotations={"a": "b"}), True),
        (service(), service(ports=(PORT,)), True),
        (service(), service(session_affinity="ClientIP"), True),
        (service(), service(load_balancer_class="other"), True),
        (service(load_balancer_class="x"), service(load_balancer_class="x"), False),
    ],
    ids=[
        "new",
        "the same",
        "labels",
        "annotations",
        "ports",
        "affinity",
        "given away",
        "another's",
    ],
)
def test_what_changes_bring_a_service_in(
    old: model.Service | None, new: model.Service, is_changed: bool
) -> None:
    assert flow.is_changed(old, new) is is_changed


@pytest.mark.parametrize("what", ["deleted", "changed", "of another type"])
def test_what_a_user_does_during_a_pass_is_not_taken_for_done(
    ground: Any, make_process: Any, what: str
) -> None:
    """It comes between our look and our own last write, whose answer shows it."""
    process = make_process(ground)
    ground.service("web", 80)
    done: list[str] = []

    def meddle(call: Any) -> None:
        if call.verb != "patch" or call.subresource != "status" or done:
            return
        if not any(
            balancer.request for balancer in ground.cloud.load_balancers.values()
        ):
            return  # the finalizer
        done.append(what)
        if what == "deleted":
            ground.delete("web")
        elif what == "changed":
            ground.service("web", 81)
        else:
            ground.service("web", 80, type="ClusterIP")

    ground.api.before_call = meddle
    process.settle()
    assert done == [what]
    requests = [
        repr(balancer.request) for balancer in ground.cloud.load_balancers.values()
    ]
    if what == "changed":
        assert len(requests) == 1
        assert "81" in requests[0]
    else:
        assert requests == []


def unreadable(ground: Any, name: str) -> None:
    """Change a Service in the API in a way that no test case has."""
    changed = ground.get(name)
    changed["spec"]["ports"][0]["protocol"] = "QUIC"
    ground.api.put(resources.SERVICES, changed)


def test_a_service_that_can_not_be_read_fails_alone(
    ground: Any, make_process: Any
) -> None:
    """The others of its batch are served; its own key backs off."""
    process = make_process(ground)
    for name in ("bad", "good-1", "good-2"):
        ground.service(name, 80)
    unreadable(ground, "bad")
    process.services.relist()
    claims = process.queue.take_due(1000)
    assert len(claims) == 3
    observed = process.flow.read(process.flow.observe(claims))
    assert sorted(key for key, row in observed.items() if row.error) == ["default/bad"]
    outcome = process.flow.decide(observed["default/bad"], NOW)
    with pytest.raises(ValueError, match="QUIC"):
        raise outcome.failure
    for event in outcome.events:
        process.flow.act(observed["default/bad"], event)
    for key in ("default/good-1", "default/good-2"):
        actions = process.flow.decide(observed[key], NOW).actions
        assert any(isinstance(action, ApplyStep) for action in actions)
    (event,) = new_events(ground, process)
    assert event.startswith("Warning SyncLoadBalancerFailed: ")


def test_the_open_plan_of_a_service_that_can_not_be_read_blocks_nobody(
    ground: Any, make_process: Any
) -> None:
    """It would keep all others from the load balancer that they share."""
    process = make_process(ground)
    ground.service("bad", 80)
    process.services.relist()
    process.turn()
    assert process.flow._memory.opens()
    unreadable(ground, "bad")
    process.services.relist()
    process.flow.observe(
        [queue.Claim("default/bad", frozenset({model.Topic.SYNC.value}))]
    )
    assert not process.flow._memory.opens()


def test_a_service_whose_last_write_the_watch_has_not_shown_is_held(
    ground: Any, make_process: Any
) -> None:
    process = make_process(ground)
    ground.service("web", 80)
    process.services.relist()
    process.services.note_write("default/web", "999999")
    claims = process.queue.take_due(10)
    (observed,) = process.flow.observe(claims).values()
    outcome = runner.decide(process.flow, observed, NOW)
    assert outcome == Outcome(requeue_after_s=runner.HELD_S)
    assert not process.flow.needs_read(observed)
