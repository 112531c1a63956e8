"""All reads of one pass: Nodes from the watched store, instances from the cloud."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from lib.cloud import errors, protocol
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceRef,
    NotManaged,
    Observation,
    Seen,
    Unknown,
)
from lib.kube import client, fresh, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.nodes import Node
from lib.nodes import deletion_limit, labels, model, witnesses
from lib.nodes.model import Snapshot, Topic
from lib.reconcile import runner

LOOKS_AT_LEAST = 20
LOOKS_ONE_IN = 20
"""Up to so many Nodes that are not Ready, or one in so many, are read singly."""


Sight = Callable[[errors.CloudError | None], None]
Count = Callable[[Iterable[Observation[Instance]]], None]


def needs_instance(node: Node, topics: Iterable[Topic]) -> bool:
    """Report whether a pass over these topics has to read the cloud."""
    if Topic.LIVENESS in topics and not node.is_ready:
        return True
    if Topic.ADDRESSES in topics:
        return True
    lacks = node.has_taint(kube_nodes.UNINITIALIZED_TAINT) or not node.has_ip
    # Which provider a Node belongs to is known from its observation only.
    changes = bool(labels.to_reconcile(node.metadata.labels))
    return Topic.SYNC in topics and (lacks or changes)


def needs_only_a_look(seen: Snapshot) -> bool:
    """Report whether it matters only if the instance is there, and in which phase."""
    node = seen.node
    return (
        node is not None
        and bool(node.spec.provider_id)
        and node.has_ip
        and not node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
        and Topic.ADDRESSES not in seen.topics
    )


def ref(node: Node) -> InstanceRef:
    """Return how the Node names its instance."""
    return InstanceRef(node.name, node.spec.provider_id)


def _is_missing(snapshot: Snapshot) -> bool:
    node = snapshot.node
    return (
        node is not None
        and model.may_be_gone(node)
        and Topic.LIVENESS in snapshot.topics
        and isinstance(snapshot.instance, Absent)
    )


class NodeObserver:
    """Reads for a batch of Nodes at once.

    Keeps only what may be thrown away: since when a Node is held back, since when
    direct reads say that its instance is gone, and how many Nodes went (see
    deletion_limit.py).
    sight: called with the error when the cloud can't be read from now on, and with
    None when it can be read again. count: called with the answers of each read, but
    not of one that confirms an absence. clocks: its beat is called before each direct
    look: many that are not answered in time must not look like a loop that is dead.
    """

    def __init__(  # noqa: PLR0913 # the last with sound defaults
        self,
        nodes: store.Store[Node],
        api: client.Api,
        instances: Callable[[], protocol.Instances],
        settings: model.NodeSettings,
        clocks: runner.Clocks | None = None,
        *,
        sight: Sight | None = None,
        count: Count | None = None,
    ) -> None:
        self._sight = sight
        self._count = count
        clocks = clocks or runner.Clocks()
        clock, self._now = clocks.monotonic, clocks.now
        self._beat = clocks.beat
        self._nodes = nodes
        self._fresh = fresh.Fresh(nodes, api, resources.NODES, Node, clock)
        self._instances = instances
        self._settings = settings
        self._clock = clock
        self._gone_since: dict[str, float] = {}
        self._known_since: dict[str, float] = {}
        self._is_blind = False
        self._log = structlog.stdlib.get_logger().bind(controller="nodes")
        self.memory = deletion_limit.Deletions(settings.limit, clock)
        self._witnesses = witnesses.Witnesses(instances, clock)

    def observe(
        self, claims: Sequence[tuple[str, frozenset[Topic]]]
    ) -> Mapping[str, Snapshot]:
        """Return one snapshot per claimed Node; the cloud is read once for all."""
        began = self._clock()
        self.memory.begin()
        seen = {name: self._node(name, topics) for name, topics in claims}
        wanted = {
            name: snapshot.node
            for name, snapshot in seen.items()
            if snapshot.node is not None
            and not snapshot.held
            and needs_instance(snapshot.node, snapshot.topics)
        }
        for snapshot in seen.values():
            if snapshot.node is not None and snapshot.node.is_ready:
                self._back(snapshot.node)
        if wanted:
            found = self._found(wanted, [seen[name] for name in wanted], began)
            if self._count is not None:
                self._count(found.values())
            self._say(found.values())
            self._witnesses.note(found)
            for name, node in wanted.items():
                seen[name] = self._noted(node, seen[name], found[ref(node)])
            crowd = self._crowd()
            for name, node in wanted.items():
                seen[name] = self._judged(node, seen[name], crowd)
        return seen

    def _node(self, name: str, topics: frozenset[Topic]) -> Snapshot:
        reading = self._fresh.read(name)
        node = reading.value
        age_s = 0.0 if reading.held else self._age_s(node)
        known_for_s = 0.0
        if node is not None:
            began = self._clock()
            known_for_s = began - self._known_since.setdefault(node.metadata.uid, began)
        return Snapshot(
            node, topics, held=reading.held, age_s=age_s, known_for_s=known_for_s
        )

    def _age_s(self, node: Node | None) -> float:
        created = node.metadata.creation_timestamp if node is not None else None
        return (self._now() - created).total_seconds() if created else 0.0

    def _say(self, found: Iterable[Observation[Instance]]) -> None:
        """Log when the cloud stops answering, and when it answers again.

        Of what is foreign it was not asked.
        """
        told = [one for one in found if not isinstance(one, NotManaged)]
        if not told:
            return
        unread = next((o.error for o in told if isinstance(o, Unknown)), None)
        if unread is not None and not self._is_blind:
            self._log.warning("instances can't be read", error=str(unread))
            self._note_sight(unread)
        elif unread is None and self._is_blind:
            self._log.info("instances can be read again")
            self._note_sight(None)
        self._is_blind = unread is not None

    def _note_sight(self, error: errors.CloudError | None) -> None:
        if self._sight is not None:
            self._sight(error)

    def _found(
        self, wanted: Mapping[str, Node], seen: Sequence[Snapshot], began: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """Read few Nodes of many one by one, else all by list.

        All that are not Ready count, also those whose turn is in another batch.
        """
        refs = {ref(node) for node in wanted.values()}
        if all(map(needs_only_a_look, seen)):
            nodes = self._nodes.items().values()
            few = max(LOOKS_AT_LEAST, len(nodes) // LOOKS_ONE_IN)
            if sum(not node.is_ready for node in nodes) <= few:
                return self._instances().look(refs)
        return self._instances().observe(refs, began)

    def _noted(
        self, node: Node, snapshot: Snapshot, instance: Observation[Instance]
    ) -> Snapshot:
        """Add what was read, and remember who is missing."""
        if isinstance(instance, Seen | NotManaged):
            self._back(node)
        noted = dataclasses.replace(snapshot, instance=instance)
        if _is_missing(noted):
            self.memory.missing(node.metadata.uid)
        return noted

    def _crowd(self) -> deletion_limit.Crowd:
        nodes = self._nodes.items().values()
        is_exempt = {
            n.metadata.uid: model.is_confirmed(n) or not model.may_be_gone(n)
            for n in nodes
        }
        return self.memory.crowd(is_exempt, lambda: self._witnesses.are_observed(nodes))

    def _judged(
        self, node: Node, snapshot: Snapshot, crowd: deletion_limit.Crowd
    ) -> Snapshot:
        """Look directly for what is missing, unless it is held back anyway."""
        gone_for_s = None
        is_held = deletion_limit.holds_back(
            crowd, self._settings.limit, node.metadata.uid
        )
        may_go = self._settings.deletes and (model.is_confirmed(node) or not is_held)
        if may_go and _is_missing(snapshot):
            gone_for_s = self._gone_for_s(node)
        told = self.memory.was_told(node.metadata.uid)
        return dataclasses.replace(
            snapshot, gone_for_s=gone_for_s, crowd=crowd, was_told=told
        )

    def _back(self, node: Node) -> None:
        self._gone_since.pop(node.metadata.uid, None)
        self.memory.back(node.metadata.uid)

    def _gone_for_s(self, node: Node) -> float | None:
        """Confirm the absence by a direct read, twice and far enough apart."""
        uid = node.metadata.uid
        began = self._clock()
        since = self._gone_since.get(uid)
        if since is not None and began - since < self._settings.confirm_after_s:
            return began - since
        self._beat()
        try:
            gone = self._instances().confirm_absent(ref(node))
        except errors.CloudError:
            return None
        if not gone:
            self._back(node)
            return None
        return began - self._gone_since.setdefault(uid, began)

    def forget(self, node: Node) -> None:
        """Drop what is kept for a Node that was deleted."""
        self._fresh.forget(node.name)
        self._known_since.pop(node.metadata.uid, None)
        self._back(node)
        if model.may_be_gone(node) and not model.is_confirmed(node):
            self.memory.went(node.metadata.uid)
