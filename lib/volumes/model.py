"""Wishes, actions and outcomes of one volume."""

import dataclasses
import math

from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    ById,
    ByName,
    Ref,
    Volume,
    VolumeChange,
    VolumeId,
    VolumeSpec,
)
from lib.reconcile import outcome
from lib.volumes.csi_codes import RefusedCall


@dataclasses.dataclass(frozen=True, slots=True)
class Make:
    """A volume of this name and size is there, fit for use."""

    spec: VolumeSpec


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveVolume:
    """The volume is absent.

    cluster: whose volumes may be deleted, beside those without ownership metadata;
    None: all.
    """

    id: VolumeId
    cluster: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PublishVolume:
    """The volume is attached to the instance.

    is_shared: other instances may hold it at the same time.
    """

    id: VolumeId
    instance_id: InstanceId
    is_shared: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class UnpublishVolume:
    """The volume is not attached to the instance; None: to none at all."""

    id: VolumeId
    instance_id: InstanceId | None


@dataclasses.dataclass(frozen=True, slots=True)
class Expand:
    """The volume has at least this size."""

    id: VolumeId
    size_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Modify:
    """The volume is what `change` says."""

    id: VolumeId
    change: VolumeChange


Wish = Make | RemoveVolume | PublishVolume | UnpublishVolume | Expand | Modify


@dataclasses.dataclass(frozen=True, slots=True)
class CreateVolume:
    """Begin to make it. The only action that must not be repeated blindly."""

    spec: VolumeSpec


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Begin to delete it.

    cause: why a volume that this call created has to go; reported in the end.
    """

    id: VolumeId
    cause: RefusedCall | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class AttachVolume:
    """Begin to attach it."""

    volume: Volume
    instance_id: InstanceId


@dataclasses.dataclass(frozen=True, slots=True)
class DetachVolume:
    """Begin to detach it."""

    volume: Volume
    instance_id: InstanceId


@dataclasses.dataclass(frozen=True, slots=True)
class ResizeVolume:
    """Begin to grow it."""

    volume: Volume
    size_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class RetypeVolume:
    """Begin to change its type."""

    volume: Volume
    change: VolumeChange


Action = (
    CreateVolume
    | DeleteVolume
    | AttachVolume
    | DetachVolume
    | ResizeVolume
    | RetypeVolume
)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedVolumes:
    """What a look showed.

    volumes: those that the wish is about: by name all, the oldest first; by id one or
    none. source: what a volume that is to be made is cloned from; None: absent, or
    nothing is cloned.
    """

    volumes: tuple[Volume, ...] = ()
    source: Volume | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CallHistory:
    """What one call has done so far; it ends with the call.

    actions: those that the cloud accepted, in order. created: ids of volumes made.
    waited_s: since the call began. since_action_s: since the last of the actions.
    lost_create_s, lost_attach_s: since the outcome of a create of this name, or of an
    attach of this volume to this instance, became unknown in this process; None:
    never. process_s: since this process started; what a killed one sent may still be
    carried out. was_busy: the cloud was too busy for an action. causes: why places
    could not hold the volume, in the order in which they were tried. absences: looks
    in a row that showed no such volume.
    """

    actions: tuple[Action, ...] = ()
    created: tuple[VolumeId, ...] = ()
    waited_s: float = 0.0
    since_action_s: float = 0.0
    lost_create_s: float | None = None
    lost_attach_s: float | None = None
    process_s: float = math.inf
    was_busy: bool = False
    causes: tuple[RefusedCall, ...] = ()
    absences: int = 0

    def count(self, kind: type[Action]) -> int:
        """Return how many actions of a kind were accepted."""
        return sum(isinstance(action, kind) for action in self.actions)


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """What is decided upon. seen: what `needs` named; None: it named nothing."""

    wish: Wish
    seen: ObservedVolumes | None
    past: CallHistory


@dataclasses.dataclass(frozen=True)
class VolumeOutcome(outcome.Outcome[Action]):
    """What to do next; without requeue_after_s the wish is settled.

    By `failure`, a Refused, or else fulfilled. volume: as it fulfils the wish; None
    when the wish is its absence. waiting_for: why the wish is not fulfilled yet, for
    the caller that runs out of time.
    """

    volume: Volume | None = None
    waiting_for: str = ""

    @property
    def refusal(self) -> RefusedCall | None:
        """The failure, which is always a Refused."""
        return self.failure if isinstance(self.failure, RefusedCall) else None


def key(wish: Wish) -> str:
    """Return what only one call at a time may change: a volume, or a new name."""
    return f"name {wish.spec.name}" if isinstance(wish, Make) else wish.id


def needs(wish: Wish, past: CallHistory) -> tuple[Ref, ...]:
    """Return what to read before the next decision; the wish's own volume first."""
    if isinstance(wish, Make):
        name = ByName(wish.spec.name)
        if wish.spec.source is None or past.created:
            return (name,)
        return name, ById(wish.spec.source)
    return (ById(wish.id, in_full=isinstance(wish, PublishVolume | UnpublishVolume)),)
