"""The flow as the runtime drives it, and what brings a Node into its queue."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from lib.cloud import errors
from lib.kube import errors as kube_errors
from lib.kube import nodes as kube_nodes
from lib.kube import store
from lib.kube.nodes import Node
from lib.nodes import act, decide, model, observe
from lib.nodes.model import Action, Snapshot, Topic
from lib.reconcile import failure as failures
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome

OFTEN_FOR_S = 300.0
SELDOM_S = 60.0
"""A Node that has not been Ready for so long is looked at only so often."""

Enqueue = Callable[[str, Topic], None]
EnqueueMany = Callable[[Iterable[str], Topic], None]


class NodesFlow(runner.Flow[Snapshot, Action]):
    """Keeps Nodes and instances 1:1; see lib/reconcile/runner.py for the protocol.

    on_initialised: told of a Node, as it was before, once it has been initialised.
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

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read all that this batch needs, once."""
        served = topics_served(self._settings)
        return self._observer.observe(
            [(claim.key, served & set(map(Topic, claim.topics))) for claim in claims]
        )

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/nodes/decide.py."""
        del now
        return decide.decide(snapshot, self._settings)

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        return runner.HELD_S if snapshot.held else 0.0

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; see the protocol."""
        node = snapshot.node
        if node is None:
            return snapshot
        self._note(node, action)
        latest = self._actor.act(node, action)
        if isinstance(action, model.InitialiseNode):
            self._on_initialised(node)
        return dataclasses.replace(snapshot, node=latest)

    def _note(self, node: Node, action: Action) -> None:
        match action:
            case model.DeleteNode() if not model.is_confirmed(node):
                self._observer.memory.goes(node.metadata.uid)
            case model.HoldNodeBack():
                self._observer.memory.tell(node.metadata.uid)

    @property
    def held_back(self) -> int:
        """How many Nodes are kept although their instances are absent."""
        return self._observer.memory.held_back if self._settings.deletes else 0

    def follow(self) -> None:
        """Begin to watch deletions: the Nodes are watched from now on."""
        self._observer.memory.begin()

    def failure(self, error: Exception) -> failures.Failure | None:
        """Return what a failed pass means; None for a bug."""
        match error:
            case kube_errors.Conflict():
                return failures.Failure(
                    "the node was changed meanwhile", is_routine=True
                )
            case kube_errors.KubeError() | errors.CloudError():
                return failures.Failure(str(error), error.retry_after_s)
        return None

    def forget(self, node: Node) -> None:
        """Drop what is kept for a Node that is gone."""
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
    """Return what a change of a Node calls for."""
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
        for topic in topics_of(old, new):
            add(name, topic)

    nodes.subscribe(changed)


def refresh_addresses(nodes: store.Store[Node], add_many: EnqueueMany) -> None:
    """Bring every initialised Node in for its periodic address pass."""
    initialised = [
        name
        for name, node in nodes.items().items()
        if not node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
    ]
    add_many(initialised, Topic.ADDRESSES)


class LifecycleMonitor:
    """Brings in every Node that is not Ready, or is back and still tainted.

    One that has not been Ready for long comes less often. Since when is read from the
    Node; kept is only when this last ran.
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
        """Bring in those that are due since the last look; at the first one, all."""
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
    """Report whether a Node that is not Ready since then is looked at again.

    Each time during the first minutes, then once a minute; each Node at its own
    second, so that not all come together.
    """
    if since is None or (now - since).total_seconds() < OFTEN_FOR_S:
        return True
    turns = [(at - since).total_seconds() // SELDOM_S for at in (last, now)]
    return turns[0] != turns[1]
