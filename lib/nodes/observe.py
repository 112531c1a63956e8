"""Reads of a reconciliation: Nodes from the watched store, instances from the cloud."""

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
from lib.nodes import deletion_budget, labels, model, witnesses
from lib.nodes.model import Snapshot, Topic
from lib.reconcile import runner

SINGLE_READS_MIN = 20
SINGLE_READS_ONE_IN = 20
"""Up to this number of Nodes that are not Ready, or this share, are read singly."""

OnAvailability = Callable[[errors.CloudError | None], None]
Count = Callable[[Iterable[Observation[Instance]]], None]


def needs_instance(node: Node, topics: Iterable[Topic]) -> bool:
    """Report whether a reconciliation of these topics has to read the cloud."""
    if Topic.LIVENESS in topics and not node.is_ready:
        return True
    if Topic.ADDRESSES in topics:
        return True
    lacks = node.has_taint(kube_nodes.UNINITIALIZED_TAINT) or not node.has_ip
    # Which provider a Node belongs to is known from its observation only.
    changes = bool(labels.to_reconcile(node.metadata.labels))
    return Topic.SYNC in topics and (lacks or changes)


def needs_only_phase(snapshot: Snapshot) -> bool:
    """Report whether only the existence and the phase of the instance matter."""
    node = snapshot.node
    return (
        node is not None
        and bool(node.spec.provider_id)
        and node.has_ip
        and not node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
        and Topic.ADDRESSES not in snapshot.topics
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
    """Reads a batch of Nodes together.

    Keeps only state that may be lost: since when the deletion of a Node is suspended,
    since when direct reads return "not found" for its instance, and the number of
    deleted Nodes (see deletion_budget.py).
    on_availability: called with the error when reads of the cloud begin to fail, and
    with None when they succeed again. count: called with the observations of each read,
    except of one that confirms an absence. clocks: its beat is called before each
    direct read, so that slow reads are not taken for a stopped loop.
    """

    def __init__(  # noqa: PLR0913 # the last with sound defaults
        self,
        nodes: store.Store[Node],
        api: client.Api,
        instances: Callable[[], protocol.Instances],
        settings: model.NodeSettings,
        clocks: runner.Clocks | None = None,
        *,
        on_availability: OnAvailability | None = None,
        count: Count | None = None,
    ) -> None:
        self._on_availability = on_availability
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
        self.memory = deletion_budget.Deletions(settings.limit, clock)
        self._witnesses = witnesses.Witnesses(instances, clock)

    def observe(
        self, claims: Sequence[tuple[str, frozenset[Topic]]]
    ) -> Mapping[str, Snapshot]:
        """Return one snapshot per claimed Node; the cloud is read once for all."""
        began = self._clock()
        self.memory.begin()
        snapshots = {name: self._node(name, topics) for name, topics in claims}
        nodes = {
            name: snapshot.node
            for name, snapshot in snapshots.items()
            if snapshot.node is not None
            and not snapshot.held
            and needs_instance(snapshot.node, snapshot.topics)
        }
        for snapshot in snapshots.values():
            if snapshot.node is not None and snapshot.node.is_ready:
                self._back(snapshot.node)
        if nodes:
            instances = self._read(nodes, [snapshots[name] for name in nodes], began)
            if self._count is not None:
                self._count(instances.values())
            self._log_availability(instances.values())
            self._witnesses.note(instances)
            for name, node in nodes.items():
                instance = instances[ref(node)]
                snapshots[name] = self._noted(node, snapshots[name], instance)
            budget = self._budget()
            for name, node in nodes.items():
                snapshots[name] = self._confirmed(node, snapshots[name], budget)
        return snapshots

    def _node(self, name: str, topics: frozenset[Topic]) -> Snapshot:
        reading = self._fresh.read(name)
        node = reading.value
        age_s = 0.0 if reading.held else self._age_s(node)
        requested = node.metadata.deletion_timestamp if node is not None else None
        known_for_s = 0.0
        if node is not None:
            began = self._clock()
            known_for_s = began - self._known_since.setdefault(node.metadata.uid, began)
        return Snapshot(
            node,
            topics,
            held=reading.held,
            age_s=age_s,
            known_for_s=known_for_s,
            deleting_for_s=(
                (self._now() - requested).total_seconds() if requested else None
            ),
        )

    def _age_s(self, node: Node | None) -> float:
        created = node.metadata.creation_timestamp if node is not None else None
        return (self._now() - created).total_seconds() if created else 0.0

    def _log_availability(self, observed: Iterable[Observation[Instance]]) -> None:
        """Log when reads of the cloud begin to fail, and when they succeed again.

        Instances of another provider were not read.
        """
        read = [o for o in observed if not isinstance(o, NotManaged)]
        if not read:
            return
        unread = next((o.error for o in read if isinstance(o, Unknown)), None)
        if unread is not None and not self._is_blind:
            self._log.warning("instances cannot be read", error=str(unread))
            self._report_availability(unread)
        elif unread is None and self._is_blind:
            self._log.info("instances can be read again")
            self._report_availability(None)
        self._is_blind = unread is not None

    def _report_availability(self, error: errors.CloudError | None) -> None:
        if self._on_availability is not None:
            self._on_availability(error)

    def _read(
        self, batch: Mapping[str, Node], snapshots: Sequence[Snapshot], began: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """Read few Nodes of many one by one, else all by list.

        The number is that of all Nodes that are not Ready, also of other batches.
        """
        refs = {ref(node) for node in batch.values()}
        if all(map(needs_only_phase, snapshots)):
            nodes = self._nodes.items().values()
            few = max(SINGLE_READS_MIN, len(nodes) // SINGLE_READS_ONE_IN)
            if sum(not node.is_ready for node in nodes) <= few:
                return self._instances().look(refs)
        return self._instances().observe(refs, began)

    def _noted(
        self, node: Node, snapshot: Snapshot, instance: Observation[Instance]
    ) -> Snapshot:
        """Add the observation, and record a missing instance."""
        if isinstance(instance, Seen | NotManaged):
            self._back(node)
        noted = dataclasses.replace(snapshot, instance=instance)
        if _is_missing(noted):
            self.memory.missing(node.metadata.uid)
        return noted

    def _budget(self) -> deletion_budget.DeletionBudget:
        nodes = self._nodes.items().values()
        # One that is being deleted counts as deleted, whatever finalizers it has.
        is_exempt = {
            n.metadata.uid: model.is_confirmed(n) or not model.may_be_gone(n)
            for n in nodes
            if n.metadata.deletion_timestamp is None
        }
        return self.memory.budget(
            is_exempt, lambda: self._witnesses.are_observed(nodes)
        )

    def _confirmed(
        self, node: Node, snapshot: Snapshot, budget: deletion_budget.DeletionBudget
    ) -> Snapshot:
        """Confirm an absence by a direct read, unless the deletion is suspended."""
        gone_for_s = None
        is_suspended = deletion_budget.suspends(
            budget, self._settings.limit, node.metadata.uid
        )
        may_go = self._settings.deletes and (
            model.is_confirmed(node) or not is_suspended
        )
        if may_go and snapshot.deleting_for_s is None and _is_missing(snapshot):
            gone_for_s = self._gone_for_s(node)
        return dataclasses.replace(
            snapshot,
            gone_for_s=gone_for_s,
            budget=budget,
            was_reported=self.memory.was_reported(node.metadata.uid),
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
        # Only now: a direct read costs a request, and none is made within the interval.
        self._beat()
        try:
            gone = self._instances().confirm_absent(ref(node))
        except errors.CloudError:
            return None
        if not gone:
            self._back(node)
            return None
        return began - self._gone_since.setdefault(uid, began)

    def waiting(self) -> int:
        """Count the Nodes without an instance whose deletion waits for finalizers."""
        nodes = self._nodes.items().values()
        return sum(self._waits(node) for node in nodes)

    def _waits(self, node: Node) -> bool:
        requested = node.metadata.deletion_timestamp
        if requested is None or not self.memory.is_missing(node.metadata.uid):
            return False
        return (self._now() - requested).total_seconds() >= model.FINALIZED_BY_S

    def deletion_requested(self, node: Node) -> None:
        """Count a Node that is being deleted: once, however long finalizers hold it."""
        if model.may_be_gone(node) and not model.is_confirmed(node):
            self.memory.deleted(node.metadata.uid)

    def forget(self, node: Node) -> None:
        """Drop the state kept for a Node that was deleted."""
        self._fresh.forget(node.name)
        self._known_since.pop(node.metadata.uid, None)
        self._back(node)
        if node.metadata.deletion_timestamp is None:
            self.deletion_requested(node)
