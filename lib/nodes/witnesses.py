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
"""Between two such reads, while none is there."""


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
        """Note what was read anyway."""
        self._are_observed |= any(
            isinstance(instance, Seen) and bool(ref.provider_id)
            for ref, instance in observed.items()
        )

    def are_observed(self, nodes: Iterable[Node]) -> bool:
        """Report whether an absence counts; read a few instances if that is unknown.

        nodes: all of the cluster. Those that are Ready are asked for first: their
        instances run.
        """
        now = self._clock()
        is_due = self._asked_at is None or now - self._asked_at >= EVERY_S
        if not self._are_observed and is_due:
            self._asked_at = now
            ordered = sorted(nodes, key=lambda node: (not node.is_ready, node.name))
            self._ask(InstanceRef(n.name, n.spec.provider_id) for n in ordered)
        return self._are_observed

    def _ask(self, refs: Iterable[InstanceRef]) -> None:
        """Read until one exists or enough do not; another provider's costs no call."""
        asked = 0
        for ref in _by_id(refs):
            answers = self._instances().look({ref})
            self.note(answers)
            asked += not isinstance(answers[ref], NotManaged)
            if self._are_observed or asked == AT_MOST:
                return


def _by_id(refs: Iterable[InstanceRef]) -> Iterator[InstanceRef]:
    """Yield those that name their instance by ID: names repeat among projects."""
    return (ref for ref in refs if ref.provider_id)
