"""Requests, actions and outcomes of one volume."""

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
    """A volume of this name and size exists and is ready."""

    spec: VolumeSpec


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveVolume:
    """The volume is absent.

    cluster: ID of the cluster that must own the volume; volumes without ownership
    metadata may be deleted, too. None: any volume.
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
    """The volume is not attached to the instance; None: to no instance."""

    id: VolumeId
    instance_id: InstanceId | None


@dataclasses.dataclass(frozen=True, slots=True)
class Expand:
    """The volume has at least this size."""

    id: VolumeId
    size_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Modify:
    """The volume is as `change` describes it."""

    id: VolumeId
    change: VolumeChange


STUCK_S = 120.0
"""A volume that is attaching or detaching for longer is detached again."""

Request = Make | RemoveVolume | PublishVolume | UnpublishVolume | Expand | Modify


@dataclasses.dataclass(frozen=True, slots=True)
class CreateVolume:
    """Begin to create the volume. The only action that must not be repeated blindly."""

    spec: VolumeSpec


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Begin to delete the volume.

    cause: why a volume that this call created is deleted; returned to the caller.
    """

    id: VolumeId
    cause: RefusedCall | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class AttachVolume:
    """Begin to attach the volume."""

    volume: Volume
    instance_id: InstanceId


@dataclasses.dataclass(frozen=True, slots=True)
class DetachVolume:
    """Begin to detach the volume."""

    volume: Volume
    instance_id: InstanceId


@dataclasses.dataclass(frozen=True, slots=True)
class ResizeVolume:
    """Begin to resize the volume."""

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
    """Volumes as one read showed them.

    volumes: by name all, the oldest first; by ID at most one. source: the volume to
    clone; None: absent, or nothing is cloned.
    """

    volumes: tuple[Volume, ...] = ()
    source: Volume | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CallHistory:
    """Actions and times of one call; dropped at the end of the call.

    actions: accepted by the cloud, in order. created: IDs of created volumes.
    waited_s: since the call began. since_action_s: since the last action.
    lost_create_s, lost_attach_s: since the outcome of a create of this name, or of an
    attach of this volume to this instance, became unknown in this process; None:
    never. process_s: since this process started; requests of a killed process may
    still be carried out. was_busy: the cloud was too busy for an action. causes: why
    places could not hold the volume, in the order of the attempts. absences:
    consecutive reads without the volume.
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
        """Return the number of accepted actions of a kind."""
        return sum(isinstance(action, kind) for action in self.actions)


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """Input of a decision. observed: what `needs` named; None: it named nothing."""

    request: Request
    observed: ObservedVolumes | None
    past: CallHistory


@dataclasses.dataclass(frozen=True)
class VolumeOutcome(outcome.Outcome[Action]):
    """Next actions; without requeue_after_s the request is settled.

    With `failure`, a RefusedCall, it is refused, else fulfilled. volume: the result;
    None when its absence was requested. waiting_for: why the request is not fulfilled
    yet, for the error of an exceeded deadline.
    """

    volume: Volume | None = None
    waiting_for: str = ""

    @property
    def refusal(self) -> RefusedCall | None:
        """The failure, which is always a RefusedCall."""
        return self.failure if isinstance(self.failure, RefusedCall) else None


def key(request: Request) -> str:
    """Return the key that only one call at a time may hold: a volume, or a new name."""
    return f"name {request.spec.name}" if isinstance(request, Make) else request.id


def needs(request: Request, past: CallHistory) -> tuple[Ref, ...]:
    """Return what to read before the next decision; the request's own volume first."""
    if isinstance(request, Make):
        name = ByName(request.spec.name)
        if request.spec.source is None or past.created:
            return (name,)
        return name, ById(request.spec.source)
    if not isinstance(request, PublishVolume | UnpublishVolume):
        return (ById(request.id),)
    # For whom a volume is reserved matters to a publish only once it takes long.
    is_late = past.waited_s >= STUCK_S
    return (
        ById(
            request.id,
            in_full=True,
            shows_reserved=is_late or isinstance(request, UnpublishVolume),
            witness=request.instance_id,
        ),
    )
