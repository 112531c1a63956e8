"""From Cinder's words to the vocabulary's: pure."""

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence

from lib.cloud.model import InstanceId
from lib.cloud.openstack.config.settings import BlockStorage
from lib.cloud.openstack.volumes import native
from lib.cloud.support import label_values
from lib.cloud.volumes import (
    UNLIMITED_BYTES,
    Attachment,
    AttachmentPhase,
    Capacity,
    Volume,
    VolumeId,
    VolumePhase,
)

GIB = 2**30
CLUSTER_KEY = "cinder.csi.openstack.org/cluster"
DEVICE_KEY = "DevicePath"
"""Of a volume's metadata, and of the publish context.

Source: kubernetes/cloud-provider-openstack pkg/csi/cinder."""

PHASES: Mapping[str, VolumePhase] = {
    "available": VolumePhase.AVAILABLE,
    "attaching": VolumePhase.ATTACHING,
    "awaiting-transfer": VolumePhase.BUSY,
    "backing-up": VolumePhase.BUSY,
    "creating": VolumePhase.CREATING,
    "deleted": VolumePhase.DELETING,
    "deleting": VolumePhase.DELETING,
    "detaching": VolumePhase.DETACHING,
    "downloading": VolumePhase.CREATING,
    "error": VolumePhase.FAILED,
    "error_attaching": VolumePhase.FAILED,
    "error_backing-up": VolumePhase.FAILED,
    "error_deleting": VolumePhase.FAILED,
    "error_detaching": VolumePhase.FAILED,
    "error_extending": VolumePhase.FAILED,
    "error_managing": VolumePhase.FAILED,
    "error_restoring": VolumePhase.FAILED,
    "extending": VolumePhase.RESIZING,
    "in-use": VolumePhase.IN_USE,
    "maintenance": VolumePhase.BUSY,
    "managing": VolumePhase.CREATING,
    "reserved": VolumePhase.ATTACHING,
    "restoring-backup": VolumePhase.BUSY,
    "retyping": VolumePhase.BUSY,
    "reverting": VolumePhase.BUSY,
    "unmanaging": VolumePhase.DELETING,
    "uploading": VolumePhase.BUSY,
}
"""Any other status is UNKNOWN, or FAILED if it begins with "error".

Source: Cinder API v3, "Volumes", status; cinder/objects/fields.py (VolumeStatus)."""

_RESERVATION_PHASES: Mapping[str, AttachmentPhase] = {
    "reserved": AttachmentPhase.ATTACHING,
    "attaching": AttachmentPhase.ATTACHING,
    "error_attaching": AttachmentPhase.ATTACHING,
    "detaching": AttachmentPhase.DETACHING,
    "error_detaching": AttachmentPhase.DETACHING,
}
"""Of attachments that are not finished.

Source: cinder/objects/fields.py (VolumeAttachStatus)."""

_CREATING_ACTIONS = ("001", "005", "008")
"""Schedule, copy an image, create on the back end: parts of making a volume.

Source: cinder/message/message_field.py (Action)."""
_NO_BACKEND = "_003"
"""No back end of the zone has room, or serves the type.

Source: cinder/message/message_field.py (Detail.NO_BACKEND_AVAILABLE)."""
_AT_ONCE_S = 60.0
"""What failed so soon after it was begun was never fit for use."""
_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def is_id(text: str) -> bool:
    """Report whether Cinder or Nova could have given out this id."""
    return _ID.fullmatch(text) is not None


def phase(status: str) -> VolumePhase:
    """Return where a volume of this status stands."""
    is_error = status.startswith("error")
    other = VolumePhase.FAILED if is_error else VolumePhase.UNKNOWN
    return PHASES.get(status, other)


def volume(native_volume: native.Volume, settings: BlockStorage) -> Volume:
    """Translate one volume."""
    return Volume(
        id=VolumeId(native_volume.id),
        name=native_volume.name or "",
        size_bytes=native_volume.size * GIB,
        phase=phase(native_volume.status),
        native_phase=native_volume.status,
        attachments=tuple(
            _attachment(attached) for attached in native_volume.attachments
        ),
        zones=node_zones(native_volume.availability_zone or "", settings),
        type=native_volume.volume_type or "",
        source=(
            VolumeId(native_volume.source_volid) if native_volume.source_volid else None
        ),
        cluster=native_volume.metadata.get(CLUSTER_KEY),
        is_shareable=bool(native_volume.multiattach),
        created_at=_utc(native_volume.created_at),
        native=native.Handle(
            native_volume.status,
            tuple(
                (attached.server_id, attached.attachment_id or "")
                for attached in native_volume.attachments
                if attached.server_id
            ),
            _utc(native_volume.updated_at),
        ),
    )


