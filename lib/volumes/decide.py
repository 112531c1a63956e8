"""Decides the next step that brings a volume closer to a request.

Pure: the same volumes and past return the same outcome. Each request has an outcome for
each state of a volume; nothing is assumed about the cause of the state.

Rule: one `return` per state, in the order of the checks; that is why functions have
more of them here than the linter's limit (PLR0911).
"""

from lib.cloud.volumes import (
    Volume,
    VolumeId,
    VolumePhase,
    VolumeSpec,
    is_same_type,
)
from lib.volumes import decide_attach, outcomes
from lib.volumes.csi_codes import Code, RefusedCall, invalid, not_found
from lib.volumes.model import (
    CallHistory,
    CreateVolume,
    DeleteVolume,
    Expand,
    Make,
    Modify,
    ObservedVolumes,
    PublishVolume,
    RemoveVolume,
    Request,
    ResizeVolume,
    RetypeVolume,
    UnpublishVolume,
    VolumeOutcome,
)

CONFIRM_S = 0.2
"""Pause before an absence by ID is confirmed by a second read.

Shorter than `absence_limit.CONFIRM_S`: absence is what the caller has requested, a
wrong one costs a repeated call and no object, and the caller waits for the answer.
"""
_NOT_YET = frozenset({VolumePhase.CREATING, VolumePhase.UNKNOWN})


def decide(  # noqa: PLR0911
    request: Request, observed: ObservedVolumes | None, past: CallHistory
) -> VolumeOutcome:
    """Return the next step, or the final outcome.

    observed: volumes that `model.needs` named; None when it named none.
    """
    match request:
        case Make():
            return _make(request.spec, observed or ObservedVolumes(), past)
        case RemoveVolume():
            return _remove(request, observed or ObservedVolumes(), past)
        case _ if observed is None or not observed.volumes:
            return _not_found(request, past)
        case PublishVolume():
            return decide_attach.publish(request, observed.volumes[0], past)
        case UnpublishVolume():
            return decide_attach.unpublish(request, observed.volumes[0], past)
        case Expand():
            return _expand(request, observed.volumes[0], past)
        case Modify():
            return _modify(request, observed.volumes[0], past)


def may_appear(past: CallHistory) -> bool:
    """Report whether an earlier request may still create a volume."""
    is_lost = past.lost_create_s is not None and past.lost_create_s < outcomes.LOST_S
    return is_lost or past.process_s < outcomes.START_S


def _not_found(request: Request, past: CallHistory) -> VolumeOutcome:
    if isinstance(request, UnpublishVolume):
        return _absent(request.id, past)
    assert not isinstance(request, Make)  # noqa: S101 -- for the type checker
    return VolumeOutcome(failure=not_found("volume_id", "volume", request.id))


def _absent(volume_id: VolumeId, past: CallHistory) -> VolumeOutcome:
    """Accept the requested absence once a second read has confirmed it."""
    if past.absences > 1:
        return VolumeOutcome()
    why = f"volume {volume_id} was not found; a second read must confirm it"
    return VolumeOutcome(requeue_after_s=CONFIRM_S, waiting_for=why)


