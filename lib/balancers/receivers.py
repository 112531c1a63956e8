"""The Nodes that may receive traffic, as load balancers see them."""

import threading
from collections.abc import Callable

from lib.cloud.load_balancers import Node as Receiver
from lib.cloud.model import Address, AddressType
from lib.kube.nodes import Node

TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
EXCLUDED_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""Source: Go strconv.ParseBool; what it cannot parse excludes, as "true" does."""
_TYPES = frozenset(AddressType)


def may_receive_traffic(node: Node) -> bool:
    """Report whether load balancers may send traffic to a Node.

    To one that is not Ready they may: health monitors find out which ones answer.

    Source: k8s.io/cloud-provider service controller, getNodePredicatesForService
    and nodeIncludedPredicate, nodeNotDeletedPredicate, nodeUnTaintedPredicate.
    """
    if node.metadata.labels.get(EXCLUDED_LABEL, "false") not in _FALSE:
        return False
    is_leaving = node.metadata.deletion_timestamp is not None
    return not is_leaving and not node.has_taint(TO_BE_DELETED_TAINT)


def of(node: Node) -> Receiver | None:
    """Return a Node as load balancers see it; None when it may not receive traffic."""
    if not may_receive_traffic(node):
        return None
    addresses = tuple(
        Address(AddressType(address.type), address.address)
        for address in node.status.addresses
        if address.type in _TYPES
    )
    return Receiver(
        node.name,
        node.spec.provider_id,
        addresses,
        tuple(sorted(node.metadata.labels.items())),
    )


class Receivers:
    """Follows the Nodes, and keeps those that may receive traffic. Thread-safe.

    changed: called when they are others than before, or one of them is another; not
    so for heartbeats, conditions and whatever else is no concern of load balancers.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._by_name: dict[str, Receiver] = {}
        self._all: tuple[Receiver, ...] | None = None

    def follow(self, name: str, old: Node | None, new: Node | None) -> None:
        """Take in one change of one Node; for `lib.kube.store.Store.subscribe`."""
        del old
        now = of(new) if new is not None else None
        with self._lock:
            if self._by_name.get(name) == now:
                return
            if now is None:
                del self._by_name[name]
            else:
                self._by_name[name] = now
            self._all = None
        self._changed()

    def all(self) -> tuple[Receiver, ...]:
        """Return them by name."""
        with self._lock:
            if self._all is None:
                self._all = tuple(
                    receiver for _, receiver in sorted(self._by_name.items())
                )
            return self._all
