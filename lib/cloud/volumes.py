"""Volumes in words that no single cloud owns, and what a flow may ask about them.

Rules: frozen values only, no I/O, no native type of any cloud. A write only starts
something and may be repeated without harm; whether it has ended is read from a
volume's phase, attachments and size, never from the answer of the write.
"""

import dataclasses
import datetime
import enum
from collections.abc import Callable, Collection, Mapping
from typing import NewType, Protocol, runtime_checkable

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.write_places import Places

VolumeId = NewType("VolumeId", str)


def is_same_type(name: str, other: str) -> bool:
    """Report whether a cloud takes two names for those of one volume type.

    A cloud may search names in a database that ignores letter case, and blanks at the
    end.
    """
    return name.rstrip().casefold() == other.rstrip().casefold()


Pairs = tuple[tuple[str, str], ...]
"""Keys and values, in the order in which they were made."""

UNLIMITED_BYTES = 2**63 - 1
"""A capacity without any limit; the largest number of CSI."""


class Feature(enum.Enum):
    """What a provider may support beyond creating, attaching and deleting volumes."""

    CLONE = "clone"
    LIST = "list"
    CAPACITY = "capacity"
    EXPAND_OFFLINE = "expand offline"
    """While the volume is attached to nothing."""
    EXPAND_ONLINE = "expand online"
    CHANGE_TYPE = "change type"
    """In place: `Volumes.retype`."""


class VolumePhase(enum.Enum):
    """Where a volume stands; each native status maps to exactly one."""

    CREATING = "creating"
    """Being made; not yet fit for anything."""
    AVAILABLE = "available"
    """Fit for use, attached to nothing."""
    ATTACHING = "attaching"
    """Set aside for, or on its way to, an instance."""
    IN_USE = "in use"
    """Fit for use, attached to at least one instance."""
    DETACHING = "detaching"
    RESIZING = "resizing"
    BUSY = "busy"
    """Another operation holds it: a change of type, a move, a backup, maintenance."""
    DELETING = "deleting"
    FAILED = "failed"
    """Only a deletion, or an administrator of the cloud, can help."""
    UNKNOWN = "unknown"


