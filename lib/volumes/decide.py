"""Says what brings a volume one step closer to a wish.

Pure: the same volumes and past give the same outcome. Every state that a volume can be
in is answered for every wish; nothing is assumed about who brought it there.

Rule: one `return` answers one state, in the order of the checks; that is why functions
have more of them here than the linter likes (PLR0911).
"""

from lib.cloud.volumes import (
    Attachment,
    AttachmentPhase,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeSpec,
)
from lib.volumes import poll_interval
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.model import (
    Action,
    AttachVolume,
    CallHistory,
    CreateVolume,
    DeleteVolume,
    DetachVolume,
    Expand,
    Make,
    Modify,
    ObservedVolumes,
    PublishVolume,
    RemoveVolume,
    ResizeVolume,
    RetypeVolume,
    UnpublishVolume,
    VolumeOutcome,
    Wish,
)

SOON_S = 0.5
"""The first look after an action."""
LOST_S = 60.0
"""How long a request of unknown outcome may still be carried out: its time-out."""
START_S = 10.0
"""How long what a killed process sent may still be carried out: nothing that can't be
repeated is created so soon after the start, and no absence of an attachment counts."""
CONFIRM_S = 0.2
"""Before an absence by ID is confirmed by a second look."""
STUCK_S = 120.0
"""A volume on its way to or from an instance for longer is helped along."""
RETRY_S = 5.0
"""An attach or detach that had no effect is tried again after it..."""
TRIES = 3
"""...so often in one call."""

_READY = frozenset({VolumePhase.AVAILABLE, VolumePhase.IN_USE})
_NOT_YET = frozenset({VolumePhase.CREATING, VolumePhase.UNKNOWN})


def decide(  # noqa: PLR0911
    wish: Wish, observed: ObservedVolumes | None, past: CallHistory
) -> VolumeOutcome:
    """Return the next step, or the end.

    seen: what `model.needs` asked for showed; None when it asked for nothing.
    """
    match wish:
        case Make():
            return _make(wish.spec, observed or ObservedVolumes(), past)
        case RemoveVolume():
            return _remove(wish, observed or ObservedVolumes(), past)
        case _ if observed is None or not observed.volumes:
            return _gone(wish, past)
        case PublishVolume():
            return _publish(wish, observed.volumes[0], past)
        case UnpublishVolume():
            return _unpublish(wish, observed.volumes[0], past)
        case Expand():
            return _expand(wish, observed.volumes[0], past)
        case Modify():
            return _modify(wish, observed.volumes[0], past)


def may_appear(past: CallHistory) -> bool:
    """Report whether a volume may still be created by a request of before."""
    is_lost = past.lost_create_s is not None and past.lost_create_s < LOST_S
    return is_lost or past.process_s < START_S


def _wait(past: CallHistory, why: str) -> VolumeOutcome:
    return VolumeOutcome(
        requeue_after_s=poll_interval.after_s(past.waited_s), waiting_for=why
    )


def _act(*actions: Action, why: str, after_s: float = SOON_S) -> VolumeOutcome:
    return VolumeOutcome(actions=actions, requeue_after_s=after_s, waiting_for=why)


def _refuse(code: Code, message: str) -> VolumeOutcome:
    return VolumeOutcome(failure=RefusedCall(code, message))


def _is(volume: Volume) -> str:
    """Return in which status a volume is, in the cloud's own word."""
    return f"volume {volume.id} is {volume.native_phase or volume.phase.value!r}"


def _failed(volume: Volume) -> VolumeOutcome:
    tail = f": {volume.message}" if volume.message else ""
    text = f"{_is(volume)}{tail}; an administrator of the cloud must repair it"
    return _refuse(Code.INTERNAL, text)


def _gone(wish: Wish, past: CallHistory) -> VolumeOutcome:
    if isinstance(wish, UnpublishVolume):
        return _absent(wish.id, past)
    assert not isinstance(wish, Make)  # noqa: S101 -- for the type checker
    return _refuse(Code.NOT_FOUND, f"volume_id is {wish.id!r}; there is no such volume")


def _absent(volume_id: VolumeId, past: CallHistory) -> VolumeOutcome:
    """Accept the absence that was wished once a second look has confirmed it."""
    if past.absences > 1:
        return VolumeOutcome()
    why = f"volume {volume_id} was not found; this is being confirmed"
    return VolumeOutcome(requeue_after_s=CONFIRM_S, waiting_for=why)


