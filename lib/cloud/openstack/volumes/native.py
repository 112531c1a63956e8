"""What Cinder sends, as far as this room reads it."""

import dataclasses
import datetime

import msgspec

from lib.cloud import volumes
from lib.cloud.openstack import native


class Attached(msgspec.Struct, frozen=True):
    """One finished attachment, inside a volume.

    server_id: None for an attachment to a host (os-attach with host_name).
    """

    server_id: str | None = None
    attachment_id: str | None = None
    device: str | None = None
    host_name: str | None = None


class Volume(msgspec.Struct, frozen=True):
    """A Cinder volume. size: in GiB; times in UTC, without a zone."""

    id: str
    name: str | None = None
    size: int = 0
    status: str = ""
    availability_zone: str | None = None
    attachments: tuple[Attached, ...] = ()
    metadata: dict[str, str | None] = {}
    volume_type: str | None = None
    source_volid: str | None = None
    multiattach: bool | None = False
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


class Name(msgspec.Struct, frozen=True):
    """As much of a volume as a log needs when the rest can't be read."""

    id: str = ""


VolumesPage = native.page("volumes", msgspec.Raw)
"""GET /volumes/detail. items: decoded one by one, as any may be of another client."""


class VolumeAnswer(msgspec.Struct, frozen=True):
    """GET /volumes/{id} and POST /volumes."""

    volume: Volume


class Reservation(msgspec.Struct, frozen=True):
    """An attachment as Cinder itself keeps it, from the reservation on."""

    id: str
    status: str = ""
    instance: str | None = None
    volume_id: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether the server has, or may still have, the disk.

        Source: cinder/objects/fields.py (VolumeAttachStatus).
        """
        return self.status not in ("reserved", "attaching", "error_attaching")


ReservationsPage = native.page("attachments", Reservation)
"""GET /attachments."""


class Message(msgspec.Struct, frozen=True):
    """Cinder's message to a user about an operation that failed later."""

    event_id: str = ""
    user_message: str = ""


MessagesPage = native.page("messages", Message)
"""GET /messages."""


class VolumeType(msgspec.Struct, frozen=True):
    """A volume type. extra_specs: None where we may not see them."""

    id: str
    name: str
    extra_specs: dict[str, str | None] | None = None


VolumeTypesPage = native.page("volume_types", VolumeType, "volume_type_links")
"""GET /types."""


class VolumeTypeAnswer(msgspec.Struct, frozen=True):
    """GET /types/default."""

    volume_type: VolumeType


class Quota(msgspec.Struct, frozen=True):
    """One quota and how far it is used; limit -1: none."""

    limit: int = -1
    in_use: int = 0
    reserved: int = 0


class QuotaAnswer(msgspec.Struct, frozen=True):
    """GET /os-quota-sets/{project}?usage=true; `id` beside quotas by name."""

    quota_set: dict[str, Quota | str]


@dataclasses.dataclass(frozen=True, slots=True)
class Handle:
    """What this room wants to find again in a `lib.cloud.volumes.Volume`.

    attachments: Cinder's id of each finished attachment, by server.
    """

    status: str
    attachments: tuple[tuple[str, str], ...] = ()
    updated_at: datetime.datetime | None = None


def handle(volume: volumes.Volume) -> Handle:
    """Return what this room wrote into a volume; an empty one for another's."""
    return volume.native if isinstance(volume.native, Handle) else Handle("")
