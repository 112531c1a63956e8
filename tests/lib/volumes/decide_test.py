"""Whatever a volume is, each decision is safe, ends or goes on, and never lies."""

import dataclasses
import datetime

import hypothesis
from hypothesis import strategies as st

from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    AttachmentPhase,
    ById,
    ByName,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeSpec,
)
from lib.volumes import decide, model, outcomes, poll_interval
from lib.volumes.csi_codes import Code, RefusedCall

NODES = [InstanceId(f"node-{number}") for number in range(3)]
IDS = [VolumeId(f"{letter}-id") for letter in "abcd"]
GIB = 2**30
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

attachments = st.lists(
    st.builds(
        Attachment, st.sampled_from(NODES), st.sampled_from(list(AttachmentPhase))
    ),
    max_size=2,
    unique_by=lambda attachment: attachment.instance_id,
).map(tuple)


def volumes(volume_id: VolumeId) -> st.SearchStrategy[Volume]:
    return st.builds(
        Volume,
        id=st.just(volume_id),
        name=st.just("pvc-1"),
        size_bytes=st.sampled_from([GIB, 2 * GIB]),
        phase=st.sampled_from(list(VolumePhase)),
        attachments=attachments,
        type=st.sampled_from(["slow", "fast"]),
        source=st.sampled_from([None, IDS[3]]),
        cluster=st.sampled_from([None, "blue", "red"]),
        is_shareable=st.booleans(),
        was_ready=st.booleans(),
        created_at=st.one_of(
            st.none(),
            st.integers(0, 3).map(lambda s: START + datetime.timedelta(seconds=s)),
        ),
    )


def _order(listed: list[Volume]) -> tuple[Volume, ...]:
    return tuple(
        sorted(listed, key=lambda volume: (volume.created_at or START, volume.id))
    )


lists = st.lists(st.sampled_from(IDS[:3]), unique=True, max_size=3).flatmap(
    lambda ids: st.tuples(*(volumes(id_) for id_ in ids)).map(list).map(_order)
)
specs = st.builds(
    VolumeSpec,
    name=st.just("pvc-1"),
    size_bytes=st.sampled_from([GIB, 2 * GIB]),
    cluster=st.just("blue"),
    source=st.sampled_from([None, IDS[3]]),
    is_shared=st.booleans(),
)
nodes = st.sampled_from(NODES)
requests_of_volume: st.SearchStrategy[model.Request] = st.one_of(
    st.just(model.RemoveVolume(IDS[0])),
    st.builds(model.PublishVolume, st.just(IDS[0]), nodes, st.booleans()),
    st.builds(model.UnpublishVolume, st.just(IDS[0]), st.one_of(st.none(), nodes)),
    st.builds(model.Expand, st.just(IDS[0]), st.sampled_from([GIB, 2 * GIB])),
    st.builds(
        model.Modify,
        st.just(IDS[0]),
        st.sampled_from(["", "slow", "fast"]).map(VolumeChange),
    ),
)


def _actions(volume: Volume) -> st.SearchStrategy[model.Action]:
    return st.one_of(
        st.just(model.DeleteVolume(volume.id)),
        st.builds(model.AttachVolume, st.just(volume), nodes),
        st.builds(model.DetachVolume, st.just(volume), nodes),
        st.just(model.ResizeVolume(volume, 2 * GIB)),
        st.just(model.RetypeVolume(volume, VolumeChange("fast"))),
    )


PLAIN = Volume(IDS[0], "pvc-1", GIB, VolumePhase.AVAILABLE)
seconds = st.sampled_from([0.0, 1.0, 10.0, 50.0, 130.0, 599.0])
CAUSES = [
    RefusedCall(Code.RESOURCE_EXHAUSTED, "no host"),
    RefusedCall(Code.INTERNAL, "it broke"),
]
pasts = st.builds(
    model.CallHistory,
    actions=st.lists(_actions(PLAIN), max_size=4).map(tuple),
    created=st.lists(st.sampled_from(IDS[:3]), max_size=1).map(tuple),
    waited_s=seconds,
    since_action_s=seconds,
    lost_create_s=st.one_of(st.none(), seconds),
    lost_attach_s=st.one_of(st.none(), seconds),
    process_s=seconds,
    was_busy=st.booleans(),
    causes=st.lists(st.sampled_from(CAUSES), max_size=2).map(tuple),
    absences=st.integers(1, 3),
)


def _is_end(outcome: model.VolumeOutcome) -> bool:
    return outcome.requeue_after_s is None


def _is_consistent(outcome: model.VolumeOutcome) -> None:
    """An end has nothing to do; what goes on says when, and why."""
    if _is_end(outcome):
        assert not outcome.actions
    else:
        assert outcome.refusal is None
        assert outcome.requeue_after_s
        assert outcome.requeue_after_s > 0
        assert outcome.waiting_for
    assert outcome.refusal is None or outcome.refusal.message