def _make(  # noqa: PLR0911
    spec: VolumeSpec, observed: ObservedVolumes, past: CallHistory
) -> VolumeOutcome:
    owned = [volume for volume in observed.volumes if volume.cluster == spec.cluster]
    if observed.volumes and not owned:
        return _foreign(spec, observed.volumes[0])
    alive = [volume for volume in owned if volume.phase is not VolumePhase.DELETING]
    if not alive:
        return (
            _wait(past, _is(owned[0]))
            if owned
            else _create(spec, observed.source, past)
        )
    chosen, *younger = alive
    wrong = _differs(spec, chosen)
    is_failed = chosen.phase is VolumePhase.FAILED
    if is_failed and not (wrong and chosen.was_ready):
        return _remake(chosen, past)
    if wrong and chosen.id in past.created and not chosen.attachments:
        return _undo(spec, chosen, wrong, past)
    spare = [volume for volume in younger if _is_spare(volume, chosen, past)]
    if wrong:
        # Which of the others is the right one is not known, but of our own.
        spare = [volume for volume in spare if volume.id in past.created]
    if deletable := [one for one in spare if one.phase not in _NOT_YET]:
        actions = (DeleteVolume(volume.id) for volume in deletable)
        return _act(*actions, why=f"volume {deletable[0].id} is one too many")
    if spare or (chosen.phase in _NOT_YET and not wrong):
        return _wait(past, _is(spare[0] if spare else chosen))
    if wrong:
        text = f"name is {spec.name!r}, which volume {chosen.id} has; {wrong}"
        return _refuse(Code.ALREADY_EXISTS, text)
    return VolumeOutcome(volume=chosen)


def _foreign(spec: VolumeSpec, other: Volume) -> VolumeOutcome:
    mark = "no cluster" if other.cluster is None else f"cluster {other.cluster!r}"
    text = (
        f"name is {spec.name!r}, which volume {other.id} has, and it carries the mark"
        f" of {mark}, not of {spec.cluster!r}; delete it, or set its mark, to go on"
    )
    return _refuse(Code.ALREADY_EXISTS, text)


def _create(
    spec: VolumeSpec, source: Volume | None, past: CallHistory
) -> VolumeOutcome:
    """Create it, unless one may be under way that can't be seen yet."""
    if past.lost_create_s is not None and past.lost_create_s < LOST_S:
        return _wait(past, "the outcome of the last request to create it is unknown")
    vanished = [
        created for created in past.created if DeleteVolume(created) not in past.actions
    ]
    if vanished:
        text = f"volume {vanished[-1]} vanished while it was being created"
        return _refuse(Code.ABORTED, text)
    candidates = spec.candidates()
    if past.causes and (
        past.causes[-1].code is not Code.RESOURCE_EXHAUSTED
        or len(past.causes) >= len(candidates)
    ):
        return VolumeOutcome(failure=past.causes[-1])
    if spec.source is not None and (unfit := _unfit(spec, source, past)):
        return unfit
    if past.process_s < START_S:
        return _wait(past, "a request of a process before this one may be under way")
    action = CreateVolume(candidates[len(past.causes)])
    return _act(action, why=f"volume {spec.name} is being created")


def _unfit(
    spec: VolumeSpec, source: Volume | None, past: CallHistory
) -> VolumeOutcome | None:
    """Return why the source can't be cloned; None when it can."""
    field = f"volume_content_source is volume {spec.source!r}"
    if source is None or source.phase is VolumePhase.DELETING:
        return _refuse(Code.NOT_FOUND, f"{field}; there is no such volume")
    if source.size_bytes > spec.size_bytes:
        text = f"{field} of {source.size_bytes} bytes; want at least as many, not"
        return _refuse(Code.OUT_OF_RANGE, f"{text} {spec.size_bytes}")
    if source.phase is VolumePhase.FAILED:
        return _refuse(Code.INVALID_ARGUMENT, f"{field}, but {_is(source)}")
    if _is_out_of_reach(spec, source):
        text = f"{field} in zone {', '.join(source.zones or ())}, and so is its clone"
        return _refuse(
            Code.RESOURCE_EXHAUSTED, f"{text}; want {', '.join(spec.requisite)}"
        )
    return None if source.phase in _READY else _wait(past, _is(source))


