"""Volumes of a cloud in memory, with the phases and restrictions of Cinder.

Every write only starts something, which ends `operation_s` later; while a volume is on
its way to an instance it does not say to which.
"""

import contextlib
import dataclasses
import datetime
import threading
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.fake.volume_rules import Rules
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.volumes import (
    Attachment,
    AttachmentPhase,
    ById,
    ByName,
    Capacity,
    Found,
    Problems,
    Ref,
    Sizing,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
    VolumesReading,
)

PAGE = 1000
SINGLES = 4
"""Up to this many refs are read one by one, more by a list."""
_EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_NEVER = float("inf")
_READY = (VolumePhase.AVAILABLE, VolumePhase.IN_USE)


@dataclasses.dataclass(slots=True)
class _Record:
    """A volume, and what becomes of it when: None: it is gone then.

    bound_for: the instance that it is on its way to.
    """

    volume: Volume
    until: float = _NEVER
    then: Volume | None = None
    bound_for: InstanceId | None = None


@dataclasses.dataclass
class Faults:
    """Faults of the cloud.

    refusals: for the next calls, in order, None for one that succeeds; nothing is done.
    lost: operations whose next answers are lost though they are carried out, each time
    it is named. failing: operations that are accepted next, each time it is named, and
    come to nothing. stuck: operations that never end. late: operations whose next call
    gets no answer, and which are carried out later.
    """

    refusals: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    failing: list[str] = dataclasses.field(default_factory=list)
    stuck: set[str] = dataclasses.field(default_factory=set)
    late: dict[str, "Late"] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Late:
    """A request that is carried out so long after it was sent.

    crash: raised instead of the error, as if the process were killed.
    """

    delay_s: float
    crash: BaseException | None = None


def _nothing(operation: str) -> None:
    del operation