@hypothesis.given(specs, lists, st.booleans(), pasts)
def test_a_volume_is_made_only_where_none_is(
    spec: VolumeSpec,
    listed: tuple[Volume, ...],
    has_source: bool,
    past: model.CallHistory,
) -> None:
    source = dataclasses.replace(PLAIN, id=IDS[3]) if has_source else None
    observed = model.ObservedVolumes(listed, source)
    outcome = decide.decide(model.Make(spec), observed, past)
    _is_consistent(outcome)
    assert repr(outcome) == repr(decide.decide(model.Make(spec), observed, past))
    by_id = {volume.id: volume for volume in listed}
    for action in outcome.actions:
        if isinstance(action, model.CreateVolume):
            assert not listed
            assert spec.source is None or source is not None
            assert past.lost_create_s is None or past.lost_create_s >= outcomes.LOST_S
            assert len(outcome.actions) == 1
            continue
        assert isinstance(action, model.DeleteVolume)
        deleted = by_id[action.id]
        assert deleted.cluster == spec.cluster
        assert not deleted.attachments
        is_remake = deleted.phase is VolumePhase.FAILED and not deleted.was_ready
        is_younger = any(
            other.cluster == spec.cluster and other.id != deleted.id for other in listed
        )
        assert is_remake or is_younger or deleted.id in past.created
    if _is_end(outcome) and outcome.refusal is None:
        arguments = outcome.volume
        assert arguments is not None
        assert arguments.cluster == spec.cluster
        assert arguments.size_bytes == spec.size_bytes
        assert arguments.source == spec.source
        assert arguments.phase not in (
            VolumePhase.CREATING,
            VolumePhase.FAILED,
            VolumePhase.DELETING,
            VolumePhase.UNKNOWN,
        )


@hypothesis.given(requests_of_volume, volumes(IDS[0]), pasts)
def test_what_is_called_done_is_done_and_no_step_harms(
    requested: model.Request, volume: Volume, past: model.CallHistory
) -> None:
    observed = model.ObservedVolumes((volume,))
    outcome = decide.decide(requested, observed, past)
    _is_consistent(outcome)
    assert repr(outcome) == repr(decide.decide(requested, observed, past))
    held = {attachment.instance_id for attachment in volume.attachments}
    for action in outcome.actions:
        match action:
            case model.DeleteVolume():
                assert isinstance(requested, model.RemoveVolume)
                assert not held
            case model.AttachVolume():
                assert isinstance(requested, model.PublishVolume)
                assert action.instance_id == requested.instance_id
                assert not held or (volume.is_shareable and requested.is_shared)
            case model.DetachVolume():
                assert isinstance(
                    requested, model.PublishVolume | model.UnpublishVolume
                )
                assert requested.instance_id in (None, action.instance_id)
            case model.ResizeVolume():
                assert action.size_bytes > volume.size_bytes
            case model.RetypeVolume():
                assert action.change.type != volume.type
            case _:
                raise AssertionError(action)
    if _is_end(outcome) and outcome.refusal is None:
        _is_true(requested, volume)


def _is_true(request: model.Request, volume: Volume) -> None:
    held = {attachment.instance_id for attachment in volume.attachments}
    match request:
        case model.PublishVolume():
            here = {
                attachment.instance_id
                for attachment in volume.attachments
                if attachment.phase is AttachmentPhase.ATTACHED
            }
            assert request.instance_id in here
        case model.UnpublishVolume():
            assert request.instance_id not in held
            assert request.instance_id is not None or not held
        case model.Expand():
            assert volume.size_bytes >= request.size_bytes
        case model.Modify():
            assert request.change.type in ("", volume.type)
        case _:
            raise AssertionError("a volume that is there is not removed")


@hypothesis.given(requests_of_volume, pasts)
def test_what_is_absent_is_gone_or_not_found(
    requested: model.Request, past: model.CallHistory
) -> None:
    """A requested absence is read twice, unless this process deleted the volume."""
    outcome = decide.decide(requested, model.ObservedVolumes(), past)
    wants_absence = isinstance(requested, model.RemoveVolume | model.UnpublishVolume)
    is_ours = isinstance(requested, model.RemoveVolume) and bool(past.actions)
    assert _is_end(outcome) == (past.absences > 1 or is_ours or not wants_absence)
    assert (outcome.refusal is None) == wants_absence


@hypothesis.given(st.one_of(requests_of_volume, specs.map(model.Make)), pasts)
def test_each_request_reads_its_own_volume_and_at_most_a_source(
    requested: model.Request, past: model.CallHistory
) -> None:
    refs = model.needs(requested, past)
    if isinstance(requested, model.Make):
        assert refs[0] == ByName("pvc-1")
        assert set(refs[1:]) <= {ById(IDS[3])}
    else:
        is_publish = isinstance(requested, model.PublishVolume)
        is_attachment = is_publish or isinstance(requested, model.UnpublishVolume)
        is_late = past.waited_s >= model.STUCK_S
        shows_reserved = is_attachment and (is_late or not is_publish)
        witness = getattr(requested, "instance_id", None)
        assert refs == (ById(IDS[0], is_attachment, shows_reserved, witness),)


def test_looks_become_rarer_the_longer_it_takes() -> None:
    pauses = [poll_interval.after_s(waited) for waited in (0, 29, 30, 119, 120, 600)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 1
    assert pauses[-1] == 5
