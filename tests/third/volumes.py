"""Volumes of Meadow: bricks, whose operations are complete when they return."""

import dataclasses
import datetime
import threading
import uuid
from collections.abc import Callable, Collection

from lib.cloud import errors
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    ById,
    Feature,
    Found,
    Problems,
    Ref,
    Sizing,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeProblem,
    VolumeRequest,
    Volumes,
    VolumeSpec,
    VolumesReading,
)

FEATURES = frozenset({Feature.EXPAND_OFFLINE})
CLASS = "meadowClass"
MIB = 2**20
_CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True)
class Brick:
    """A volume: whose it is, and the one instance that holds it."""

    id: str
    name: str
    size_bytes: int
    cluster: str
    type: str
    created_at: datetime.datetime
    holder: str = ""


class MeadowVolumes(Volumes):
    """Implements the protocol. has: whether an instance exists."""

    sizing = Sizing(MIB, MIB, MIB)
    context_keys: frozenset[str] = frozenset()

    def __init__(
        self,
        bricks: dict[str, Brick],
        classes: Collection[str],
        has: Callable[[str], bool],
        lock: threading.RLock,
    ) -> None:
        self._bricks = bricks
        self._classes = classes
        self._has = has
        self._lock = lock

    def is_id(self, text: str) -> bool:
        """See the protocol."""
        return text.startswith("brick-")

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """See the protocol."""
        type_ = request.parameters.get(CLASS, "fast")
        if type_ not in self._classes:
            allowed = f"one of {', '.join(self._classes)}"
            return (VolumeProblem(f"parameter {CLASS}", type_, allowed),)
        return VolumeSpec(request.name, request.size_bytes, request.cluster, type=type_)

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """See the protocol."""
        del within_s
        with self._lock:
            bricks = tuple(self._bricks.values())
        return VolumesReading({ref: _found(ref, bricks) for ref in refs})

    def listing(self) -> tuple[Volume, ...]:
        """See the protocol."""
        with self._lock:
            return tuple(_volume(brick) for brick in self._bricks.values())

    def create(self, spec: VolumeSpec) -> Volume:
        """See the protocol."""
        with self._lock:
            count = len(self._bricks)
            brick = Brick(
                f"brick-{uuid.uuid4()}",
                spec.name,
                spec.size_bytes,
                spec.cluster,
                spec.type,
                _CREATED + datetime.timedelta(seconds=count),
            )
            self._bricks[brick.id] = brick
            return _volume(brick)

    def delete(self, volume_id: VolumeId) -> None:
        """See the protocol."""
        with self._lock:
            brick = self._bricks.get(volume_id)
            if brick is not None and brick.holder:
                raise errors.AttachedElsewhere("held", operation="delete brick")
            self._bricks.pop(volume_id, None)

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """See the protocol."""
        self._replace("resize", volume, size_bytes=size_bytes)

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        if not self._has(instance_id):
            raise errors.NotFound(
                "no such instance", operation="attach", resource=instance_id
            )
        with self._lock:
            brick = self._bricks.get(volume.id)
            if brick is not None and brick.holder not in ("", instance_id):
                raise errors.AttachedElsewhere(brick.holder, operation="attach")
            self._replace("attach", volume, holder=instance_id)

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        with self._lock:
            brick = self._bricks.get(volume.id)
            if brick is not None and brick.holder == instance_id:
                self._replace("detach", volume, holder="")

    def _replace(self, operation: str, volume: Volume, **fields: object) -> None:
        with self._lock:
            brick = self._bricks.get(volume.id)
            if brick is None:
                raise errors.NotFound(
                    "no such brick", operation=operation, resource=volume.id
                )
            changed = dataclasses.replace(brick, **fields)  # type: ignore[arg-type]
            self._bricks[brick.id] = changed


def _volume(brick: Brick) -> Volume:
    context = (("device", f"/dev/meadow/{brick.id}"),)
    held = (Attachment(InstanceId(brick.holder), publish_context=context),)
    return Volume(
        VolumeId(brick.id),
        brick.name,
        brick.size_bytes,
        VolumePhase.IN_USE if brick.holder else VolumePhase.AVAILABLE,
        attachments=held if brick.holder else (),
        type=brick.type,
        cluster=brick.cluster,
        created_at=brick.created_at,
        is_in_full=True,
    )


def _found(ref: Ref, bricks: tuple[Brick, ...]) -> Found:
    if isinstance(ref, ById):
        return tuple(_volume(brick) for brick in bricks if brick.id == ref.id)
    named = [brick for brick in bricks if brick.name == ref.name]
    return tuple(
        _volume(brick) for brick in sorted(named, key=lambda brick: brick.created_at)
    )