def _differs(spec: VolumeSpec, volume: Volume) -> str:
    """Return what keeps a volume of the right name from being the right one.

    Source: CSI specification 1.12, CreateVolume, "Volume already exists but is
    incompatible": capacity_range, parameters, accessibility_requirements.
    """
    if wrong := _size_differs(spec, volume):
        return wrong
    if spec.type and volume.type and volume.type != spec.type:
        return f"its type is {volume.type!r}, not {spec.type!r}"
    if _is_out_of_reach(spec, volume):
        zones = ", ".join(volume.zones or ())
        return f"its zone is {zones}, not one of {', '.join(spec.requisite)}"
    if volume.source != spec.source:
        return f"its source is {volume.source or 'none'}, not {spec.source or 'none'}"
    if spec.is_shared and not volume.is_shareable:
        return "it can't be attached to several instances at once"
    return ""


def _size_differs(spec: VolumeSpec, volume: Volume) -> str:
    size = f"its size is {volume.size_bytes} bytes"
    if spec.least_bytes is None:
        is_right = volume.size_bytes == spec.size_bytes
        return "" if is_right else f"{size}, not {spec.size_bytes}"
    if volume.size_bytes < spec.least_bytes:
        return f"{size}, not at least {spec.least_bytes}"
    if spec.most_bytes is not None and volume.size_bytes > spec.most_bytes:
        return f"{size}, not at most {spec.most_bytes}"
    return ""


def _is_out_of_reach(spec: VolumeSpec, volume: Volume) -> bool:
    """Report whether no Node that the volume is for can reach it."""
    if not spec.requisite or not volume.zones:
        return False
    return not set(volume.zones) & set(spec.requisite)


def _remake(volume: Volume, past: CallHistory) -> VolumeOutcome:
    """Delete what failed before it was ever handed out; else keep the caller trying.

    A final code would leave the volume behind once the claim is deleted.
    """
    is_own = volume.id in past.created
    if volume.attachments or (volume.was_ready and not is_own):
        text = f"{_is(volume)}: it may hold data, so that an administrator of the cloud"
        return _refuse(Code.ABORTED, f"{text} must repair or delete it")
    action = DeleteVolume(volume.id, _cause(volume) if is_own else None)
    if action in past.actions:
        return _wait(past, f"{_is(volume)} although its deletion was accepted")
    return _act(action, why=f"{_is(volume)} and is being deleted")


def _undo(
    spec: VolumeSpec, volume: Volume, wrong: str, past: CallHistory
) -> VolumeOutcome:
    """Delete what this call created and the cloud made otherwise than asked for.

    As with allow_availability_zone_fallback, or where types can't be seen before.
    """
    is_out = _is_out_of_reach(spec, volume)
    code = Code.RESOURCE_EXHAUSTED if is_out else Code.INVALID_ARGUMENT
    text = f"volume {volume.name} was created, but {wrong}; it was deleted"
    action = DeleteVolume(volume.id, RefusedCall(code, text))
    if volume.phase in _NOT_YET or action in past.actions:
        return _wait(past, _is(volume))
    return _act(action, why=f"{_is(volume)}, but {wrong}")


def _cause(volume: Volume) -> RefusedCall:
    """Return why a creation failed, with the code for external-provisioner."""
    why = volume.message or "the cloud does not say why"
    text = f"volume {volume.name} could not be created: {why}"
    is_full = volume.is_unplaceable
    return RefusedCall(Code.RESOURCE_EXHAUSTED if is_full else Code.INTERNAL, text)


def _is_spare(volume: Volume, chosen: Volume, past: CallHistory) -> bool:
    """Report whether a second volume of the name was never in use.

    Whoever looked after it was made saw the older one as well, and took that.
    """
    if volume.attachments or volume.phase not in _READY | _NOT_YET | {
        VolumePhase.FAILED
    }:
        return False
    if volume.id in past.created:
        return True
    if volume.created_at is None or chosen.created_at is None:
        return False
    return volume.created_at > chosen.created_at


def _remove(
    wish: RemoveVolume, observed: ObservedVolumes, past: CallHistory
) -> VolumeOutcome:
    if not observed.volumes:
        # After a deletion that the cloud accepted, absence is no surprise.
        return VolumeOutcome() if past.actions else _absent(wish.id, past)
    volume = observed.volumes[0]
    if wish.cluster is not None and volume.cluster not in (None, wish.cluster):
        text = (
            f"volume_id is {volume.id!r}, which belongs to cluster {volume.cluster!r},"
            f" not to {wish.cluster!r}; delete it from there"
        )
        return _refuse(Code.FAILED_PRECONDITION, text)
    return _remove_seen(volume, past)