def _make(  # noqa: PLR0911
    spec: VolumeSpec, observed: ObservedVolumes, past: CallHistory
) -> VolumeOutcome:
    owned = [volume for volume in observed.volumes if volume.cluster == spec.cluster]
    if observed.volumes and not owned:
        return _not_owned(spec, observed.volumes[0])
    alive = [volume for volume in owned if volume.phase is not VolumePhase.DELETING]
    if not alive:
        return (
            outcomes.wait(past, outcomes.status(owned[0]))
            if owned
            else _create(spec, observed.source, past)
        )
    # Volumes are sorted by age: parallel calls choose the same one, the oldest.
    chosen, *younger = alive
    wrong = _differs(spec, chosen)
    is_failed = chosen.phase is VolumePhase.FAILED
    if is_failed and not (wrong and chosen.was_ready):
        return _remake(chosen, past)
    if wrong and chosen.id in past.created and not chosen.attachments:
        return _undo(spec, chosen, wrong, past)
    spare = [volume for volume in younger if _is_spare(volume, chosen, past)]
    if wrong:
        # Which of the others is compatible is known of those of this call alone.
        spare = [volume for volume in spare if volume.id in past.created]
    if deletable := [volume for volume in spare if volume.phase not in _NOT_YET]:
        actions = (DeleteVolume(volume.id) for volume in deletable)
        return outcomes.act(
            *actions, why=f"duplicate volume {deletable[0].id} is deleted"
        )
    if spare or (chosen.phase in _NOT_YET and not wrong):
        return outcomes.wait(past, outcomes.status(spare[0] if spare else chosen))
    if wrong:
        text = f'name: conflict: volume {chosen.id} has the name "{spec.name}"'
        return outcomes.refuse(Code.ALREADY_EXISTS, f"{text}, but {wrong}")
    return VolumeOutcome(volume=chosen)


def _not_owned(spec: VolumeSpec, other: Volume) -> VolumeOutcome:
    owner = "no cluster" if other.cluster is None else f'cluster "{other.cluster}"'
    text = (
        f'name: conflict: volume {other.id} has the name "{spec.name}", and its'
        f' ownership metadata names {owner}, not "{spec.cluster}"; delete the volume'
        " or correct its ownership metadata"
    )
    return outcomes.refuse(Code.ALREADY_EXISTS, text)


def _create(
    spec: VolumeSpec, source: Volume | None, past: CallHistory
) -> VolumeOutcome:
    """Create the volume, unless an earlier request may still create it."""
    if past.lost_create_s is not None and past.lost_create_s < outcomes.LOST_S:
        return outcomes.wait(past, "the outcome of the last create request is unknown")
    vanished = [
        created for created in past.created if DeleteVolume(created) not in past.actions
    ]
    if vanished:
        text = f"volume {vanished[-1]} disappeared during its creation"
        return outcomes.refuse(Code.ABORTED, text)
    candidates = spec.candidates()
    if past.causes and (
        past.causes[-1].code is not Code.RESOURCE_EXHAUSTED
        or len(past.causes) >= len(candidates)
    ):
        return VolumeOutcome(failure=past.causes[-1])
    if spec.source is not None and (unfit := _unfit(spec, source, past)):
        return unfit
    if past.process_s < outcomes.START_S:
        return outcomes.wait(past, outcomes.PREVIOUS_PROCESS)
    action = CreateVolume(candidates[len(past.causes)])
    return outcomes.act(action, why=f"volume {spec.name} is being created")


def _unfit(
    spec: VolumeSpec, source: Volume | None, past: CallHistory
) -> VolumeOutcome | None:
    """Return why the source can't be cloned; None when it can."""
    field = "volume_content_source"
    if source is None or source.phase is VolumePhase.DELETING:
        return VolumeOutcome(failure=not_found(field, "volume", spec.source or ""))
    if source.size_bytes > spec.size_bytes:
        text = invalid(
            "capacity_range.required_bytes",
            spec.size_bytes,
            f"at least {source.size_bytes}, the size of the source volume",
        )
        return outcomes.refuse(Code.OUT_OF_RANGE, text)
    if source.phase is VolumePhase.FAILED:
        text = invalid(
            field, source.id, f"a volume that is ready: {outcomes.status(source)}"
        )
        return outcomes.refuse(Code.INVALID_ARGUMENT, text)
    if _is_out_of_reach(spec, source):
        text = invalid(
            field,
            source.id,
            f"a volume in zone {', '.join(spec.requisite)}:"
            f" its zone is {', '.join(source.zones or ())}",
        )
        return outcomes.refuse(Code.RESOURCE_EXHAUSTED, text)
    return (
        None
        if source.phase in outcomes.READY
        else outcomes.wait(past, outcomes.status(source))
    )


