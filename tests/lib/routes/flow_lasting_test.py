"""A state of routes that does not end is an Event, a metric and an alert.

The API server keeps Events for an hour. Each row is a state; a missing cell fails.
"""

import dataclasses
from collections.abc import Callable, Sequence

import prometheus_client
import pytest

from lib.ccm import metrics
from lib.cloud import route_records
from lib.cloud.openstack.fake import session, wire
from lib.cloud.routes import Reason
from lib.kube import errors, objects
from lib.kube.fake import calls
from lib.routes.desired import Cidr
from lib.routes.model import TABLE, Topic
from lib.routes.observe import REPEATED
from tests.harness import lasting
from tests.harness.routing import bad_inputs, memory

PERIOD_S = 600.0
LASTS_S = 4800.0
"""Longer than the API server keeps an Event."""
STEP_S = 5.0
DRIFT_S, DEEP_S = 10.0, 300.0
GOOD = ("10.100.1.0/24", "fd00:100:1::/64")
WEBHOOK = 'admission webhook "policy.example.org" denied the request: no'


class Scene:
    """A cluster whose routes are kept, with the periodic checks of the daemon."""

    def __init__(
        self, ground: memory.Ground, cidrs: Sequence[Cidr] = memory.PODS
    ) -> None:
        self.ground = ground
        self.process = memory.Process(ground, cidrs, ground.cloud.clock)
        registry = prometheus_client.CollectorRegistry()
        flow = self.process.flow
        metrics.RouteMetrics(registry).watch(flow.problems, flow.reasons)
        self.samples = lasting.Samples(registry)
        self.events: list[set[tuple[str, str, str]]] = []

    def run(self, seconds: float) -> None:
        clock, queue = self.process.clock, self.process.queue
        end = clock() + seconds
        while clock() < end:
            began, period_end = clock(), min(end, clock() + PERIOD_S)
            while clock() < period_end:
                self.process.nodes.relist()
                for every_s, topic in (
                    (DRIFT_S, Topic.DRIFT),
                    (DEEP_S, Topic.DEEP_DRIFT),
                ):
                    if clock() % every_s < STEP_S:
                        queue.add(TABLE, topic)
                self.process.turn()
                clock.sleep(STEP_S)
                if clock() % 30 < STEP_S:
                    self.samples.take(clock())
            lasting.send([self.process.recorder], clock.sleep)
            self.events.append(lasting.warnings_since(self.ground.api, began))


@dataclasses.dataclass(frozen=True)
class State:
    """One state. message: parts of the Event. subject: its object."""

    begin: Callable[[memory.Ground], None]
    reason: str
    message: Sequence[str]
    event: str
    subject: str = "bad"


def of_mistake(row: bad_inputs.Row) -> State:
    is_unserved = row.condition == bad_inputs.UNSERVED
    event = "FailedToCreateRoute" if is_unserved else row.reason
    return State(row.arrange, row.reason, (row.says,), event, row.subject)


def node(ground: memory.Ground) -> None:
    ground.node("bad", "10.100.2.0/24")


def router_refuses(ground: memory.Ground) -> None:
    def refuse(call: wire.Call) -> session.Fault | None:
        is_write = call.method == "PUT" and call.parts[0] == "routers"
        return session.Fault(403, message="policy: no routes") if is_write else None

    node(ground)
    ground.fault = refuse


def port_refuses_removal(ground: memory.Ground) -> None:
    """The Node is deleted, its server stays, and the address pair cannot be removed."""
    node(ground)
    memory.Process(ground).settle()
    ground.delete("bad")

    def refuse(call: wire.Call) -> session.Fault | None:
        is_write = call.method == "PUT" and call.parts[0] == "ports"
        return session.Fault(403, message="policy: no pairs") if is_write else None

    ground.fault = refuse


def denies(
    verbs: Sequence[str], kind: str, error: errors.KubeError | None = None
) -> Callable[[memory.Ground], None]:
    denial = error or errors.of_status(
        objects.Status(WEBHOOK, code=403), operation="write", http_status=403
    )

    def deny(call: calls.Call) -> None:
        if call.verb in verbs and call.resource == kind:
            raise denial

    def begin(ground: memory.Ground) -> None:
        node(ground)
        ground.api.before_call = deny

    return begin


def too_large(ground: memory.Ground) -> None:
    """Texts of others fill the ConfigMap."""
    others = {"notes": "x" * (1024 * 1024 - len(str(ground.record())) - 10)}
    ground.edit_record({**ground.record(), **others})
    node(ground)


