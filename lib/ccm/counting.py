"""Counts what a cloud says of instances, whoever asks."""

from collections.abc import Collection, Mapping

from lib.ccm import metrics
from lib.cloud import model, protocol


class Counted:
    """Passes each call on, and counts what was found. Implements the protocol."""

    def __init__(
        self, instances: protocol.Instances, found: metrics.InstanceMetrics
    ) -> None:
        self._instances = instances
        self._metrics = found

    def observe(
        self, refs: Collection[model.InstanceRef], not_before: float
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """See the protocol."""
        found = self._instances.observe(refs, not_before)
        self._metrics.observed(found.values())
        return found

    def look(
        self, refs: Collection[model.InstanceRef]
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """See the protocol."""
        found = self._instances.look(refs)
        self._metrics.observed(found.values())
        return found

    def confirm_absent(self, ref: model.InstanceRef) -> bool:
        """See the protocol."""
        return self._instances.confirm_absent(ref)
