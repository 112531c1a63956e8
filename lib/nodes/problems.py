"""Problems of Nodes that last, counted by reason; Events report each of them."""

import collections
import enum
import threading
from collections.abc import Iterable, Mapping

from lib.cloud.model import Seen, Unknown
from lib.kube.nodes import Node
from lib.nodes import model
from lib.reconcile.outcome import Outcome, ReportAction


class NodeProblem(enum.StrEnum):
    """Reason of a problem; that of its Event, but for CLOUD."""

    NOT_FOUND = "InstanceNotFound"
    TYPE_UNKNOWN = "InstanceTypeUnknown"
    OTHER_PROVIDER = "ProviderMismatch"
    PROVIDED_IP = "ProvidedNodeIPUnknown"
    NO_ADDRESS = "NodeAddressMissing"
    CLOUD = "InstanceUnknown"
    """A new Node waits for a cloud that does not answer; the Event has its reason."""
    DENIED = "SyncNodeFailed"
    """The API server denies a write of the Node: admission, or RBAC."""
    DELETION = "DeletingNodeFailed"


_OBSERVED = frozenset(NodeProblem) - {NodeProblem.DENIED, NodeProblem.DELETION}
"""Problems that an observation of the instance shows, and ends."""


class Problems:
    """Problems of all Nodes, by uid. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uid: dict[str, frozenset[NodeProblem]] = {}

    def judge(self, snapshot: model.Snapshot, outcome: Outcome[model.Action]) -> None:
        """Note the problems of a Node that an observation of its instance shows."""
        node, instance = snapshot.node, snapshot.instance
        if node is None or instance is None:
            return
        if isinstance(instance, Seen) and not instance.value.addresses_known:
            return  # only whether it runs was read
        warnings = _warnings(outcome.actions)
        observed = frozenset(p for p in NodeProblem if p in warnings)
        with self._lock:
            kept = self._by_uid.get(node.metadata.uid, frozenset())
            if isinstance(instance, Unknown):
                observed = frozenset({NodeProblem.CLOUD}) if warnings else kept
            else:
                kept -= _OBSERVED
            if all(isinstance(action, ReportAction) for action in outcome.actions):
                kept &= _OBSERVED  # nothing is to be written: no write is denied
            self._put(node, kept | observed)

    def failed(self, node: Node, action: model.Action) -> None:
        """Note a write that the API server denies."""
        with self._lock:
            kept = self._by_uid.get(node.metadata.uid, frozenset())
            self._put(node, kept | {_of_write(action)})

    def written(self, node: Node, action: model.Action) -> None:
        """Note that the API server has accepted a write."""
        with self._lock:
            kept = self._by_uid.get(node.metadata.uid, frozenset())
            self._put(node, kept - {_of_write(action)})

    def forget(self, node: Node) -> None:
        """Drop what is kept of a Node that does not exist."""
        with self._lock:
            self._put(node, frozenset())

    def counts(self) -> Mapping[NodeProblem, int]:
        """Count the Nodes with each problem."""
        with self._lock:
            by_uid = tuple(self._by_uid.values())
        return collections.Counter(problem for some in by_uid for problem in some)

    def _put(self, node: Node, problems: frozenset[NodeProblem]) -> None:
        if problems:
            self._by_uid[node.metadata.uid] = problems
        else:
            self._by_uid.pop(node.metadata.uid, None)


def _warnings(actions: Iterable[model.Action]) -> frozenset[str]:
    return frozenset(
        action.reason
        for action in actions
        if isinstance(action, model.RecordEvent) and action.is_warning
    )


def _of_write(action: model.Action) -> NodeProblem:
    is_deletion = isinstance(action, model.DeleteNode)
    return NodeProblem.DELETION if is_deletion else NodeProblem.DENIED
