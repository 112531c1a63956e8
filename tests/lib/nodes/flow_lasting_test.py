"""A state of a Node that does not end is an Event, a metric and an alert.

The API server keeps Events for an hour. Each row is a state; a missing cell fails.
"""

import copy
import dataclasses
import datetime
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import prometheus_client
import pytest

from lib.ccm import metrics
from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Instance, InstanceId, Phase
from lib.kube import errors as kube_errors
from lib.kube import events, objects, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.nodes import act, flow, model, observe
from lib.nodes.problems import NodeProblem
from lib.reconcile import carrying, queue, runner
from tests.harness import lasting
from tests.harness.nodes import walk

PERIOD_S = 600.0
LASTS_S = 4800.0
"""Longer than the API server keeps an Event."""
STEP_S = 5.0
REFRESH_S = 300.0


class Scene:
    """Nodes on a cloud in memory, with the queue and the periodic checks of the daemon.

    events: by period, object, reason and message of Warnings.
    """

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(self.now)
        self.cloud = fake_instances.FakeInstances()
        for number in range(10):
            self.instance(f"other-{number}")
            self.node(f"other-{number}")
        self._start()
        self.events: list[set[tuple[str, str, str]]] = []

    def _start(self) -> None:
        self.nodes = store.Store(self.api, resources.NODES, kube_nodes.Node)
        self.recorders = {
            source: events.Recorder(
                self.api,
                component=source,
                host="",
                clock=self._clock(number),
                poll_s=0.01,
            )
            for number, source in enumerate(model.Source)
        }
        settings = model.NodeSettings()
        clocks = runner.Clocks(self.now, lambda: self.now_s)
        observer = observe.NodeObserver(
            self.nodes, self.api, lambda: self.cloud, settings, clocks
        )
        actor = act.NodeActor(self.api, self.nodes, self.recorders)
        self.flow = flow.NodesFlow(observer, actor, settings)
        self.queue = queue.Queue(
            queue.Backoff(base_s=0.1, max_s=60.0),
            clock=lambda: self.now_s,
            chance=lambda: 0.0,
        )
        flow.watch(self.nodes, self.flow, self.queue.add)
        self.nodes.relist()
        self.monitor = flow.LifecycleMonitor(self.nodes, self.queue.add, self.now)
        registry = prometheus_client.CollectorRegistry()
        metrics.DeletionMetrics(registry).watch(
            lambda: self.flow.suspended, lambda: self.flow.waiting
        )
        metrics.NodeProblemMetrics(registry).watch(self.flow.problems.counts)
        self.samples = lasting.Samples(registry)

    def now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.now_s, datetime.UTC)

    def _clock(self, number: int) -> Callable[[], float]:
        """Return recorders times of their own: an Event's name is made of its time."""
        return lambda: self.now_s + number / 1000

    def instance(self, name: str, **fields: Any) -> None:
        known = Instance(
            id=InstanceId(f"id-{name}"),
            name=name,
            phase=Phase.RUNNING,
            provider_id=fake_instances.provider_id(f"id-{name}"),
            addresses=(walk.IP,),
            instance_type="m1.small",
        )
        self.cloud.put(dataclasses.replace(known, **fields))

    def node(self, name: str, *taints: dict[str, str], ready: str = "True") -> None:
        provider_id = fake_instances.provider_id(f"id-{name}")
        walk.put_node(self.api, name, taints, ready, provider_id)

    def edit(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change a Node as a user would."""
        nodes = map(dict[str, Any], copy.deepcopy(self.api.all(resources.NODES)))
        (node,) = (each for each in nodes if each["metadata"]["name"] == name)
        change(node)
        self.api.put(resources.NODES, node)

    def run(self, seconds: float) -> None:
        end = self.now_s + seconds
        while self.now_s < end:
            began, period_end = self.now_s, min(end, self.now_s + PERIOD_S)
            while self.now_s < period_end:
                self.nodes.relist()
                self.monitor.look()
                if self.now_s % REFRESH_S < STEP_S:
                    flow.refresh_addresses(self.nodes, self.queue.add_many)
                self._turn()
                self.now_s += STEP_S
                if self.now_s % 30 < STEP_S:
                    self.samples.take(self.now_s)
            lasting.send(self.recorders.values(), self._sleep)
            self.events.append(lasting.warnings_since(self.api, began))

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def _turn(self) -> None:
        claims = self.queue.take_due(1000)
        snapshots = self.flow.observe(claims) if claims else {}
        for claim in claims:
            if claim.key in snapshots:
                self._reconcile(claim, snapshots[claim.key])
            self.queue.done(claim.key)

    def _reconcile(self, claim: queue.Claim, snapshot: model.Snapshot) -> None:
        decided = runner.decide(self.flow, snapshot, self.now())
        carrier = carrying.Carrier(self.flow)
        snapshot, error = carrier.carry_out(claim.key, snapshot, decided)
        if error is not None:
            failure = self.flow.failure(error)
            if failure is None:
                raise error
            self.queue.retry(claim.key, claim.topics, failure.retry_after_s)
            return
        self.queue.forget(claim.key)
        if decided.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, decided.requeue_after_s)


@dataclasses.dataclass(frozen=True)
class State:
    """One state. begin: brings it about; end: ends it. message: parts of the Event."""

    begin: Callable[[Scene], None]
    end: Callable[[Scene], None]
    event: str
    message: Sequence[str]
    series: str
    alert: str = "OpenstackCCMNodeProblem"


def problem(reason: NodeProblem) -> str:
    return lasting.series("mooring_node_problem", {"reason": reason})


def new_node(**fields: Any) -> Callable[[Scene], None]:
    def begin(scene: Scene) -> None:
        scene.instance("web", **fields)
        scene.node("web", walk.NEW)

    return begin


def well(scene: Scene) -> None:
    scene.instance("web")


def no_instance(scene: Scene) -> None:
    scene.node("web", walk.NEW)


def cloud_fails(scene: Scene) -> None:
    error = errors.Unavailable("timed out", operation="list servers")
    scene.cloud.before_call = _raising(error)
    scene.node("web", walk.NEW)


def _raising(error: Exception) -> Callable[[object], None]:
    def fail(call: object) -> None:
        del call
        raise error

    return fail


def cloud_works(scene: Scene) -> None:
    scene.cloud.before_call = lambda call: None
    scene.instance("web")


def other_provider(scene: Scene) -> None:
    scene.node("web", walk.NEW)
    scene.edit("web", lambda node: node["spec"].update(providerID="static://a"))


def initialised_by_others(scene: Scene) -> None:
    scene.edit("web", lambda node: node["spec"].update(taints=[]))


def annotated(scene: Scene) -> None:
    well(scene)
    scene.node("web")

    def change(node: dict[str, Any]) -> None:
        node["metadata"]["annotations"] = {model.PROVIDED_IP_ANNOTATION: "192.0.2.9"}

    scene.edit("web", change)


def not_annotated(scene: Scene) -> None:
    scene.edit("web", lambda node: node["metadata"].update(annotations={}))


def denied(verb: str, begin: Callable[[Scene], None]) -> Callable[[Scene], None]:
    text = 'admission webhook "policy.example.org" denied the request: no'
    denial = kube_errors.of_status(
        objects.Status(text, code=403), operation=verb, http_status=403
    )

    def deny(call: calls.Call) -> None:
        if (call.verb, call.resource, call.name) == (verb, "nodes", "web"):
            raise denial

    def begin_denied(scene: Scene) -> None:
        scene.api.before_call = deny
        begin(scene)

    return begin_denied


def allowed(scene: Scene) -> None:
    scene.api.before_call = None


def deleted_instance(scene: Scene) -> None:
    scene.node("web", ready="Unknown")


def finalizers(scene: Scene) -> None:
    deleted_instance(scene)
    hold = ["karpenter.sh/termination"]
    scene.edit("web", lambda node: node["metadata"].update(finalizers=hold))


def no_finalizers(scene: Scene) -> None:
    scene.edit("web", lambda node: node["metadata"].update(finalizers=[]))


def many_deleted(scene: Scene) -> None:
    for number in range(9):
        scene.cloud.remove(InstanceId(f"id-other-{number}"))
        scene.node(f"other-{number}", ready="Unknown")
    scene.node("web", ready="Unknown")


def all_back(scene: Scene) -> None:
    for name in ("web", *(f"other-{number}" for number in range(9))):
        scene.instance(name)
        scene.node(name)


FILTERED = "[Networking] internal-network-name is x"
STATES = {
    "no instance": State(
        no_instance,
        well,
        "InstanceNotFound",
        ("the name web",),
        problem(NodeProblem.NOT_FOUND),
    ),
    "the type is not known": State(
        new_node(instance_type=None, type_problem="its flavor is gone"),
        well,
        "InstanceTypeUnknown",
        ("its flavor is gone",),
        problem(NodeProblem.TYPE_UNKNOWN),
    ),
    "a new Node whose addresses are all filtered": State(
        new_node(addresses=(), address_problem=FILTERED),
        well,
        "NodeAddressMissing",
        (FILTERED,),
        problem(NodeProblem.NO_ADDRESS),
    ),
    "the cloud fails": State(
        cloud_fails,
        cloud_works,
        "CloudUnavailable",
        ("timed out",),
        problem(NodeProblem.CLOUD),
    ),
    "another provider": State(
        other_provider,
        initialised_by_others,
        "ProviderMismatch",
        ("static://a",),
        problem(NodeProblem.OTHER_PROVIDER),
    ),
    "an annotation names an address of no instance": State(
        annotated,
        not_annotated,
        "ProvidedNodeIPUnknown",
        ("192.0.2.9",),
        problem(NodeProblem.PROVIDED_IP),
    ),
    "a webhook denies the initialisation": State(
        denied("patch", new_node()),
        allowed,
        "SyncNodeFailed",
        ('admission webhook "policy.example.org" denied',),
        problem(NodeProblem.DENIED),
    ),
    "a webhook denies the deletion": State(
        denied("delete", deleted_instance),
        allowed,
        "DeletingNodeFailed",
        ('admission webhook "policy.example.org" denied',),
        problem(NodeProblem.DELETION),
    ),
    "finalizers of another controller": State(
        finalizers,
        no_finalizers,
        "NodeDeletionWaits",
        ("karpenter.sh/termination",),
        "mooring_node_deletions_waiting{}",
        "OpenstackCCMNodeDeletionsWait",
    ),
    "most instances are absent": State(
        many_deleted,
        all_back,
        "NodeDeletionBlocked",
        ("none while more than 55% are absent",),
        "mooring_node_deletions_blocked{}",
        "OpenstackCCMNodeDeletionsBlocked",
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_does_not_end_is_reported(name: str) -> None:
    state, scene = STATES[name], Scene()
    rule = lasting.rules()[state.alert]
    scene.run(PERIOD_S)
    assert scene.events == [set()]
    assert not any(scene.samples.last.values())
    state.begin(scene)
    scene.run(PERIOD_S)
    scene.events.clear()
    scene.samples.taken.clear()
    scene.run(LASTS_S)
    assert scene.samples.last[state.series] >= 1
    assert {s for s, value in scene.samples.last.items() if value} == {state.series}
    assert lasting.fires(rule, scene.samples.taken)
    for period in scene.events:
        rows = [message for _, reason, message in period if reason == state.event]
        assert rows, period
        assert all(part in rows[0] for part in state.message)
    for earlier, later in itertools.pairwise(scene.events):
        assert earlier == later, "the same text each time: the Event is counted up"
    state.end(scene)
    scene.run(2 * PERIOD_S)
    assert not any(scene.samples.last.values())
    assert scene.events[-1] == set()


def test_every_problem_has_a_row() -> None:
    series = {state.series for state in STATES.values()}
    assert {problem(reason) for reason in NodeProblem} <= series


def test_an_address_filter_is_reported_for_an_initialised_node_too() -> None:
    """internal-network-name was changed: the Node keeps its addresses; an Event."""
    scene = Scene()
    scene.instance("web")
    scene.node("web")
    scene.run(PERIOD_S)
    scene.instance("web", addresses=(), address_problem=FILTERED)
    scene.run(PERIOD_S)
    assert ("web", "NodeAddressMissing", FILTERED) in scene.events[-1]
    assert scene.samples.last[problem(NodeProblem.NO_ADDRESS)] == 1
    (node,) = (n for n in scene.nodes.items().values() if n.name == "web")
    assert node.has_ip


def test_a_node_that_is_deleted_has_no_problem() -> None:
    scene = Scene()
    no_instance(scene)
    scene.run(PERIOD_S)
    assert scene.samples.last[problem(NodeProblem.NOT_FOUND)] == 1
    scene.api.remove(resources.NODES, "web")
    scene.run(60.0)
    assert not any(scene.samples.last.values())
