"""All reads of one pass: Nodes from the watched store, instances from the cloud."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from lib.cloud import errors, protocol
from lib.cloud.model import Absent, Foreign, Instance, InstanceRef, Observation, Seen
from lib.kube import client, resources, store
from lib.kube import errors as kube_errors
from lib.nodes import model
from lib.nodes.model import Node, Snapshot, Topic

HOLD_S = 5.0
"""How long a Node waits for the watch to bring our own write back."""
READ_TIMEOUT_S = 10.0


def needs_instance(node: Node, topics: Iterable[Topic]) -> bool:
    """Say whether a pass over these topics has to read the cloud."""
    if Topic.LIVENESS in topics and not node.is_ready:
        return True
    if Topic.ADDRESSES in topics:
        return True
    lacks = node.has_taint(model.UNINITIALIZED_TAINT) or not node.has_ip
    return Topic.SYNC in topics and lacks


def ref(node: Node) -> InstanceRef:
    """Say how the Node names its instance."""
    return InstanceRef(node.name, node.spec.provider_id)


def may_be_gone(node: Node) -> bool:
    """Say whether absence may ever delete the Node.

    By id, or by name as long as it was never initialised: a Node that lost its
    provider id later proves nothing by its name.
    """
    named = bool(node.spec.provider_id)
    return not node.is_ready and (named or node.has_taint(model.UNINITIALIZED_TAINT))


class Observer:
    """Reads for a batch of Nodes at once.

    Keeps only what may be thrown away: since when a Node is held back, and since when
    direct reads say that its instance is gone.
    """

    def __init__(
        self,
        nodes: store.Store[Node],
        api: client.Api,
        instances: protocol.Instances,
        settings: model.Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes = nodes
        self._api = api
        self._instances = instances
        self._settings = settings
        self._clock = clock
        self._held_since: dict[str, float] = {}
        self._gone_since: dict[str, float] = {}

    def observe(
        self, claims: Sequence[tuple[str, frozenset[Topic]]]
    ) -> Mapping[str, Snapshot]:
        """Give one snapshot per claimed Node; the cloud is read once for all."""
        began = self._clock()
        seen = {name: self._node(name, topics) for name, topics in claims}
        wanted = {
            name: snapshot.node
            for name, snapshot in seen.items()
            if snapshot.node is not None
            and not snapshot.held
            and needs_instance(snapshot.node, snapshot.topics)
        }
        if wanted:
            found = self._instances.observe({ref(n) for n in wanted.values()}, began)
            for name, node in wanted.items():
                instance = found[ref(node)]
                seen[name] = self._with_instance(node, seen[name], instance)
        return seen

    def _node(self, name: str, topics: frozenset[Topic]) -> Snapshot:
        node = self._nodes.get(name)
        if self._nodes.is_current(name):
            self._held_since.pop(name, None)
            return Snapshot(node, topics)
        since = self._held_since.setdefault(name, self._clock())
        if self._clock() - since < HOLD_S:
            return Snapshot(node, topics, held=True)
        return Snapshot(self._read(name), topics)

    def _read(self, name: str) -> Node | None:
        try:
            body = self._api.read(resources.NODES, name, timeout_s=READ_TIMEOUT_S)
        except kube_errors.NotFound:
            return None
        return msgspec.json.decode(body, type=Node)

    def _with_instance(
        self, node: Node, snapshot: Snapshot, instance: Observation[Instance]
    ) -> Snapshot:
        gone_for_s = None
        if isinstance(instance, Seen | Foreign):
            self._gone_since.pop(node.metadata.uid, None)
        elif (
            isinstance(instance, Absent)
            and Topic.LIVENESS in snapshot.topics
            and may_be_gone(node)
        ):
            gone_for_s = self._gone_for_s(node)
        return dataclasses.replace(snapshot, instance=instance, gone_for_s=gone_for_s)

    def _gone_for_s(self, node: Node) -> float | None:
        """Confirm the absence by a direct read, twice and far enough apart."""
        uid = node.metadata.uid
        began = self._clock()
        since = self._gone_since.get(uid)
        if since is not None and began - since < self._settings.confirm_after_s:
            return began - since
        try:
            gone = self._instances.confirm_absent(ref(node))
        except errors.CloudError:
            return None
        if not gone:
            self._gone_since.pop(uid, None)
            return None
        return began - self._gone_since.setdefault(uid, began)

    def forget(self, node: Node) -> None:
        """Drop what is kept for a Node that was deleted."""
        self._held_since.pop(node.name, None)
        self._gone_since.pop(node.metadata.uid, None)