class FakeVolumes:
    """Implements `lib.cloud.volumes.Volumes` over a dictionary.

    instances: those there are. skew_s: by how much the cloud's time of day is ahead of
    the driver's; its times are by its own. calls: operations carried out, for counting.
    before_call, after_call: run around each call with its operation; may raise to
    simulate a crash of the process there.
    """

    def __init__(self, clock: Callable[[], float], operation_s: float = 1.0) -> None:
        self.clock = clock
        self.operation_s = operation_s
        self.skew_s = 0.0
        self.instances: set[InstanceId] = set()
        self.rules = Rules()
        self.faults = Faults()
        self.calls: list[str] = []
        self.before_call: Callable[[str], None] = _nothing
        self.after_call: Callable[[str], None] = _nothing
        self._lock = threading.RLock()
        self._records: dict[VolumeId, _Record] = {}
        self._made = 0
        self._due: list[tuple[float, Callable[[], object]]] = []
        self._is_replaying = False
        self._subscribers: list[Callable[[str], None]] = []

    # What tests do to the cloud behind the driver's back.

    def put(self, *volumes: Volume, bound_for: InstanceId | None = None) -> None:
        """Create or replace volumes; what was under way with them is forgotten.

        bound_for: the instance that they are on their way to.
        """
        with self._lock:
            for volume in volumes:
                self._records[volume.id] = _Record(volume, bound_for=bound_for)

    def volumes(self) -> tuple[Volume, ...]:
        """Return all there are now, without a call."""
        with self._lock:
            self._advance()
            return tuple(record.volume for record in self._records.values())

    def remove_instance(self, instance_id: InstanceId, leaves: bool = False) -> None:
        """Delete an instance; leaves: its attachments stay behind."""
        with self._lock:
            self.instances.discard(instance_id)
            for record in self._records.values():
                if record.bound_for == instance_id:
                    self._settle(record, _freed(record.volume, instance_id))
                held = [
                    attachment.instance_id for attachment in record.volume.attachments
                ]
                if instance_id in held and not leaves:
                    freed = _freed(record.volume, instance_id)
                    record.volume = freed
                    record.then = record.then and _freed(record.then, instance_id)

    # The protocol.

    @property
    def sizing(self) -> Sizing:
        """See the protocol."""
        return self.rules.sizing

    @property
    def context_keys(self) -> frozenset[str]:
        """See the protocol."""
        return frozenset({"near", "apart"})

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See the protocol; `report` calls it."""
        self._subscribers.append(fn)

    def report(self, volume: str) -> None:
        """Report that a volume may have changed. volume: ID or name."""
        for fn in self._subscribers:
            fn(volume)

    def is_id(self, text: str) -> bool:
        """See the protocol."""
        return text.count("-") == 4

    def type_name(self, type: str) -> str:
        """See the protocol. The ID of the type "fast" is "id-of-fast"."""
        if not type.startswith("id-of-"):
            return type
        with self._call("list volume types"):
            return type.removeprefix("id-of-")

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """See the protocol. Knows the parameters "type" and "zone"."""
        return self.rules.parse(request)

    def parse_change(self, parameters: Mapping[str, str]) -> VolumeChange | Problems:
        """See the protocol."""
        return self.rules.parse_change(parameters)

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """See the protocol."""
        del within_s
        if len(refs) > SINGLES:
            return self._observe_all(refs)
        return VolumesReading(
            {ref: self._full(ref, self._observe(ref)) for ref in refs}
        )

    def _full(self, ref: Ref, observed: Found) -> Found:
        """Show where a volume is on its way to, if that is asked for."""
        if isinstance(ref, ByName) or not isinstance(observed, tuple):
            return observed
        return tuple(
            self._in_full(volume) if ref.lacks(volume) else volume
            for volume in observed
        )

    def _in_full(self, volume: Volume) -> Volume:
        bound_for = self._records[volume.id].bound_for
        links = volume.attachments
        if bound_for is not None:
            links = (*links, Attachment(bound_for, AttachmentPhase.ATTACHING))
        return dataclasses.replace(volume, attachments=links, is_in_full=True)

    def _observe_all(self, refs: Collection[Ref]) -> VolumesReading:
        try:
            listing = self.listing()
        except errors.CloudError as error:
            return VolumesReading({ref: Unknown(error) for ref in refs})
        observations = {ref: self._full(ref, _matching(ref, listing)) for ref in refs}
        return VolumesReading(observations, listing)

    def _observe(self, ref: Ref) -> Found:
        operation = "get volume" if isinstance(ref, ById) else "find volumes"
        try:
            with self._call(operation):
                return _matching(ref, self.volumes())
        except errors.CloudError as error:
            return Unknown(error)

    def listing(self) -> tuple[Volume, ...]:
        """See the protocol."""
        with self._call("list volumes"):
            volumes_ = self.volumes()
            self.calls.extend(["list volumes"] * ((len(volumes_) - 1) // PAGE))
            return volumes_

    def create(self, spec: VolumeSpec) -> Volume:
        """See the protocol."""
        with self._call("create volume", lambda: self.create(spec)):
            self.rules.judge(spec, self._used_bytes(), self._records)
            self._made += 1
            volume = Volume(
                id=VolumeId(f"{self._made:08x}-0000-4000-8000-000000000000"),
                name=spec.name,
                size_bytes=spec.size_bytes,
                phase=VolumePhase.CREATING,
                zones=self.rules.zones_of(spec),
                type=spec.type or self.rules.types[0],
                source=spec.source,
                cluster=spec.cluster,
                is_shareable=spec.type in self.rules.shareable,
                created_at=_EPOCH
                + datetime.timedelta(
                    seconds=self.clock() + self.skew_s, microseconds=self._made
                ),
                was_ready=False,
            )
            record = self._records[volume.id] = _Record(volume)
            ready = dataclasses.replace(
                volume, phase=VolumePhase.AVAILABLE, was_ready=True
            )
            failed = dataclasses.replace(
                volume,
                phase=VolumePhase.FAILED,
                message="no host has space for it",
                is_unplaceable=True,
            )
            self._start("create", record, volume, ready, failed)
            return volume

    def _used_bytes(self) -> int:
        return sum(volume.size_bytes for volume in self.volumes())

    def delete(self, volume_id: VolumeId) -> None:
        """See the protocol."""
        with self._call("delete volume", lambda: self.delete(volume_id)):
            record = self._find(volume_id)
            if record is None or record.volume.phase is VolumePhase.DELETING:
                return
            volume = record.volume
            if volume.attachments:
                raise errors.AttachedElsewhere(
                    "it is attached", operation="delete volume", resource=volume_id
                )
            if volume.phase not in (VolumePhase.AVAILABLE, VolumePhase.FAILED):
                raise _busy("delete volume", volume)
            going = dataclasses.replace(volume, phase=VolumePhase.DELETING)
            failed = dataclasses.replace(
                volume, phase=VolumePhase.FAILED, was_ready=True
            )
            self._start("delete", record, going, None, failed)

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """See the protocol."""
        with self._call("resize volume", lambda: self.resize(volume, size_bytes)):
            record = self._ready(volume.id, "resize volume")
            now = record.volume
            used = sum(volume.size_bytes for volume in self.volumes()) - now.size_bytes
            if used + size_bytes > self.rules.quota_bytes:
                text = "no space is left"
                raise errors.QuotaExceeded(text, operation="resize volume")
            growing = dataclasses.replace(now, phase=VolumePhase.RESIZING)
            grown = dataclasses.replace(now, size_bytes=size_bytes)
            self._start("resize", record, growing, grown, now)

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        with self._call("attach volume", lambda: self.attach(volume, instance_id)):
            if instance_id not in self.instances:
                raise errors.NotFound(
                    "no such instance", operation="attach volume", resource=instance_id
                )
            record = self._find(volume.id)
            if record is None:
                raise errors.NotFound(
                    "no such volume", operation="attach volume", resource=volume.id
                )
            if not self._is_bound(record, instance_id):
                self._attach(record, instance_id)

    def _is_bound(self, record: _Record, instance_id: InstanceId) -> bool:
        if record.bound_for == instance_id:
            return True
        held = [attachment.instance_id for attachment in record.volume.attachments]
        return instance_id in held and record.volume.phase is VolumePhase.IN_USE

    def _attach(self, record: _Record, instance_id: InstanceId) -> None:
        now = record.volume
        if now.attachments and not now.is_shareable:
            text = f"it is attached to {now.attachments[0].instance_id}"
            raise errors.AttachedElsewhere(
                text, operation="attach volume", resource=now.id
            )
        if now.phase not in _READY:
            raise _busy("attach volume", now)
        held = sum(
            attachment.instance_id == instance_id
            for volume in self.volumes()
            for attachment in volume.attachments
        )
        if held >= self.rules.limit:
            raise errors.LimitReached(
                f"it has {held} volumes, the most it can have",
                operation="attach volume",
                resource=instance_id,
            )
        moving = dataclasses.replace(now, phase=VolumePhase.ATTACHING)
        context = (("DevicePath", f"/dev/vd{chr(ord('b') + held)}"),)
        link = Attachment(instance_id, publish_context=context)
        updated = dataclasses.replace(
            now, phase=VolumePhase.IN_USE, attachments=(*now.attachments, link)
        )
        self._start("attach", record, moving, updated, now)
        record.bound_for = instance_id

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        with self._call("detach volume", lambda: self.detach(volume, instance_id)):
            record = self._find(volume.id)
            if record is None:
                return
            now = record.volume
            held = [attachment.instance_id for attachment in now.attachments]
            if instance_id not in held:
                if now.phase is VolumePhase.ATTACHING and self._is_free(
                    record.bound_for, instance_id
                ):
                    self._settle(record, _freed(now, instance_id))
                return
            if instance_id not in self.instances:
                self._settle(record, _freed(now, instance_id))
                return
            if now.phase is VolumePhase.DETACHING:
                return
            if now.phase is not VolumePhase.IN_USE:
                raise _busy("detach volume", now)
            moving = dataclasses.replace(now, phase=VolumePhase.DETACHING)
            self._start("detach", record, moving, _freed(now, instance_id), now)

    def _is_free(self, bound_for: InstanceId | None, instance_id: InstanceId) -> bool:
        """Report whether a detach of an instance may release what is bound for one."""
        is_absent = bound_for is not None and bound_for not in self.instances
        return bound_for == instance_id or is_absent

    def retype(self, volume: Volume, change: VolumeChange) -> None:
        """See the protocol."""
        with self._call("retype volume", lambda: self.retype(volume, change)):
            record = self._ready(volume.id, "retype volume")
            now = record.volume
            moving = dataclasses.replace(now, phase=VolumePhase.BUSY)
            updated = dataclasses.replace(now, type=change.type)
            self._start("retype", record, moving, updated, now)

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """See the protocol."""
        del zones
        with self._call("get limits"):
            return self.rules.capacity(type, self._used_bytes())

    @contextlib.contextmanager
    def _call(
        self, operation: str, later: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """Surround one call. later: carries it out again, for `Faults.late`."""
        if self._is_replaying:
            yield
            return
        self.before_call(operation)
        with self._lock:
            self.calls.append(operation)
            fault = self.faults.refusals.pop(0) if self.faults.refusals else None
            if fault is not None:
                raise fault
            self._advance()
            if later is not None and (late := self.faults.late.pop(operation, None)):
                self._due.append((self.clock() + late.delay_s, later))
                text = "no answer in time"
                raise late.crash or errors.Unavailable(text, operation=operation)
            yield
            is_lost = operation in self.faults.lost
            if is_lost:
                self.faults.lost.remove(operation)
        self.after_call(operation)
        if is_lost:
            raise errors.Unavailable("no answer in time", operation=operation)

    def _replay(self) -> None:
        """Carry out the requests that are due; refusals are not reported."""
        if self._is_replaying:
            return
        due = [later for at, later in self._due if at <= self.clock()]
        self._due = [request for request in self._due if request[0] > self.clock()]
        self._is_replaying = True
        for later in due:
            with contextlib.suppress(errors.CloudError):
                later()
        self._is_replaying = False

    def _advance(self) -> None:
        self._replay()
        now = self.clock()
        for record in list(self._records.values()):
            if record.until > now:
                continue
            if record.then is None:
                del self._records[record.volume.id]
            else:
                self._settle(record, record.then)

    def _settle(self, record: _Record, volume: Volume) -> None:
        record.volume, record.then = volume, None
        record.until, record.bound_for = _NEVER, None

    def _start(
        self,
        operation: str,
        record: _Record,
        moving: Volume,
        then: Volume | None,
        failed: Volume,
    ) -> None:
        record.volume, record.then = moving, then
        if operation in self.faults.failing:
            self.faults.failing.remove(operation)
            record.then = failed
        is_stuck = operation in self.faults.stuck
        record.until = _NEVER if is_stuck else self.clock() + self.operation_s

    def _find(self, volume_id: VolumeId) -> _Record | None:
        return self._records.get(volume_id)

    def _ready(self, volume_id: VolumeId, operation: str) -> _Record:
        record = self._find(volume_id)
        if record is None:
            raise errors.NotFound(
                "no such volume", operation=operation, resource=volume_id
            )
        if record.volume.phase not in _READY:
            raise _busy(operation, record.volume)
        return record


def _matching(ref: Ref, volumes: Collection[Volume]) -> tuple[Volume, ...]:
    if isinstance(ref, ById):
        return tuple(volume for volume in volumes if volume.id == ref.id)
    named = (volume for volume in volumes if volume.name == ref.name)
    return tuple(
        sorted(named, key=lambda volume: (volume.created_at or _EPOCH, volume.id))
    )


def _freed(volume: Volume, instance_id: InstanceId) -> Volume:
    left = tuple(
        attachment
        for attachment in volume.attachments
        if attachment.instance_id != instance_id
    )
    is_moving = volume.phase in (
        VolumePhase.IN_USE,
        VolumePhase.ATTACHING,
        VolumePhase.DETACHING,
    )
    phase = VolumePhase.IN_USE if left else VolumePhase.AVAILABLE
    return dataclasses.replace(
        volume, attachments=left, phase=phase if is_moving else volume.phase
    )


def _busy(operation: str, volume: Volume) -> errors.Busy:
    text = f"it is {volume.phase.value}"
    return errors.Busy(text, operation=operation, resource=volume.id)
