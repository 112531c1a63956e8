"""Publish and unpublish: from attachments to the next step. Pure.

Rule: as in decide.py, one `return` per state.

The states of publish, and what is done in each:

    not attached, ready -- AttachVolume --> ATTACHING -- wait --> ATTACHED here: done
    ATTACHING for too long:        DetachVolume, twice; then refused: ABORTED
    attached here, but FAILED:     DetachVolume, then as not attached
    attached elsewhere:            wait while it is DETACHING, else FAILED_PRECONDITION
    volume DELETING or FAILED:     refused with its status
"""

from collections.abc import Sequence

from lib.cloud.model import InstanceId
from lib.cloud.volumes import Attachment, AttachmentPhase, Volume, VolumePhase
from lib.volumes import outcomes
from lib.volumes.csi_codes import Code
from lib.volumes.model import (
    STUCK_S,
    AttachVolume,
    CallHistory,
    DetachVolume,
    PublishVolume,
    UnpublishVolume,
    VolumeOutcome,
)

RELEASES = 2
RELEASE_S = 15.0
"""Requests to release what a failed attach left, and the time between them: the second
confirms that the instance for which the volume is reserved is absent."""


def publish(  # noqa: PLR0911
    request: PublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    """Return the next step to attach a volume."""
    here = [
        attachment
        for attachment in volume.attachments
        if attachment.instance_id == request.instance_id
    ]
    if volume.phase is VolumePhase.DELETING:
        return outcomes.refuse(Code.ABORTED, outcomes.status(volume))
    others = [item for item in volume.attachments if item not in here]
    if here and others and not request.is_shared:
        return _elsewhere(request, volume, others, past)
    if here:
        return _publish_here(request, volume, here[0], past)
    if volume.phase is VolumePhase.ATTACHING and not _is_attached(volume):
        return _wait_to_attach(request, volume, past)
    if volume.attachments and not (request.is_shared and volume.is_shareable):
        return _elsewhere(request, volume, volume.attachments, past)
    if volume.phase is VolumePhase.FAILED:
        return outcomes.failed(volume)
    if volume.phase not in outcomes.READY or _is_inconsistent(volume):
        return _wait_to_attach(request, volume, past)
    tries = past.count(AttachVolume)
    if tries >= outcomes.TRIES:
        text = (
            f"attaching volume {volume.id} to instance {request.instance_id} did not"
            f" complete after {tries} accepted requests"
        )
        return outcomes.refuse(Code.INTERNAL, text)
    # Beside others an attach that is under way does not show in the phase.
    again_s = STUCK_S if volume.attachments else outcomes.RETRY_S
    if tries and past.since_action_s < again_s:
        return outcomes.wait(past, outcomes.status(volume))
    return outcomes.act(
        AttachVolume(volume, request.instance_id), why=outcomes.status(volume)
    )


def _publish_here(  # noqa: PLR0911
    request: PublishVolume, volume: Volume, here: Attachment, past: CallHistory
) -> VolumeOutcome:
    if here.phase is AttachmentPhase.ATTACHING:
        return _wait_to_attach(request, volume, past)
    if here.phase is AttachmentPhase.FAILED:
        if past.count(AttachVolume):
            text = (
                f"attaching volume {volume.id} to instance {request.instance_id} failed"
            )
            tail = f": {here.message}" if here.message else ""
            return outcomes.refuse(Code.INTERNAL, text + tail)
        if past.count(DetachVolume):
            return outcomes.wait(past, outcomes.status(volume))
        return outcomes.act(
            DetachVolume(volume, request.instance_id), why=outcomes.status(volume)
        )
    # The cloud does not report which of several instances a volume is detached from.
    is_leaving = volume.phase is VolumePhase.DETACHING
    if here.phase is not AttachmentPhase.ATTACHED or is_leaving:
        return outcomes.wait(past, outcomes.status(volume))
    if not here.is_published:
        why = f"{outcomes.status(volume)}; its attachment is adopted"
        if past.count(AttachVolume) and past.since_action_s < outcomes.RETRY_S:
            return outcomes.wait(past, why)
        return outcomes.act(AttachVolume(volume, request.instance_id), why=why)
    return VolumeOutcome(volume=volume)


def _elsewhere(
    request: PublishVolume,
    volume: Volume,
    others: Sequence[Attachment],
    past: CallHistory,
) -> VolumeOutcome:
    """Refuse, unless the volume is being detached now. others: its other holders."""
    are_leaving = all(item.phase is AttachmentPhase.DETACHING for item in others)
    if volume.phase is VolumePhase.DETACHING or are_leaving:
        return outcomes.wait(past, outcomes.status(volume))
    where = ", ".join(attachment.holder for attachment in others)
    text = f"volume_id: conflict: volume {volume.id} is attached to {where}"
    if request.is_shared:
        text += ", and its type does not allow several instances"
    return outcomes.refuse(Code.FAILED_PRECONDITION, text)


def _is_inconsistent(volume: Volume) -> bool:
    """Report whether a volume is in use, but has no attachment."""
    return volume.phase is VolumePhase.IN_USE and not volume.attachments


def _is_attached(volume: Volume) -> bool:
    """Report whether an instance has the volume already, or still."""
    return any(
        attachment.phase is not AttachmentPhase.ATTACHING
        for attachment in volume.attachments
    )


def _wait_to_attach(
    request: PublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    """Wait; release the volume when it is stuck in attaching."""
    is_arriving = volume.phase is VolumePhase.ATTACHING or any(
        attachment.phase is AttachmentPhase.ATTACHING
        for attachment in volume.attachments
    )
    if is_arriving:
        return _release(request.instance_id, volume, past)
    return outcomes.wait(past, outcomes.status(volume))


def _release(
    instance_id: InstanceId, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    """Have what a failed attach left released: of this or of an absent instance only.

    Refuse when the volume is then still reserved: it belongs to another instance.
    """
    tries = past.count(DetachVolume)
    is_due = past.since_action_s >= RELEASE_S if tries else _is_stuck(past)
    if not is_due:
        return outcomes.wait(past, outcomes.status(volume))
    if tries < RELEASES:
        return outcomes.act(
            DetachVolume(volume, instance_id), why=outcomes.status(volume)
        )
    text = f"volume_id: conflict: {outcomes.status(volume)}, being attached to"
    where = ", ".join(attachment.holder for attachment in volume.attachments)
    if where:
        return outcomes.refuse(Code.ABORTED, f"{text} {where}; detach it there first")
    text = f"{text} an instance that the cloud does not show; unless an attach is under"
    text = f"{text} way, the cloud administrator must reset its status to available"
    return outcomes.refuse(Code.ABORTED, text)


def _is_stuck(past: CallHistory) -> bool:
    return past.waited_s >= STUCK_S and past.since_action_s >= STUCK_S


def unpublish(  # noqa: PLR0911
    request: UnpublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    """Return the next step to detach a volume from an instance, or from all."""
    held = [
        attachment
        for attachment in volume.attachments
        if attachment.instance_id
        and request.instance_id in (None, attachment.instance_id)
    ]
    if not held:
        return _unpublish_absent(request, volume, past)
    instance_ids = [attachment.instance_id for attachment in held]
    is_arriving = any(
        attachment.phase is AttachmentPhase.ATTACHING for attachment in held
    )
    if is_arriving and not _is_stuck(past):
        text = f"{outcomes.status(volume)}, being attached to {held[0].instance_id}"
        return outcomes.wait(past, text)
    tried = {
        action.instance_id
        for action in past.actions
        if isinstance(action, DetachVolume)
    }
    untried = [instance_id for instance_id in instance_ids if instance_id not in tried]
    if untried:
        actions = (DetachVolume(volume, instance_id) for instance_id in untried)
        return outcomes.act(
            *actions, why=f"{outcomes.status(volume)} and is being detached"
        )
    if volume.phase is VolumePhase.FAILED:
        return outcomes.failed(volume)
    again_s = STUCK_S if volume.phase is VolumePhase.DETACHING else outcomes.RETRY_S
    is_leaving = all(
        attachment.phase is AttachmentPhase.DETACHING for attachment in held
    )
    if is_leaving or past.since_action_s < again_s:
        return outcomes.wait(past, outcomes.status(volume))
    if past.count(DetachVolume) >= outcomes.TRIES * len(held):
        where = ", ".join(instance_ids)
        text = f"detaching volume {volume.id} from instance {where} did not complete"
        return outcomes.refuse(Code.INTERNAL, text)
    actions = (DetachVolume(volume, instance_id) for instance_id in instance_ids)
    return outcomes.act(*actions, why=outcomes.status(volume))


def _unpublish_absent(
    request: UnpublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    """Accept that the volume is not attached, unless it may still be attached."""
    is_unclear = volume.phase in (VolumePhase.ATTACHING, VolumePhase.DETACHING)
    if volume.attachments and (volume.is_in_full or not volume.is_shareable):
        is_unclear = False
    if not is_unclear and (why := _may_come_true(past)):
        return outcomes.wait(past, why)
    if not is_unclear:
        return VolumeOutcome(volume=volume)
    if request.instance_id:
        return _release(request.instance_id, volume, past)
    return outcomes.wait(past, outcomes.status(volume))


def _may_come_true(past: CallHistory) -> str:
    """Return which request may still attach the volume; empty: none."""
    if past.count(DetachVolume):
        return ""  # the volume was attached, and detached again
    if past.lost_attach_s is not None and past.lost_attach_s < outcomes.LOST_S:
        return "the outcome of the last attach request is unknown"
    if past.process_s < outcomes.START_S:
        return outcomes.PREVIOUS_PROCESS
    return ""