RBAC = errors.Forbidden(
    'configmaps "mooring-routes" is forbidden: User cannot get resource',
    operation="GET",
    status=403,
    reason="Forbidden",
)
RECORD = f"failed to write ConfigMap {route_records.KEY}, the record of routes"
STATES = {
    **{row.what: of_mistake(row) for row in bad_inputs.ROWS},
    "the router refuses routes": State(
        router_refuses, "EntryRefused", ("policy: no routes",), "FailedToCreateRoute"
    ),
    "a webhook denies the record": State(
        denies(("create", "patch"), "configmaps"),
        "DeniedByAPIServer",
        (RECORD, WEBHOOK),
        "DeniedByAPIServer",
        "ccm",
    ),
    "a policy answers 422 to the record": State(
        denies(
            ("create", "patch"),
            "configmaps",
            errors.Invalid("policy p denied", operation="PATCH", status=422),
        ),
        "DeniedByAPIServer",
        (RECORD, "policy p denied"),
        "DeniedByAPIServer",
        "ccm",
    ),
    "the ConfigMap has no room": State(
        too_large,
        "DeniedByAPIServer",
        (RECORD, "must have at most 1048576 bytes"),
        "DeniedByAPIServer",
        "ccm",
    ),
    "RBAC forbids to read the record": State(
        denies(("get",), "configmaps", RBAC),
        "RouteTableUnavailable",
        ("failed to read ConfigMap kube-system/mooring-routes", "is forbidden"),
        "RouteTableUnavailable",
        "ccm",
    ),
    "a webhook denies the condition": State(
        denies(("patch",), "nodes"),
        "DeniedByAPIServer",
        ("failed to write condition NetworkUnavailable", WEBHOOK),
        "DeniedByAPIServer",
    ),
    "a port refuses the removal of a pair": State(
        port_refuses_removal,
        "RefusedByCloud",
        ("policy: no pairs", "check the roles"),
        "FailedToCreateRoute",
        "ccm",
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_does_not_end_is_reported(name: str) -> None:
    state, ground = STATES[name], memory.Ground()
    ground.node("good", *GOOD, age_s=3600)
    memory.Process(ground).settle()
    state.begin(ground)
    is_overlap = state.reason == "PodCIDROverlapsSubnet"
    scene = Scene(ground, bad_inputs.PODS if is_overlap else memory.PODS)
    scene.run(PERIOD_S)
    scene.events.clear()
    scene.samples.taken.clear()
    scene.run(LASTS_S)
    series = lasting.series("mooring_route_problem", {"reason": state.reason})
    assert {s: v for s, v in scene.samples.last.items() if v} == {series: 1}
    rule = lasting.rules()["OpenstackCCMRouteProblem"]
    assert lasting.fires(rule, scene.samples.taken)
    for period in scene.events:
        ((subject, event, message),) = period
        assert (subject, event) == (state.subject, state.event)
        assert all(part in message for part in state.message)


def test_every_reason_has_a_row() -> None:
    flow = memory.Process(memory.Ground()).flow
    reasons = {str(reason) for reason in flow.reasons}
    assert reasons == {state.reason for state in STATES.values()}


def test_a_denied_write_that_is_accepted_is_no_problem() -> None:
    ground = memory.Ground()
    denies(("create", "patch"), "configmaps")(ground)
    scene = Scene(ground)
    scene.run(PERIOD_S)
    assert scene.process.flow.problems()
    ground.api.before_call = None
    scene.run(PERIOD_S)
    assert not any(scene.samples.last.values())
    assert ground.condition("bad") == bad_inputs.SERVED
    scene.run(2 * PERIOD_S)
    assert scene.events[-1] == set()


def test_one_mistake_of_many_nodes_is_few_events_at_a_time() -> None:
    """All are reported once, and then again within the hour, at a limited rate."""
    nodes = 200
    ground = memory.Ground("10.42.0.0/16")
    for number in range(nodes):
        ground.node(f"node-{number:03}", f"172.16.{number}.0/24")
    process = memory.Process(ground, clock=ground.cloud.clock)
    process.settle()
    lasting.send([process.recorder], ground.cloud.clock.sleep)
    assert process.flow.problems()[Reason.OUTSIDE_CLUSTER] == nodes
    counted: list[int] = []
    for _ in range(90):
        ground.cloud.clock.sleep(DRIFT_S)
        process.queue.add(TABLE, Topic.DRIFT)
        snapshot = process.flow.observe(process.queue.take_due(1))[TABLE]
        counted.append(len(snapshot.due))  # type: ignore[union-attr]
        process.queue.done(TABLE)
        outcome = process.flow.decide(snapshot, memory.NOW)
        for action in outcome.actions:
            process.flow.act(snapshot, action)
    assert max(counted) == REPEATED
    assert sum(counted) == nodes