class AttachmentPhase(enum.Enum):
    """Status of an attachment. Clouds without one show ATTACHED only."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"
    FAILED = "failed"
    """Will never be attached; a detach takes it away."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """A volume's link to one instance, or to a host.

    publish_context: for the node plugin; known once ATTACHED.
    message: why it failed, fit to be shown. host: the host that holds the volume
    without an instance; instance_id is empty then. is_published: False for an
    attachment of another program that is of no use yet: the cluster does not know the
    publish context, or the guest has no device; `Volumes.attach` adopts it without
    detaching.
    """

    instance_id: InstanceId
    phase: AttachmentPhase = AttachmentPhase.ATTACHED
    publish_context: Pairs = ()
    message: str = ""
    host: str = ""
    is_published: bool = True

    @property
    def holder(self) -> str:
        """Return what holds the volume, for messages."""
        return self.instance_id or f"host {self.host}"


@dataclasses.dataclass(frozen=True, slots=True)
class Volume:
    """One block device of the cloud.

    native_phase: the cloud's own word, for messages only. zones: the zones of Nodes
    that reach it, as Nodes are labelled; empty: every zone; None: the volume does not
    show it, the zones requested at its creation apply. type: the cloud's name for its
    kind of storage. source: what it was cloned from. cluster: the cluster in its
    ownership metadata, None without any. is_shareable: may be attached to several
    instances at the same time. was_ready: False only when it FAILED and certainly was
    never fit for use, so that nothing can be lost with it.
    is_unplaceable: it FAILED because its place can't hold it. is_in_full: attachments
    contains those that are not finished. created_at: UTC. message: why it FAILED, or
    its last expansion did, fit to be shown. expanding_to_bytes: larger than the size
    while an accepted expansion is not complete, else 0; the volume can be used in the
    meantime. native: the provider package's own value, which only that package
    reads.
    """

    id: VolumeId
    name: str
    size_bytes: int
    phase: VolumePhase
    native_phase: str = ""
    attachments: tuple[Attachment, ...] = ()
    zones: tuple[str, ...] | None = ()
    type: str = ""
    source: VolumeId | None = None
    cluster: str | None = None
    is_shareable: bool = False
    was_ready: bool = True
    is_unplaceable: bool = False
    is_in_full: bool = False
    created_at: datetime.datetime | None = None
    message: str = ""
    expanding_to_bytes: int = 0
    native: object = None

    @property
    def is_in_creation(self) -> bool:
        """Whether its content is not complete."""
        return self.phase is VolumePhase.CREATING


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeProblem:
    """One invalid field of a request. allowed: to be read after "must be"."""

    field: str
    value: str
    allowed: str


Problems = tuple[VolumeProblem, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Sizing:
    """What sizes a cloud makes. A volume's size is a whole number of steps.

    default_bytes: when the request names no size. most_bytes: None without a limit.
    """

    step_bytes: int
    default_bytes: int
    least_bytes: int
    most_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeRequest:
    """What a provider room makes a VolumeSpec of.

    name: empty for a request of a capacity, which may have no parameters. size_bytes: a
    size that `Sizing` allows. parameters: of the StorageClass. changes: of the
    VolumeAttributesClass; win over parameters. metadata: the keys that the provisioner
    adds (csi.storage.k8s.io/pvc/name and the like). annotations: of the
    PersistentVolumeClaim, where they are read. preferred, requisite: zones as Nodes are
    labelled, in order. is_shared: to be attached to several instances at the same time.
    cluster: the ID for the ownership metadata.
    """

    name: str
    size_bytes: int
    cluster: str
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    changes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    preferred: tuple[str, ...] = ()
    requisite: tuple[str, ...] = ()
    source: VolumeId | None = None
    is_shared: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class VolumePlace:
    """One place for a volume. zones, provider: see `VolumeSpec`."""

    zones: tuple[str, ...] | None
    provider: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeSpec:
    """A desired volume, parsed from a request by the provider package.

    zones: see `Volume`: zones that will reach it, as far as they are known now.
    near, apart: volumes to be placed with, or not with; names or ids in what `parse`
    gives, ids only in what `create` takes. context: what CSI calls the volume context,
    for the node plugin. provider: opaque, used by the provider package alone.
    places: where else it may be created, in order, when the first place can't hold it.
    requisite: zones of Nodes of which it must be reachable from at least one; empty:
    any. least_bytes, most_bytes: sizes of an existing volume that fit; least_bytes
    None: exactly size_bytes; most_bytes None: no limit.
    """

    name: str
    size_bytes: int
    cluster: str
    zones: tuple[str, ...] | None = ()
    type: str = ""
    source: VolumeId | None = None
    is_shared: bool = False
    near: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    metadata: Pairs = ()
    context: Pairs = ()
    provider: object = None
    places: tuple[VolumePlace, ...] = ()
    requisite: tuple[str, ...] = ()
    least_bytes: int | None = None
    most_bytes: int | None = None

    def candidates(self) -> tuple["VolumeSpec", ...]:
        """Return this spec for each place, in the order in which they are tried."""
        others = (
            dataclasses.replace(self, zones=place.zones, provider=place.provider)
            for place in self.places
        )
        return (self, *others)


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeChange:
    """What a volume is to become in place. type: see `Volume`; empty: as it is."""

    type: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Capacity:
    """What can still be made. largest_bytes: of one volume, None without a limit."""

    available_bytes: int
    largest_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ById:
    """Asks for the volume with this id; any text may be asked for.

    in_full: with attachments that are not finished, also of a volume that several
    instances share, where that takes another call. shows_reserved: the same of a volume
    that is ATTACHING. witness: an instance of the cluster, which shows that an absent
    volume is absent where the cluster is.
    """

    id: VolumeId
    in_full: bool = False
    shows_reserved: bool = False
    witness: InstanceId | None = None

    def lacks(self, volume: Volume) -> bool:
        """Report whether attachments are asked for that a list does not show."""
        if volume.is_in_full:
            return False
        is_shared = volume.is_shareable and bool(volume.attachments)
        is_reserved = volume.phase is VolumePhase.ATTACHING
        return (self.in_full and is_shared) or (self.shows_reserved and is_reserved)


@dataclasses.dataclass(frozen=True, slots=True)
class ByName:
    """Asks for all volumes with exactly this name.

    Attachments may be missing, but not those of a volume that FAILED.
    """

    name: str


Ref = ById | ByName

Found = tuple[Volume, ...] | Unknown
"""By id: one or none. By name: all, the oldest first, then by id. Empty: absent."""


@dataclasses.dataclass(frozen=True, slots=True)
class VolumesReading:
    """What one read showed.

    by_ref: one entry for each ref. listing: every volume of the project when the read
    was one complete list, else None.
    """

    by_ref: Mapping[Ref, Found]
    listing: tuple[Volume, ...] | None = None


@runtime_checkable
class Placing(Protocol):
    """What volumes have beside `Volumes` if the writes in progress are limited."""

    def places(self, *, attaches: bool) -> Places:
        """Return the places of the service that attaches volumes, or has them."""
        ...


class Volumes(Protocol):
    """The volumes of one project of a cloud. Safe to use from several threads.

    Which features there are is stated beside the implementation, where it can be read
    before a cloud is opened; a method of a missing one raises Unsupported. A provider
    that names this protocol as its base needs no methods for features that it lacks.
    Every call is bounded by a time-out of its own. Reads begin when they are asked
    for: sharing and keeping them is the caller's. Any id is taken: one that the cloud
    could never have given out is simply absent, and costs no call.
    """

    @property
    def sizing(self) -> Sizing:
        """Return what sizes there are."""
        ...

    @property
    def context_keys(self) -> frozenset[str]:
        """Return the keys that the context of a VolumeSpec may have."""
        ...

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """Have `fn` called with the ID or name of a volume that may have changed.

        It returns immediately. A hint, for callers that wait: it may be wrong, and
        never be given at all.
        """
        del fn

    def is_id(self, text: str) -> bool:
        """Report whether the cloud could have given out this volume ID."""
        ...

    def type_name(self, type: str) -> str:
        """Return the name of the type with this name or ID; unknown ones unchanged.

        Costs a call only for what may be an ID.

        Raises:
            CloudError: the types can't be read.
        """
        return type

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """Read a request. Pure; every problem is named."""
        ...

    def parse_change(self, parameters: Mapping[str, str]) -> VolumeChange | Problems:
        """Read the parameters of a VolumeAttributesClass. Pure."""
        return tuple(VolumeProblem("parameter", key, "none") for key in parameters)

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """Read these now, the cheapest way: one call each, or one list for all.

        within_s: the time for it, where that is less than the usual one.

        Never raises for one ref: it is Unknown then. A volume that a list lacks is
        read by its ID before it is reported as absent; a name's absence is that of a
        complete read.
        """
        ...

    def listing(self) -> tuple[Volume, ...]:
        """Read every volume of the project; one call per 1,000.

        Raises:
            CloudError: not all of it could be read.
        """
        ...

    def create(self, spec: VolumeSpec) -> Volume:
        """Begin to create a volume; the caller has searched for its name before.

        Raises:
            InvalidRequest: the cloud refuses the spec: unknown type or zone, a type
                that can't be shared.
            Unplaceable: the zone that the topology led to can't hold it.
            NotFound: the source is absent.
            QuotaExceeded: the project's quota is used up.
            OutOfRange: the size is beyond what the cloud makes.
            Unavailable: it may have been made nonetheless.
        """
        ...

    def delete(self, volume_id: VolumeId) -> None:
        """Begin to delete a volume. Fine if it is deleted, or is being deleted.

        Raises:
            AttachedElsewhere: it is attached to an instance.
            InUse: snapshots or other things depend on it.
            Busy: its phase does not allow it now.
        """
        ...

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """Begin to grow a volume, attached or not.

        Raises:
            QuotaExceeded, OutOfRange: the cloud allows no such size.
            Unsupported: this volume can't be grown as it is now (while attached).
            Busy: its phase does not allow it now.
            NotFound: it does not exist.
        """
        ...

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """Begin to attach a volume. Attached or on its way there already is fine.

        An attachment that is not published yet is adopted.

        Raises:
            NotFound: with the absent one, volume or instance, as its resource.
            AttachedElsewhere: another instance holds it.
            LimitReached: the instance takes no more volumes.
            Busy: the volume or the instance allows it not now.
        """
        ...

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """Begin to detach a volume. No such attachment, or no such instance, is fine.

        Remains of a failed attach to this instance, and attachments of an instance that
        does not exist, are removed as well.

        Raises:
            Busy: the volume or the instance allows it not now.
        """
        ...

    def retype(self, volume: Volume, change: VolumeChange) -> None:
        """Begin to change a volume's type.

        Raises:
            InvalidRequest: no such type, or the cloud refuses the way there.
            QuotaExceeded: of the new type.
            Busy: its phase does not allow it now.
            NotFound: it does not exist.
        """
        raise errors.Unsupported("volumes keep their types", operation="retype")

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """Return what can still be made of a type (empty: the default), in these zones.

        Raises:
            InvalidRequest: no such type.
        """
        raise errors.Unsupported("the cloud reports none", operation="capacity")
