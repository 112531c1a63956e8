"""Instances of a cloud that lives in memory."""

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

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

SCHEME = "openstack"


def provider_id(instance_id: str) -> str:
    """Return the provider id that this cloud hands out."""
    return f"{SCHEME}:///{instance_id}"


@dataclasses.dataclass
class FakeInstances:
    """Implements `lib.cloud.protocol.Instances` over a dictionary.

    instances: by id; tests change it at will. unlisted: those that lists lack, as where
    a replica lags; direct reads show them. faults: errors for the next calls, in order,
    None for a call that succeeds. calls: operations carried out, for counting.
    before_call, after_call: run around each call with its operation; may raise to
    simulate a crash of the process there.
    """

    instances: dict[InstanceId, Instance] = dataclasses.field(default_factory=dict)
    unlisted: set[InstanceId] = dataclasses.field(default_factory=set)
    faults: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    calls: list[str] = dataclasses.field(default_factory=list)
    before_call: Callable[[str], None] = lambda operation: None
    after_call: Callable[[str], None] = lambda operation: None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def put(self, *instances: Instance) -> None:
        """Create or replace instances."""
        with self._lock:
            self.instances.update({instance.id: instance for instance in instances})

    def remove(self, instance_id: InstanceId) -> None:
        """Delete an instance."""
        with self._lock:
            del self.instances[instance_id]

    def _call(self, operation: str) -> tuple[Instance, ...]:
        self.before_call(operation)
        with self._lock:
            self.calls.append(operation)
            fault = self.faults.pop(0) if self.faults else None
            if fault is not None:
                raise fault
            instances = tuple(self.instances.values())
        self.after_call(operation)
        return instances

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol; one call for any number of refs."""
        del not_before
        try:
            instances = self._call("list instances")
        except errors.CloudError as error:
            return {ref: Unknown(error) for ref in refs}
        listed = [i for i in instances if i.id not in self.unlisted]
        return {ref: _find(ref, listed) for ref in refs}

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol; one call for each ref of this provider."""
        return {ref: self._look(ref) for ref in refs}

    def _look(self, ref: InstanceRef) -> Observation[Instance]:
        if not ref.provider_id:
            return Unknown(errors.Unsupported("no provider id", operation="get server"))
        if isinstance(not_managed := _find(ref, ()), NotManaged):
            return not_managed
        try:
            instance = _find(ref, self._call("read instance"))
        except errors.CloudError as error:
            return Unknown(error)
        if not isinstance(instance, Seen):
            return instance
        bare = dataclasses.replace(instance.value, addresses=(), addresses_known=False)
        return Seen(bare)

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol."""
        instances = self._call("get instance")
        return isinstance(_find(ref, instances), Absent)


def _find(ref: InstanceRef, instances: Iterable[Instance]) -> Observation[Instance]:
    if ref.provider_id:
        if not ref.provider_id.startswith(f"{SCHEME}:///"):
            return NotManaged(f"provider id {ref.provider_id!r} is of another cloud")
        matches = [i for i in instances if i.provider_id == ref.provider_id]
    else:
        matches = [i for i in instances if i.name == ref.node_name]
    if len(matches) > 1:
        message = f"{len(matches)} instances have the name {ref.node_name!r}"
        return Unknown(errors.Ambiguous(message, operation="find instance"))
    return Seen(matches[0]) if matches else Absent(by_id=bool(ref.provider_id))
