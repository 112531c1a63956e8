"""Whether the cloud that answers is the one in which the cluster's instances are.

With credentials of another project every instance is correctly "not found". A process
that has just started accepts an absence only after it has observed the instance of some
Node by its provider ID (docs/decisions/0006-absence-scope.md).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from lib.cloud import protocol
from lib.cloud.model import Instance, InstanceRef, NotManaged, Observation, Seen
from lib.kube.nodes import Node

AT_MOST = 3
"""Instances that are read directly, at a time."""
EVERY_S = 60.0
"""Between two such reads, until an instance is found."""


class Witnesses:
    """Knows whether this process has observed an instance of the cluster by ID."""

    def __init__(
        self,
        instances: Callable[[], protocol.Instances],
        clock: Callable[[], float],
    ) -> None:
        """clock: monotonic seconds."""
        self._instances = instances
        self._clock = clock
        self._are_observed = False
        self._asked_at: float | None = None

    def note(self, observed: Mapping[InstanceRef, Observation[Instance]]) -> None:
        """Record observations of other reads."""
        self._are_observed |= any(
            isinstance(instance, Seen) and bool(ref.provider_id)
            for ref, instance in observed.items()
        )

    def are_observed(self, nodes: Iterable[Node]) -> bool:
        """Report whether an absence is credible; read a few instances to find out.

        nodes: all of the cluster. Instances of Ready Nodes are read first: they run.
        """
        now = self._clock()
        is_due = self._asked_at is None or now - self._asked_at >= EVERY_S
        if not self._are_observed and is_due:
            self._asked_at = now
            ordered = sorted(nodes, key=lambda node: (not node.is_ready, node.name))
            self._ask(InstanceRef(n.name, n.spec.provider_id) for n in ordered)
        return self._are_observed

    def _ask(self, refs: Iterable[InstanceRef]) -> None:
        """Read until an instance is found, or AT_MOST are not; skip other providers."""
        asked = 0
        for ref in _by_id(refs):
            answers = self._instances().look({ref})
            self.note(answers)
            asked += not isinstance(answers[ref], NotManaged)
            if self._are_observed or asked == AT_MOST:
                return


def _by_id(refs: Iterable[InstanceRef]) -> Iterator[InstanceRef]:
    """Yield the references with an instance ID: names repeat among projects."""
    return (ref for ref in refs if ref.provider_id)