def _attachment(attached: native.Attached) -> Attachment:
    return Attachment(
        InstanceId(attached.server_id or ""),
        host="" if attached.server_id else attached.host_name or "unknown",
        publish_context=((DEVICE_KEY, attached.device or ""),),
    )


def in_full(volume: Volume, held: Sequence[native.Reservation]) -> Volume:
    """Add what Cinder's own attachments show beside the finished ones of a volume."""
    phases = {
        InstanceId(reservation.instance): _RESERVATION_PHASES[reservation.status]
        for reservation in held
        if reservation.instance and reservation.status in _RESERVATION_PHASES
    }
    finished = [
        (
            dataclasses.replace(attachment, phase=phases.pop(attachment.instance_id))
            if phases.get(attachment.instance_id) is AttachmentPhase.DETACHING
            else attachment
        )
        for attachment in volume.attachments
    ]
    known = {attachment.instance_id for attachment in finished}
    unfinished = [
        Attachment(instance_id, phase)
        for instance_id, phase in phases.items()
        if instance_id not in known
    ]
    return dataclasses.replace(
        volume, attachments=(*finished, *unfinished), is_in_full=True
    )


def _utc(moment: datetime.datetime | None) -> datetime.datetime | None:
    """Times of Cinder are UTC, without a time zone in the text."""
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=datetime.UTC)


def explained(failed: Volume, messages: Sequence[native.Message]) -> Volume:
    """Add to a FAILED volume why it failed, and whether it ever was fit for use.

    Certainly it was not when Cinder reports that making it failed, or when it failed
    right after it was begun; only while nothing is attached.
    """
    handle = native.handle(failed)
    of_creation = [message for message in messages if _is_of_creation(message)]
    is_early = failed.created_at is not None and (
        handle.updated_at is None
        or (handle.updated_at - failed.created_at).total_seconds() <= _AT_ONCE_S
    )
    never = handle.status == "error" and not handle.attachments
    why = (of_creation or list(messages))[:1]
    return dataclasses.replace(
        failed,
        was_ready=not (never and (bool(of_creation) or is_early)),
        message=why[0].user_message if why else "",
        is_unplaceable=any(
            message.event_id.endswith(_NO_BACKEND) for message in of_creation
        ),
    )


def _is_of_creation(message: native.Message) -> bool:
    """Source: Cinder API v3, "Messages": event ids are VOLUME_VOLUME_action_detail."""
    parts = message.event_id.split("_")
    return len(parts) >= 2 and parts[-2] in _CREATING_ACTIONS


def node_zones(volume_zone: str, settings: BlockStorage) -> tuple[str, ...] | None:
    """Return in which zones, as Nodes are labelled, a volume of this zone is reached.

    Empty: in all of them. None: the volume's zone says nothing about it.
    """
    if settings.ignore_volume_az:
        return None
    if not volume_zone:
        return ()
    mapped = [
        label_values.label_value(node_zone)
        for node_zone, cinder_zone in settings.availability_zone_map.items()
        if cinder_zone == volume_zone
    ]
    if volume_zone not in settings.availability_zone_map:
        # Nodes of the zone of the same name reach it, unless the map sends them away.
        mapped.append(label_values.label_value(volume_zone))
    return tuple(dict.fromkeys(mapped))


def volume_zone(node_zone: str, settings: BlockStorage) -> str:
    """Return in which zone of Cinder a volume for Nodes of this zone is made."""
    for own_zone, cinder_zone in settings.availability_zone_map.items():
        if label_values.label_value(own_zone) == node_zone:
            return cinder_zone
    return node_zone


def capacity(quotas: Mapping[str, native.Quota | str], type_name: str) -> Capacity:
    """Return what quotas leave. type_name: empty for the quotas of all types only."""
    suffixes = ("", f"_{type_name}") if type_name else ("",)
    left = [_left(quotas.get(f"gigabytes{suffix}")) for suffix in suffixes]
    counts = [_left(quotas.get(f"volumes{suffix}")) for suffix in suffixes]
    numbers = [number for number in left if number is not None]
    available = min(numbers) * GIB if numbers else UNLIMITED_BYTES
    if any(number == 0 for number in counts):
        available = 0
    largest = quotas.get("per_volume_gigabytes")
    is_limited = isinstance(largest, native.Quota) and largest.limit >= 0
    return Capacity(
        min(available, UNLIMITED_BYTES),
        (
            largest.limit * GIB
            if isinstance(largest, native.Quota) and is_limited
            else None
        ),
    )


def _left(quota: native.Quota | str | None) -> int | None:
    """Return what is left of a quota; None without a limit."""
    if not isinstance(quota, native.Quota) or quota.limit < 0:
        return None
    return max(quota.limit - quota.in_use - quota.reserved, 0)