def _differs(spec: VolumeSpec, volume: Volume) -> str:
    """Return how a volume of the requested name differs from the request.

    Source: CSI specification 1.12, CreateVolume, "Volume already exists but is
    incompatible": capacity_range, parameters, accessibility_requirements.
    """
    if wrong := _size_differs(spec, volume):
        return wrong
    is_same = not spec.type or is_same_type(spec.type, volume.type)
    if volume.type and not is_same:
        return f'its type is "{volume.type}", not "{spec.type}"'
    if _is_out_of_reach(spec, volume):
        zones = ", ".join(volume.zones or ())
        return f"its zone is {zones}, not one of {', '.join(spec.requisite)}"
    if volume.source != spec.source:
        return f"its source is {volume.source or 'none'}, not {spec.source or 'none'}"
    if spec.is_shared and not volume.is_shareable:
        return "it can't be attached to several instances"
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
    """Delete a volume that failed before it was returned; else keep the caller trying.

    After a final code the volume would remain when the claim is deleted.
    """
    is_own = volume.id in past.created
    if volume.attachments or (volume.was_ready and not is_own):
        text = f"{outcomes.status(volume)} and may hold data"
        return outcomes.refuse(
            Code.ABORTED, f"{text}; the cloud administrator must repair or delete it"
        )
    action = DeleteVolume(volume.id, _cause(volume) if is_own else None)
    if action in past.actions:
        return outcomes.wait(
            past, f"{outcomes.status(volume)} although its deletion was accepted"
        )
    return outcomes.act(action, why=f"{outcomes.status(volume)} and is being deleted")


def _undo(
    spec: VolumeSpec, volume: Volume, wrong: str, past: CallHistory
) -> VolumeOutcome:
    """Delete a volume of this call that differs from the request.

    As with allow_availability_zone_fallback, or where types are not visible before.
    """
    is_out = _is_out_of_reach(spec, volume)
    code = Code.RESOURCE_EXHAUSTED if is_out else Code.INVALID_ARGUMENT
    text = f"volume {volume.name} was created, but {wrong}; it was deleted"
    action = DeleteVolume(volume.id, RefusedCall(code, text))
    if volume.phase in _NOT_YET or action in past.actions:
        return outcomes.wait(past, outcomes.status(volume))
    return outcomes.act(action, why=f"{outcomes.status(volume)}, but {wrong}")


def _cause(volume: Volume) -> RefusedCall:
    """Return why a creation failed, with the code for external-provisioner."""
    why = volume.message or "the cloud reports no reason"
    text = f"volume {volume.name} could not be created: {why}"
    is_full = volume.is_unplaceable
    return RefusedCall(Code.RESOURCE_EXHAUSTED if is_full else Code.INTERNAL, text)


def _is_spare(volume: Volume, chosen: Volume, past: CallHistory) -> bool:
    """Report whether a second volume of the name was never in use.

    Each read after its creation showed the older volume as well, and used that.
    """
    if volume.attachments or volume.phase not in outcomes.READY | _NOT_YET | {
        VolumePhase.FAILED
    }:
        return False
    if volume.id in past.created:
        return True
    if volume.created_at is None or chosen.created_at is None:
        return False
    return volume.created_at > chosen.created_at


def _remove(
    request: RemoveVolume, observed: ObservedVolumes, past: CallHistory
) -> VolumeOutcome:
    if not observed.volumes:
        # After a deletion that the cloud accepted, absence is no surprise.
        return VolumeOutcome() if past.actions else _absent(request.id, past)
    volume = observed.volumes[0]
    if request.cluster is not None and volume.cluster not in (None, request.cluster):
        text = (
            f'volume_id: conflict: volume {volume.id} is owned by cluster "'
            f'{volume.cluster}", not by "{request.cluster}"; delete it from its cluster'
        )
        return outcomes.refuse(Code.FAILED_PRECONDITION, text)
    return _remove_existing(volume, past)


