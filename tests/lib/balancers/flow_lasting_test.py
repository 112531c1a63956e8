"""A state that does not end is an Event at each drift check, a metric and an alert.

The API server keeps Events for an hour. Each row is a state; a missing cell fails.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import prometheus_client
import pytest

from lib.balancers import flow, model
from lib.ccm import metrics
from lib.cloud.load_balancers import Node
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import errors, objects, resources
from lib.kube.fake import calls
from lib.reconcile import metrics as reconcile_metrics
from tests.harness import lasting

DRIFT_S = 600.0
LASTS_S = 4800.0
"""Longer than the API server keeps an Event."""
EVER_S = 1e9
STEP_S = 2.0


class SameClock(session.FakeClock):
    """The time of the ground."""

    def __init__(self, ground: Any) -> None:
        super().__init__()
        self._ground = ground

    def __call__(self) -> float:
        return float(self._ground.now_s)


class Scene:
    """One Service on an OpenStack in memory, and what is observed of it.

    events: by drift period, the reasons with the messages of Warnings that the API
    server has got in it. samples: of the metrics, by time.
    """

    def __init__(self, ground: Any, make_process: Callable[[Any], Any]) -> None:
        self.ground = ground
        self.openstack = session.FakeOpenStack(SameClock(ground))
        self.on = driver.ground(self.openstack)
        self.octavia = self.openstack.octavia
        config = settings.LoadBalancer(subnet_id=self.on.subnet_id)
        ground.cloud = OctaviaLoadBalancers(self.openstack.client(), config)
        ground.nodes = (self.node(1), self.node(2))
        self.process = make_process(ground)
        self.events: list[set[tuple[str, str]]] = []
        registry = prometheus_client.CollectorRegistry()
        self.samples = lasting.Samples(registry)
        self._reconciliations = reconcile_metrics.ReconcileMetrics(registry)
        observed = self.process.flow
        gauges = metrics.BalancerMetrics(registry)
        gauges.watch(observed.problems, observed.reasons)

    def node(self, number: int) -> Node:
        address = f"10.0.0.{number}"
        self.openstack.neutron.add_port(self.on.subnet_id, address, f"server-{number}")
        ip = Address(AddressType.INTERNAL_IP, address)
        return Node(f"node-{number}", "", (ip,))

    def run(self, seconds: float) -> None:
        """Run the process for this time, with the drift checks."""
        end = self.ground.now_s + seconds
        while self.ground.now_s < end:
            period_end = min(end, self.ground.now_s + DRIFT_S)
            began = self.ground.now_s
            concerned = flow.concerned(self.process.services)
            self.process.queue.add_many(concerned, model.Topic.DRIFT)
            while self.ground.now_s < period_end:
                self.process.services.relist()
                self.process.turn()
                self.ground.now_s += STEP_S
                if self.ground.now_s % 30 < STEP_S:
                    self.samples.take(self.ground.now_s)
            self.process.say()
            self.events.append(self._since(began))

    def _since(self, began: float) -> set[tuple[str, str]]:
        warnings = lasting.warnings_since(self.ground.api, began)
        return {(reason, message) for _, reason, message in warnings}


@dataclasses.dataclass(frozen=True)
class State:
    """One state. begin: brings it about, with the Service served unless is_new.

    message: parts of the message of the Event.
    """

    begin: Callable[[Scene], None]
    event: str
    message: Sequence[str]
    series: str
    alert: str = "OpenstackCCMLoadBalancerProblem"
    is_new: bool = False


def problem(reason: str) -> str:
    return lasting.series("mooring_load_balancer_problem", {"reason": reason})


def no_worker_creates(scene: Scene) -> None:
    scene.octavia.build_s = EVER_S
    scene.ground.service("web", 80)


def no_worker_updates(scene: Scene) -> None:
    scene.octavia.update_s = EVER_S
    scene.ground.service("web", 80, 443)


def no_worker_updates_and_the_service_is_deleted(scene: Scene) -> None:
    no_worker_updates(scene)
    scene.run(30.0)
    scene.ground.delete("web")


def no_worker_deletes(scene: Scene) -> None:
    scene.octavia.delete_s = EVER_S
    scene.ground.delete("web")


def no_worker_updates_and_nodes_change(scene: Scene) -> None:
    no_worker_updates(scene)
    scene.run(400.0)
    scene.ground.nodes = scene.ground.nodes[:1]


def no_address_is_left(scene: Scene) -> None:
    def refuse(call: wire.Call) -> session.Fault | None:
        if (call.method, call.path) != ("POST", "lbaas/loadbalancers"):
            return None
        text = "The VIP IP address is already in use: No more IP addresses available"
        return session.Fault(409, message=text)

    scene.openstack.fault = refuse
    scene.ground.service("web", 80)


def quota_is_used_up(scene: Scene) -> None:
    def refuse(call: wire.Call) -> session.Fault | None:
        if (call.method, call.path) != ("POST", "lbaas/listeners"):
            return None
        return session.Fault(403, message="Quota has been met for resources: listener")

    scene.openstack.fault = refuse
    scene.ground.service("web", 80, 443)


def annotated(annotations: dict[str, str]) -> Callable[[Scene], None]:
    def begin(scene: Scene) -> None:
        scene.ground.service("web", 80, annotations=annotations)

    return begin


def in_error(scene: Scene) -> None:
    for balancer in scene.octavia.load_balancers.values():
        balancer["provisioning_status"] = "ERROR"


WEBHOOK = 'admission webhook "policy.example.org" denied the request: no'
Denies = Callable[[calls.Call], bool]


def denied(
    denies: Denies, error: errors.KubeError | None = None, *, ends: bool = False
) -> Callable[[Scene], None]:
    """Return what has writes of the Service denied. ends: also delete the Service."""
    denial = error or errors.of_status(
        objects.Status(WEBHOOK, code=403), operation="PATCH", http_status=403
    )

    def deny(call: calls.Call) -> None:
        if (call.verb, call.resource) == ("patch", "services") and denies(call):
            raise denial

    def begin(scene: Scene) -> None:
        scene.ground.api.before_call = deny
        if ends:
            scene.ground.delete("web")
        else:
            scene.ground.service("web", 80)

    return begin


def of_status(call: calls.Call) -> bool:
    return call.subresource == "status"


def of_service(call: calls.Call) -> bool:
    return call.subresource is None


PENDING = problem("LoadBalancerPending")
DENIED = problem("DeniedByAPIServer")
SYNC_FAILED = "SyncLoadBalancerFailed"
STATES = {
    "PENDING_CREATE": State(
        no_worker_creates,
        "LoadBalancerPending",
        ("00000001", "PENDING_CREATE", "administrator", "observed since 20"),
        PENDING,
        is_new=True,
    ),
    "PENDING_UPDATE": State(
        no_worker_updates,
        "LoadBalancerPending",
        ("00000001", "PENDING_UPDATE", "administrator"),
        PENDING,
    ),
    "PENDING_UPDATE while Nodes change": State(
        no_worker_updates_and_nodes_change,
        "LoadBalancerPending",
        ("PENDING_UPDATE",),
        PENDING,
    ),
    "PENDING_UPDATE while the Service is deleted": State(
        no_worker_updates_and_the_service_is_deleted,
        "LoadBalancerPending",
        ("PENDING_UPDATE",),
        PENDING,
    ),
    "PENDING_DELETE": State(
        no_worker_deletes,
        "LoadBalancerPending",
        ("PENDING_DELETE",),
        PENDING,
    ),
    "no address is left": State(
        no_address_is_left,
        SYNC_FAILED,
        ("the subnet has no address left",),
        problem("RefusedByCloud"),
        is_new=True,
    ),
    "the quota of listeners is used up": State(
        quota_is_used_up,
        SYNC_FAILED,
        ("listener",),
        problem("RefusedByCloud"),
    ),
    "an unknown class": State(
        annotated({keys.CLASS: "gold"}),
        SYNC_FAILED,
        ("gold",),
        problem("UnknownClass"),
        is_new=True,
    ),
    "an invalid value that is ignored": State(
        annotated({keys.KEEP_FLOATING_IP: "perhaps"}),
        "InvalidAnnotation",
        ("perhaps",),
        problem("InvalidAnnotation"),
    ),
    "a misspelt annotation": State(
        annotated({"loadbalancer.openstack.org/conection-limit": "5"}),
        "UnknownAnnotation",
        ("conection-limit (did you mean", f"{keys.CONNECTION_LIMIT}?"),
        problem("UnknownAnnotation"),
    ),
    "a load balancer of a former Service is missing": State(
        annotated({keys.LOAD_BALANCER_ID: "00000000-0000-4000-8000-0000000000ee"}),
        SYNC_FAILED,
        ("00000000-0000-4000-8000-0000000000ee",),
        problem("LoadBalancerMissing"),
        is_new=True,
    ),
    "a webhook denies the finalizer": State(
        denied(of_status),
        SYNC_FAILED,
        (f"failed to add load balancer cleanup finalizer: {WEBHOOK}",),
        DENIED,
        is_new=True,
    ),
    "a webhook denies annotations": State(
        denied(of_service),
        SYNC_FAILED,
        (f"failed to write the annotations of the load balancer: {WEBHOOK}",),
        DENIED,
        is_new=True,
    ),
    "a webhook denies the end of a Service": State(
        denied(of_status, ends=True),
        SYNC_FAILED,
        ("delete load balancer: failed to remove load balancer cleanup fin",),
        DENIED,
    ),
    "a policy answers 422": State(
        denied(
            of_status,
            errors.Invalid(
                "ValidatingAdmissionPolicy p denied", operation="PATCH", status=422
            ),
        ),
        SYNC_FAILED,
        ("ValidatingAdmissionPolicy p denied",),
        DENIED,
        is_new=True,
    ),
    "a webhook answers 418": State(
        denied(of_status, errors.KubeError("a teapot", operation="PATCH", status=418)),
        SYNC_FAILED,
        ("a teapot",),
        DENIED,
        is_new=True,
    ),
    "a webhook is down": State(
        denied(
            of_status,
            errors.Unavailable(
                'failed calling webhook "policy.example.org"',
                operation="PATCH",
                status=500,
                reason="InternalError",
            ),
        ),
        SYNC_FAILED,
        ("failed calling webhook",),
        DENIED,
        is_new=True,
    ),
    "ERROR": State(
        in_error,
        "LoadBalancerInError",
        ("is in status ERROR",),
        problem("LoadBalancerInError"),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_does_not_end_is_reported(
    ground: Any, make_process: Callable[[Any], Any], name: str
) -> None:
    state = STATES[name]
    scene = Scene(ground, make_process)
    if not state.is_new:
        ground.service("web", 80)
        scene.run(60.0)
        assert ground.get("web")["status"]["loadBalancer"]["ingress"]
        before = scene.samples.last
        assert before[state.series] == 0
        assert not lasting.fires(lasting.rules()[state.alert], scene.samples.taken)
    state.begin(scene)
    scene.events.clear()
    scene.samples.taken.clear()
    scene.run(LASTS_S)
    assert scene.samples.last[state.series] == 1
    assert lasting.fires(lasting.rules()[state.alert], scene.samples.taken)
    for period in scene.events:
        messages = [message for reason, message in period if reason == state.event]
        assert len(messages) == 1, period
        for part in state.message:
            assert part in messages[0]


def test_the_problem_ends_with_the_state(
    ground: Any, make_process: Callable[[Any], Any]
) -> None:
    scene = Scene(ground, make_process)
    scene.octavia.build_s = 900.0
    ground.service("web", 80)
    scene.run(600.0)
    assert scene.samples.last[PENDING] == 1
    scene.run(600.0)
    assert scene.samples.last[PENDING] == 0
    assert ground.get("web")["status"]["loadBalancer"]["ingress"]
    scene.run(DRIFT_S)
    assert scene.events[-1] == set()


def test_a_change_that_takes_its_time_is_not_reported(
    ground: Any, make_process: Callable[[Any], Any]
) -> None:
    scene = Scene(ground, make_process)
    scene.octavia.build_s = scene.octavia.update_s = 200.0
    ground.service("web", 80, 443)
    scene.run(2 * DRIFT_S)
    assert ground.get("web")["status"]["loadBalancer"]["ingress"]
    assert [event for period in scene.events for event in period] == []


def test_a_service_of_5000_ports_without_node_ports_is_one_event(
    ground: Any, make_process: Callable[[Any], Any]
) -> None:
    scene = Scene(ground, make_process)
    ports = range(1, 5001)
    ground.service("many", *ports)
    document = ground.get("many")
    for port in document["spec"]["ports"]:
        del port["nodePort"]
    ground.api.put(resources.SERVICES, document)
    scene.run(4.0)
    messages = [m for reason, m in scene.events[-1] if reason == "NoNodePort"]
    assert messages == [
        "spec.ports: each of ports 1/TCP, 2/TCP, 3/TCP, 4/TCP, 5/TCP and 4995 more has"
        " no nodePort, so that its pool has no members: set"
        " allocateLoadBalancerNodePorts to true, or nodePort of each"
    ]
