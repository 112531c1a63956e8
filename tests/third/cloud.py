"""Meadow: instances of a cloud that lives in memory, written from lib/cloud alone."""

import dataclasses
import threading
from collections.abc import Collection, Iterable, Mapping

from lib.cloud import errors
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceId,
    InstanceRef,
    NotManaged,
    Observation,
    Seen,
    Unknown,
)

NAME = "meadow"
SCHEME = f"{NAME}://"


@dataclasses.dataclass
class World:
    """What the cloud holds; it outlives every process that works on it."""

    instances: dict[InstanceId, Instance] = dataclasses.field(default_factory=dict)
    lock: threading.RLock = dataclasses.field(default_factory=threading.RLock)


def provider_id(instance_id: str) -> str:
    """Return the provider ID of an instance."""
    return f"{SCHEME}{instance_id}"


class MeadowInstances:
    """Implements `lib.cloud.protocol.Instances`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        del not_before  # what is in memory is always new
        with self._world.lock:
            instances = tuple(self._world.instances.values())
        return {ref: self._find(ref, instances) for ref in refs}

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        return {ref: self._bare(ref) for ref in refs}

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol."""
        return isinstance(self.observe([ref], 0.0)[ref], Absent)

    def _bare(self, ref: InstanceRef) -> Observation[Instance]:
        if not ref.provider_id:
            return Unknown(errors.Unsupported("no provider ID", operation="look"))
        observation = self.observe([ref], 0.0)[ref]
        if not isinstance(observation, Seen):
            return observation
        bare = dataclasses.replace(
            observation.value, addresses=(), addresses_known=False
        )
        return Seen(bare)

    @staticmethod
    def _find(ref: InstanceRef, instances: Iterable[Instance]) -> Observation[Instance]:
        if ref.provider_id and not ref.provider_id.startswith(SCHEME):
            return NotManaged(f"{ref.provider_id} is not of {NAME}")
        if ref.provider_id:
            matches = [
                instance
                for instance in instances
                if instance.provider_id == ref.provider_id
            ]
        else:
            matches = [
                instance for instance in instances if instance.name == ref.node_name
            ]
        if len(matches) > 1:
            text = f"{len(matches)} instances have the name {ref.node_name!r}"
            return Unknown(errors.Ambiguous(text, operation="find instance"))
        return Seen(matches[0]) if matches else Absent(by_id=bool(ref.provider_id))