def _remove_existing(volume: Volume, past: CallHistory) -> VolumeOutcome:
    accepted = past.count(DeleteVolume)
    if volume.attachments:
        return _attached(volume)
    if volume.phase is VolumePhase.FAILED and accepted:
        return outcomes.failed(volume)
    is_deletable = volume.phase in outcomes.READY | {
        VolumePhase.FAILED,
        VolumePhase.UNKNOWN,
    }
    is_early = (
        bool(accepted or past.was_busy) and past.since_action_s < outcomes.RETRY_S
    )
    if not is_deletable or is_early:
        return outcomes.wait(past, outcomes.status(volume))
    if accepted >= outcomes.TRIES:
        text = f"{outcomes.status(volume)} after {accepted} accepted delete requests"
        return outcomes.refuse(Code.INTERNAL, text)
    return outcomes.act(
        DeleteVolume(volume.id), why=outcomes.status(volume), after_s=1.0
    )


def _attached(volume: Volume) -> VolumeOutcome:
    where = ", ".join(attachment.holder for attachment in volume.attachments)
    text = f"volume_id: conflict: volume {volume.id} is attached to {where}"
    return outcomes.refuse(Code.FAILED_PRECONDITION, f"{text}; detach it first")


def _expand(  # noqa: PLR0911
    request: Expand, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    if volume.phase is VolumePhase.DELETING:
        return outcomes.refuse(Code.ABORTED, outcomes.status(volume))
    if volume.phase is VolumePhase.FAILED:
        return outcomes.failed(volume)
    if volume.phase is VolumePhase.RESIZING:
        return outcomes.wait(past, outcomes.status(volume))
    if volume.size_bytes >= request.size_bytes:
        return VolumeOutcome(volume=volume)
    if volume.phase not in outcomes.READY:
        return outcomes.wait(past, outcomes.status(volume))
    if volume.expanding_to_bytes >= request.size_bytes:
        return outcomes.wait(past, f"{outcomes.status(volume)} and is being resized")
    if not past.count(ResizeVolume):
        action = ResizeVolume(volume, request.size_bytes)
        return outcomes.act(
            action, why=f"{outcomes.status(volume)} and is being resized", after_s=1.0
        )
    if past.since_action_s < outcomes.RETRY_S and not volume.message:
        return outcomes.wait(past, outcomes.status(volume))
    text = (
        f"resizing volume {volume.id} to {request.size_bytes} bytes did not complete:"
        f" its size is still {volume.size_bytes} bytes"
        f"; {volume.message or 'the cloud may lack space'}"
    )
    return outcomes.refuse(Code.INTERNAL, text)


def _modify(  # noqa: PLR0911
    request: Modify, volume: Volume, past: CallHistory
) -> VolumeOutcome:
    if volume.phase is VolumePhase.DELETING:
        return outcomes.refuse(Code.ABORTED, outcomes.status(volume))
    if volume.phase is VolumePhase.FAILED:
        return outcomes.failed(volume)
    if volume.phase not in outcomes.READY:
        return outcomes.wait(past, outcomes.status(volume))
    type_ = request.change.type
    if not type_ or is_same_type(type_, volume.type):
        return VolumeOutcome(volume=volume)
    if not past.count(RetypeVolume):
        action = RetypeVolume(volume, request.change)
        return outcomes.act(
            action, why=f"{outcomes.status(volume)} and is being retyped"
        )
    if past.since_action_s < outcomes.RETRY_S:
        return outcomes.wait(past, outcomes.status(volume))
    text = (
        f'retyping volume {volume.id} to type "{request.change.type}" did not'
        f' complete: its type is still "{volume.type}"'
    )
    return outcomes.refuse(Code.INTERNAL, text)
