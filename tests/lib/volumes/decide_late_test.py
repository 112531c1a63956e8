"""What a read shows late: attachments without a device, by name, and expansions."""

import dataclasses

from lib.cloud.fake.volumes import FakeVolumes
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    ById,
    ByName,
    Volume,
    VolumeId,
    VolumePhase,
    VolumesReading,
)
from lib.volumes import cache, callers, decide, model
from lib.volumes.csi_codes import Code

GIB = 2**30
ID, NODE = VolumeId("a-id"), InstanceId("node-1")
FREE = Volume(ID, "pvc-1", GIB, VolumePhase.AVAILABLE, cluster="blue")
IDLE = dataclasses.replace(
    FREE,
    phase=VolumePhase.IN_USE,
    attachments=(Attachment(NODE, is_published=False),),
)


def test_an_attachment_without_a_device_is_adopted_and_then_awaited() -> None:
    request = model.PublishVolume(ID, NODE)
    observed = model.ObservedVolumes((IDLE,))
    first = decide.decide(request, observed, model.CallHistory())
    adopt = model.AttachVolume(IDLE, NODE)
    assert first.actions == (adopt,)
    past = model.CallHistory(actions=(adopt,), since_action_s=1.0)
    then = decide.decide(request, observed, past)
    assert (then.actions, then.volume) == ((), None)
    assert then.requeue_after_s


def test_the_reason_of_a_failed_expansion_ends_the_call() -> None:
    failed = dataclasses.replace(FREE, message="no space in the domain")
    past = model.CallHistory(
        actions=(model.ResizeVolume(FREE, 2 * GIB),), since_action_s=1.0
    )
    outcome = decide.decide(
        model.Expand(ID, 2 * GIB), model.ObservedVolumes((failed,)), past
    )
    assert outcome.refusal is not None
    assert outcome.refusal.code is Code.INTERNAL
    assert "no space in the domain" in outcome.refusal.message


def test_a_read_by_name_replaces_no_known_attachments() -> None:
    """A list without them would have the volume published once more."""
    now = 0.0
    effects = callers.CallEffects(clock=lambda: now)
    cloud = FakeVolumes(lambda: now)
    known = cache.Cache(lambda: cloud, effects)
    listing = VolumesReading({}, (IDLE,))
    known.learn([], listing, now)
    by_name = ByName("pvc-1")
    known.learn([by_name], VolumesReading({by_name: (FREE,)}), now)
    assert known.all(callers.Caller(10.0))[ID].attachments == IDLE.attachments
    by_id = ById(ID)
    known.learn([by_id], VolumesReading({by_id: (FREE,)}), now)
    assert known.all(callers.Caller(10.0))[ID].attachments == ()