def _remove_seen(volume: Volume, past: CallHistory) -> VolumeOutcome:
    accepted = past.count(DeleteVolume)
    if volume.attachments:
        return _attached(volume)
    if volume.phase is VolumePhase.FAILED and accepted:
        return _failed(volume)
    is_deletable = volume.phase in _READY | {VolumePhase.FAILED, VolumePhase.UNKNOWN}
    is_early = bool(accepted or past.was_busy) and past.since_action_s < RETRY_S
    if not is_deletable or is_early:
        return _wait(past, _is(volume))
    if accepted >= TRIES:
        text = f"{_is(volume)} after {accepted} deletions that the cloud accepted"
        return _refuse(Code.INTERNAL, text)
    return _act(DeleteVolume(volume.id), why=_is(volume), after_s=1.0)


def _attached(volume: Volume) -> VolumeOutcome:
    where = ", ".join(attachment.holder for attachment in volume.attachments)
    text = f"volume_id is {volume.id!r}, which is attached to {where}; detach it first"
    return _refuse(Code.FAILED_PRECONDITION, text)


def _publish(  # noqa: PLR0911
    wish: PublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    here = [
        attachment
        for attachment in volume.attachments
        if attachment.instance_id == wish.instance_id
    ]
    if volume.phase is VolumePhase.DELETING:
        return _refuse(Code.ABORTED, _is(volume))
    if here:
        return _publish_here(wish, volume, here[0], past)
    if volume.attachments and not (wish.is_shared and volume.is_shareable):
        return _elsewhere(wish, volume, past)
    if volume.phase is VolumePhase.FAILED:
        return _failed(volume)
    if volume.phase not in _READY or _is_puzzling(volume):
        return _way_in(wish, volume, past)
    tries = past.count(AttachVolume)
    if tries >= TRIES:
        text = (
            f"node_id is {wish.instance_id!r}: the instance accepted volume"
            f" {volume.id} {tries} times, and did not attach it"
        )
        return _refuse(Code.INTERNAL, text)
    # Beside others an attach that is under way does not show in the phase.
    again_s = STUCK_S if volume.attachments else RETRY_S
    if tries and past.since_action_s < again_s:
        return _wait(past, _is(volume))
    return _act(AttachVolume(volume, wish.instance_id), why=_is(volume))


def _publish_here(
    wish: PublishVolume, volume: Volume, here: Attachment, past: CallHistory
) -> VolumeOutcome:
    if here.phase is AttachmentPhase.ATTACHING:
        return _way_in(wish, volume, past)
    if here.phase is AttachmentPhase.FAILED:
        if past.count(AttachVolume):
            text = f"volume {volume.id} can't be attached to {wish.instance_id!r}"
            tail = f": {here.message}" if here.message else ""
            return _refuse(Code.INTERNAL, text + tail)
        if past.count(DetachVolume):
            return _wait(past, _is(volume))
        return _act(DetachVolume(volume, wish.instance_id), why=_is(volume))
    # The cloud does not tell which of several instances a volume is detached from.
    is_leaving = volume.phase is VolumePhase.DETACHING
    if here.phase is AttachmentPhase.ATTACHED and not is_leaving:
        return VolumeOutcome(volume=volume)
    return _wait(past, _is(volume))


def _elsewhere(wish: PublishVolume, volume: Volume, past: CallHistory) -> VolumeOutcome:
    """Refuse, unless the volume is just being let go of."""
    if volume.phase is VolumePhase.DETACHING:
        return _wait(past, _is(volume))
    where = ", ".join(attachment.holder for attachment in volume.attachments)
    text = (
        f"node_id is {wish.instance_id!r}, but volume {volume.id} is attached to"
        f" {where}; want a volume that is attached nowhere else"
    )
    if wish.is_shared:
        text += ", or one whose type allows several instances"
    return _refuse(Code.FAILED_PRECONDITION, text)


def _is_puzzling(volume: Volume) -> bool:
    """Report whether the cloud shows an attached volume, but not to what."""
    return volume.phase is VolumePhase.IN_USE and not volume.attachments


def _way_in(wish: PublishVolume, volume: Volume, past: CallHistory) -> VolumeOutcome:
    """Wait; when it is stuck on its way, take away what may hold it, once."""
    is_arriving = volume.phase is VolumePhase.ATTACHING or any(
        attachment.phase is AttachmentPhase.ATTACHING
        for attachment in volume.attachments
    )
    if is_arriving and _is_stuck(past) and not past.count(DetachVolume):
        return _act(DetachVolume(volume, wish.instance_id), why=_is(volume))
    return _wait(past, _is(volume))


def _is_stuck(past: CallHistory) -> bool:
    return past.waited_s >= STUCK_S and past.since_action_s >= STUCK_S


def _unpublish(  # noqa: PLR0911
    wish: UnpublishVolume, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    held = [
        attachment
        for attachment in volume.attachments
        if attachment.instance_id and wish.instance_id in (None, attachment.instance_id)
    ]
    if not held:
        return _way_out(wish, volume, past)
    is_arriving = any(one.phase is AttachmentPhase.ATTACHING for one in held)
    if is_arriving and not _is_stuck(past):
        return _wait(past, f"{_is(volume)}, on its way to {held[0].instance_id}")
    tried = {
        action.instance_id
        for action in past.actions
        if isinstance(action, DetachVolume)
    }
    fresh = [one for one in held if one.instance_id not in tried]
    if fresh:
        actions = (DetachVolume(volume, one.instance_id) for one in fresh)
        return _act(*actions, why=f"{_is(volume)} and is being detached")
    if volume.phase is VolumePhase.FAILED:
        return _failed(volume)
    again_s = STUCK_S if volume.phase is VolumePhase.DETACHING else RETRY_S
    leaving = all(one.phase is AttachmentPhase.DETACHING for one in held)
    if leaving or past.since_action_s < again_s:
        return _wait(past, _is(volume))
    if past.count(DetachVolume) >= TRIES * len(held):
        where = ", ".join(one.instance_id for one in held)
        text = f"volume {volume.id} is still attached to {where}, which does not let go"
        return _refuse(Code.INTERNAL, text)
    actions = (DetachVolume(volume, one.instance_id) for one in held)
    return _act(*actions, why=_is(volume))


def _way_out(wish: UnpublishVolume, volume: Volume, past: CallHistory) -> VolumeOutcome:
    """It is not attached here; unless it may be on its way to here, that is all."""
    is_unclear = volume.phase in (VolumePhase.ATTACHING, VolumePhase.DETACHING)
    if volume.attachments and (volume.is_in_full or not volume.is_shareable):
        is_unclear = False
    if not is_unclear and (why := _may_come_true(past)):
        return _wait(past, why)
    if not is_unclear:
        return VolumeOutcome(volume=volume)
    if wish.instance_id and _is_stuck(past) and not past.count(DetachVolume):
        return _act(DetachVolume(volume, wish.instance_id), why=_is(volume))
    return _wait(past, _is(volume))


def _may_come_true(past: CallHistory) -> str:
    """Return which request may attach the volume yet; empty: none."""
    if past.count(DetachVolume):
        return ""  # it came, and was undone
    if past.lost_attach_s is not None and past.lost_attach_s < LOST_S:
        return "the outcome of the last request to attach it is unknown"
    if past.process_s < START_S:
        return "a request of a process before this one may be under way"
    return ""


def _expand(  # noqa: PLR0911
    wish: Expand, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    if volume.phase is VolumePhase.DELETING:
        return _refuse(Code.ABORTED, _is(volume))
    if volume.phase is VolumePhase.FAILED:
        return _failed(volume)
    if volume.phase is VolumePhase.RESIZING:
        return _wait(past, _is(volume))
    if volume.size_bytes >= wish.size_bytes:
        return VolumeOutcome(volume=volume)
    if volume.phase not in _READY:
        return _wait(past, _is(volume))
    if not past.count(ResizeVolume):
        action = ResizeVolume(volume, wish.size_bytes)
        return _act(action, why=f"{_is(volume)} and is being resized", after_s=1.0)
    if past.since_action_s < RETRY_S:
        return _wait(past, _is(volume))
    text = (
        f"volume {volume.id} still has {volume.size_bytes} bytes: the cloud accepted"
        f" {wish.size_bytes} and gave up; it may lack space"
    )
    return _refuse(Code.INTERNAL, text)


def _modify(  # noqa: PLR0911
    wish: Modify, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    if volume.phase is VolumePhase.DELETING:
        return _refuse(Code.ABORTED, _is(volume))
    if volume.phase is VolumePhase.FAILED:
        return _failed(volume)
    if volume.phase not in _READY:
        return _wait(past, _is(volume))
    if wish.change.type in ("", volume.type):
        return VolumeOutcome(volume=volume)
    if not past.count(RetypeVolume):
        action = RetypeVolume(volume, wish.change)
        return _act(action, why=f"{_is(volume)} and is being retyped")
    if past.since_action_s < RETRY_S:
        return _wait(past, _is(volume))
    text = (
        f"volume {volume.id} still is of type {volume.type!r}: the cloud accepted"
        f" {wish.change.type!r} and gave up"
    )
    return _refuse(Code.INTERNAL, text)
