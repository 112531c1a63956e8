"""The nodes flow as lib/reconcile runs it, and the sources of its queue."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from lib.cloud.model import InstanceRef
from lib.kube import errors as kube_errors
from lib.kube import nodes as kube_nodes
from lib.kube import store
from lib.kube.nodes import Node
from lib.nodes import act, decide, model, observe, problems
from lib.nodes.model import Action, Snapshot, Topic
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome, ReportAction

OFTEN_FOR_S = 300.0
SELDOM_S = 60.0
"""A Node that has not been Ready for OFTEN_FOR_S is checked every SELDOM_S."""

Enqueue = Callable[[str, Topic], None]
EnqueueMany = Callable[[Iterable[str], Topic], None]


class NodesFlow(runner.Flow[Snapshot, Action]):
    """Keeps Nodes and instances 1:1; see lib/reconcile/runner.py for the protocol.

    on_initialised: called with each Node that was initialised, as it was before.
    problems: of all Nodes, as metrics count them.
    """

    name = "nodes"

    def __init__(
        self,
        observer: observe.NodeObserver,
        actor: act.NodeActor,
        settings: model.NodeSettings,
        on_initialised: Callable[[Node], None] = lambda node: None,
    ) -> None:
        self._observer = observer
        self._actor = actor
        self._settings = settings
        self._on_initialised = on_initialised
        self.problems = problems.Problems()

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read everything that this batch requires, once."""
        served = topics_served(self._settings)
        return self._observer.observe(
            [(claim.key, served & set(map(Topic, claim.topics))) for claim in claims]
        )

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/nodes/decide.py."""
        del now
        outcome = decide.decide(snapshot, self._settings)
        self.problems.judge(snapshot, outcome)
        return outcome

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        return runner.HELD_S if snapshot.held else 0.0

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Execute one action; see the protocol."""
        node = snapshot.node
        if node is None:
            return snapshot
        self._note(node, action)
        latest = self._write(node, action)
        if isinstance(action, model.InitialiseNode):
            self._on_initialised(node)
        return dataclasses.replace(snapshot, node=latest)

    def _write(self, node: Node, action: Action) -> Node:
        try:
            latest = self._actor.act(node, action)
        except kube_errors.KubeError as error:
            if kube_errors.is_denied(error):
                self.problems.failed(node, action)
            raise
        if not isinstance(action, ReportAction):
            self.problems.written(node, action)
        return latest

    def _note(self, node: Node, action: Action) -> None:
        match action:
            case model.DeleteNode() if not model.is_confirmed(node):
                self._observer.memory.deleting(node.metadata.uid)
            case model.HoldNodeBack():
                self._observer.memory.reported(node.metadata.uid)

    @property
    def suspended(self) -> int:
        """Number of Nodes whose deletion the budget suspends."""
        return self._observer.memory.suspended if self._settings.deletes else 0

    @property
    def waiting(self) -> int:
        """Number of Nodes whose deletion waits for finalizers."""
        return self._observer.waiting() if self._settings.deletes else 0

    def follow(self) -> None:
        """Begin to watch deletions: the Nodes are watched from now on."""
        self._observer.memory.begin()

    def deletion_requested(self, node: Node) -> None:
        """Count a Node whose deletion was requested by this or another client."""
        self._observer.deletion_requested(node)

    def forget(self, node: Node) -> None:
        """Drop the state kept for a Node that does not exist."""
        self.problems.forget(node)
        self._observer.forget(node)


def topics_served(settings: model.NodeSettings) -> frozenset[Topic]:
    """Return the topics that apply with these controllers switched on."""
    topics = set(Topic)
    if not settings.watches_lifecycle:
        topics -= {Topic.LIVENESS}
    if not settings.initialises:
        topics -= {Topic.SYNC, Topic.ADDRESSES}
    return frozenset(topics)


def topics_of(old: Node | None, new: Node | None) -> frozenset[Topic]:
    """Return the topics of a change of a Node."""
    if new is None:
        return frozenset()
    if old is None:
        return frozenset({Topic.SYNC, Topic.LIVENESS})
    topics = set()
    if (old.metadata.labels, old.metadata.annotations, old.spec) != (
        new.metadata.labels,
        new.metadata.annotations,
        new.spec,
    ):
        topics.add(Topic.SYNC)
    if (old.is_ready, model.is_confirmed(old)) != (
        new.is_ready,
        model.is_confirmed(new),
    ):
        topics.add(Topic.LIVENESS)
    return frozenset(topics)


def watch(nodes: store.Store[Node], flow: NodesFlow, add: Enqueue) -> None:
    """Add a Node to the queue at each of its changes."""

    def changed(name: str, old: Node | None, new: Node | None) -> None:
        flow.follow()
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            flow.forget(old)
        elif old is not None and new is not None and _is_requested(old, new):
            flow.deletion_requested(new)
        for topic in topics_of(old, new):
            add(name, topic)

    nodes.subscribe(changed)


def _is_requested(old: Node, new: Node) -> bool:
    """Report whether a change is the request to delete the Node."""
    times = [node.metadata.deletion_timestamp for node in (old, new)]
    return times[0] is None and times[1] is not None


def hints(nodes: store.Store[Node], add: Enqueue) -> Callable[[InstanceRef], None]:
    """Return what enqueues the Node of an instance that is reported as changed."""

    def changed(ref: InstanceRef) -> None:
        for name in _named(nodes, ref):
            for topic in Topic:
                add(name, topic)

    return changed


def _named(nodes: store.Store[Node], ref: InstanceRef) -> tuple[str, ...]:
    """Return the Nodes that a reference may be of: by name, and by provider ID."""
    node = nodes.get(ref.node_name)
    if node is not None and node.spec.provider_id in ("", ref.provider_id):
        return (node.name,)
    by_id = (
        name
        for name, other in nodes.items().items()
        if ref.provider_id and other.spec.provider_id == ref.provider_id
    )
    return tuple(by_id)


def refresh_addresses(nodes: store.Store[Node], add_many: EnqueueMany) -> None:
    """Enqueue every initialised Node for its periodic refresh of addresses."""
    initialised = [
        name
        for name, node in nodes.items().items()
        if not node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
    ]
    add_many(initialised, Topic.ADDRESSES)


class LifecycleMonitor:
    """Enqueues every Node that is not Ready, or is Ready and still tainted.

    A Node that has not been Ready for long is enqueued less often. Its time comes from
    the Node; only the time of the last run is kept.
    """

    def __init__(
        self,
        nodes: store.Store[Node],
        add: Enqueue,
        now: Callable[[], datetime],
    ) -> None:
        self._nodes = nodes
        self._add = add
        self._now = now
        self._last: datetime | None = None

    def look(self) -> None:
        """Enqueue the Nodes due since the last check; at the first check, all."""
        last, now = self._last, self._now()
        self._last = now
        for name, node in self._nodes.items().items():
            if node.is_ready:
                due = node.has_taint(kube_nodes.SHUTDOWN_TAINT)
            else:
                due = last is None or is_due(node.ready_since, last, now)
            if due:
                self._add(name, Topic.LIVENESS)


def is_due(since: datetime | None, last: datetime, now: datetime) -> bool:
    """Report whether a Node that is not Ready since then is checked again.

    Each time during the first minutes, then once a minute; each Node at its own
    second, so that not all come together.
    """
    if since is None or (now - since).total_seconds() < OFTEN_FOR_S:
        return True
    turns = [(at - since).total_seconds() // SELDOM_S for at in (last, now)]
    return turns[0] != turns[1]
