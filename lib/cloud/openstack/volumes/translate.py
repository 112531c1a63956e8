"""From Cinder's words to the vocabulary's: pure."""

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence

from lib.cloud.model import InstanceId
from lib.cloud.openstack.config.settings import BlockStorage
from lib.cloud.openstack.instances import translate as nodes
from lib.cloud.openstack.volumes import native
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
"""Any other status is UNKNOWN.

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
    return PHASES.get(status, VolumePhase.UNKNOWN)


def volume(seen: native.Volume, settings: BlockStorage) -> Volume:
    """Translate one volume."""
    return Volume(
        id=VolumeId(seen.id),
        name=seen.name or "",
        size_bytes=seen.size * GIB,
        phase=phase(seen.status),
        native_phase=seen.status,
        attachments=tuple(_attachment(one) for one in seen.attachments),
        zones=node_zones(seen.availability_zone or "", settings),
        type=seen.volume_type or "",
        source=VolumeId(seen.source_volid) if seen.source_volid else None,
        cluster=seen.metadata.get(CLUSTER_KEY),
        is_shareable=bool(seen.multiattach),
        created_at=_utc(seen.created_at),
        native=native.Handle(
            seen.status,
            tuple(
                (one.server_id, one.attachment_id or "")
                for one in seen.attachments
                if one.server_id
            ),
            _utc(seen.updated_at),
        ),
    )


def _attachment(seen: native.Attached) -> Attachment:
    return Attachment(
        InstanceId(seen.server_id or ""),
        host="" if seen.server_id else seen.host_name or "unknown",
        publish_context=((DEVICE_KEY, seen.device or ""),),
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
    """Cinder writes UTC and does not say so."""
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=datetime.UTC)


def explained(failed: Volume, messages: Sequence[native.Message]) -> Volume:
    """Add to a FAILED volume why it failed, and whether it ever was fit for use.

    Certainly it was not when Cinder says that making it failed, or when it failed
    right after it was begun; only while nothing is attached.
    """
    handle = native.handle(failed)
    made = [one for one in messages if _is_of_creation(one)]
    is_early = failed.created_at is not None and (
        handle.updated_at is None
        or (handle.updated_at - failed.created_at).total_seconds() <= _AT_ONCE_S
    )
    never = handle.status == "error" and not handle.attachments
    why = (made or list(messages))[:1]
    return dataclasses.replace(
        failed,
        was_ready=not (never and (bool(made) or is_early)),
        message=why[0].user_message if why else "",
        is_unplaceable=any(message.event_id.endswith(_NO_BACKEND) for message in made),
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
        nodes.label_value(ours)
        for ours, theirs in settings.availability_zone_map.items()
        if theirs == volume_zone
    ]
    if volume_zone not in settings.availability_zone_map:
        # Nodes of the zone of the same name reach it, unless the map sends them away.
        mapped.append(nodes.label_value(volume_zone))
    return tuple(dict.fromkeys(mapped))


def volume_zone(node_zone: str, settings: BlockStorage) -> str:
    """Return in which zone of Cinder a volume for Nodes of this zone is made."""
    for ours, theirs in settings.availability_zone_map.items():
        if nodes.label_value(ours) == node_zone:
            return theirs
    return node_zone


def capacity(quotas: Mapping[str, native.Quota | str], type_name: str) -> Capacity:
    """Return what quotas leave. type_name: empty for the quotas of all types only."""
    suffixes = ("", f"_{type_name}") if type_name else ("",)
    left = [_left(quotas.get(f"gigabytes{suffix}")) for suffix in suffixes]
    counts = [_left(quotas.get(f"volumes{suffix}")) for suffix in suffixes]
    numbers = [one for one in left if one is not None]
    available = min(numbers) * GIB if numbers else UNLIMITED_BYTES
    if any(one == 0 for one in counts):
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
