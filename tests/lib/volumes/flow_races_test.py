"""What others do to a volume while a call waits for it: each race and how it ends.

The table is printed; a race without a row fails.
"""

import dataclasses
import math
from collections.abc import Callable

import pytest

from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Attachment, AttachmentPhase, Volume, VolumeId, VolumePhase
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import RefusedCall

NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
SIZE = 10 * volume_rules.GIB
FREE = Volume(ID, "pvc-1", SIZE, VolumePhase.AVAILABLE, type="slow", cluster="blue")
PUBLISH, UNPUBLISH = model.PublishVolume(ID, NODE), model.UnpublishVolume(ID, NODE)


def _in(phase: VolumePhase, *nodes: InstanceId) -> Volume:
    links = tuple(Attachment(node) for node in nodes)
    return dataclasses.replace(FREE, phase=phase, attachments=links)


class World:
    """One cloud, in which something happens at some time."""

    def __init__(self, volume: Volume, bound_for: InstanceId | None = None) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = {NODE, OTHER}
        self.cloud.put(volume, bound_for=bound_for)
        self._began = self.clock()
        self._events: list[tuple[float, Callable[[], None]]] = []
        self.cloud.before_call = self._before

    def _before(self, operation: str) -> None:
        del operation
        while self._events and self.clock() >= self._began + self._events[0][0]:
            self._events.pop(0)[1]()

    def at(self, seconds: float, event: Callable[[], None]) -> None:
        self._events.append((seconds, event))

    def settle(self, request: model.Request, patience_s: float) -> str:
        effects = callers.CallEffects(self.clock, self.clock.wait)
        process = flow.VolumesFlow(lambda: self.cloud, effects, -math.inf)
        try:
            process.settle(request, callers.Caller(self.clock() + patience_s))
        except RefusedCall as refused:
            return refused.code.value
        return "OK"


@dataclasses.dataclass(frozen=True)
class Race:
    """What the volume is at first, what happens to it when, and how the call ends.

    seconds: how long the call takes, at most. writes: how many it makes, at most.
    loses: an instance that is deleted then; leaves: its attachments stay behind.
    bound_for: the instance that the volume is on its way to at first.
    """

    request: model.Request
    start: Volume
    becomes: Volume | None
    after_s: float
    ends: str
    seconds: float
    writes: int = 1
    patience_s: float = 600.0
    loses: InstanceId | None = None
    leaves: bool = False
    bound_for: InstanceId | None = None


RACES = {
    "publish: not yet available": Race(
        PUBLISH, _in(VolumePhase.CREATING), FREE, 20, "OK", 25
    ),
    "publish: reserved, then attached here": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        _in(VolumePhase.IN_USE, NODE),
        10,
        "OK",
        12,
        writes=0,
    ),
    "publish: reserved, then attached elsewhere": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        _in(VolumePhase.IN_USE, OTHER),
        10,
        "FAILED_PRECONDITION",
        12,
        writes=0,
    ),
    "publish: reserved, then free again": Race(
        PUBLISH, _in(VolumePhase.ATTACHING), FREE, 10, "OK", 15
    ),
    "publish: stuck in reserved or attaching": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        None,
        0,
        "OK",
        130,
        writes=2,
        bound_for=NODE,
    ),
    "publish: stuck in reserved or attaching for another": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        None,
        0,
        "ABORTED",
        160,
        writes=2,
        bound_for=OTHER,
    ),
    "publish: stuck in reserved or attaching for one that was deleted": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        None,
        0,
        "OK",
        160,
        writes=3,
        bound_for=InstanceId("node-3"),
    ),
    "publish: stuck in reserved or attaching, for whom is not known": Race(
        PUBLISH, _in(VolumePhase.ATTACHING), None, 0, "ABORTED", 160, writes=2
    ),
    "publish: stuck longer than the caller waits": Race(
        PUBLISH,
        _in(VolumePhase.ATTACHING),
        None,
        0,
        "DEADLINE_EXCEEDED",
        61,
        writes=0,
        patience_s=60,
    ),
    "publish: detaching from another, then free": Race(
        PUBLISH, _in(VolumePhase.DETACHING, OTHER), FREE, 10, "OK", 15
    ),
    "publish: detaching from here, then free": Race(
        PUBLISH, _in(VolumePhase.DETACHING, NODE), FREE, 10, "OK", 15
    ),
    "publish: stuck in detaching": Race(
        PUBLISH,
        _in(VolumePhase.DETACHING, OTHER),
        None,
        0,
        "DEADLINE_EXCEEDED",
        61,
        writes=0,
        patience_s=60,
    ),
    "publish: attached elsewhere": Race(
        PUBLISH,
        _in(VolumePhase.IN_USE, OTHER),
        None,
        0,
        "FAILED_PRECONDITION",
        1,
        writes=0,
    ),
    "publish: being resized, then free": Race(
        PUBLISH, _in(VolumePhase.RESIZING), FREE, 10, "OK", 15
    ),
    "publish: server deleted before the attach": Race(
        PUBLISH, _in(VolumePhase.CREATING), FREE, 5, "NOT_FOUND", 10, loses=NODE
    ),
    "publish: server deleted while attaching": Race(
        PUBLISH, FREE, None, 0.4, "NOT_FOUND", 10, writes=2, loses=NODE
    ),
    "publish: an attachment that failed": Race(
        PUBLISH,
        dataclasses.replace(
            _in(VolumePhase.IN_USE),
            attachments=(Attachment(NODE, AttachmentPhase.FAILED),),
        ),
        None,
        0,
        "OK",
        10,
        writes=2,
    ),
    "unpublish: of what is gone": Race(
        UNPUBLISH, _in(VolumePhase.DELETING), None, 0, "OK", 1, writes=0
    ),
    "unpublish: detached by somebody else meanwhile": Race(
        UNPUBLISH, _in(VolumePhase.DETACHING, NODE), FREE, 10, "OK", 15
    ),
    "unpublish: server deleted": Race(
        UNPUBLISH, _in(VolumePhase.IN_USE, NODE), None, 0, "OK", 2, loses=NODE
    ),
    "unpublish: server deleted, its attachment left behind": Race(
        UNPUBLISH,
        _in(VolumePhase.IN_USE, NODE),
        None,
        0,
        "OK",
        2,
        loses=NODE,
        leaves=True,
    ),
    "unpublish: still attaching": Race(
        UNPUBLISH,
        _in(VolumePhase.ATTACHING),
        _in(VolumePhase.IN_USE, NODE),
        10,
        "OK",
        15,
    ),
    "unpublish: stuck in reserved or attaching": Race(
        UNPUBLISH, _in(VolumePhase.ATTACHING), None, 0, "OK", 130, bound_for=NODE
    ),
    "unpublish: reserved or attaching for another": Race(
        UNPUBLISH,
        _in(VolumePhase.ATTACHING),
        None,
        0,
        "OK",
        1,
        writes=0,
        bound_for=OTHER,
    ),
    "unpublish: stuck in reserved or attaching, for whom is not known": Race(
        UNPUBLISH, _in(VolumePhase.ATTACHING), None, 0, "ABORTED", 160, writes=2
    ),
    "unpublish: stuck in detaching": Race(
        UNPUBLISH,
        _in(VolumePhase.DETACHING, NODE),
        None,
        0,
        "DEADLINE_EXCEEDED",
        61,
        patience_s=60,
    ),
    "unpublish: attached elsewhere": Race(
        UNPUBLISH, _in(VolumePhase.IN_USE, OTHER), None, 0, "OK", 1, writes=0
    ),
    "delete: still being created": Race(
        model.RemoveVolume(ID), _in(VolumePhase.CREATING), FREE, 10, "OK", 25, writes=2
    ),
    "expand: while attaching": Race(
        model.Expand(ID, 2 * SIZE),
        _in(VolumePhase.ATTACHING),
        _in(VolumePhase.IN_USE, NODE),
        10,
        "OK",
        15,
    ),
}

WANTED = {
    "not yet available",
    "stuck in reserved or attaching",
    "stuck in detaching",
    "attached elsewhere",
    "server deleted",
    "of what is gone",
}
READS = ("get volume", "find volumes", "list volumes")


def _run(race: Race) -> tuple[str, float, int]:
    world = World(race.start, race.bound_for)

    def happens() -> None:
        if race.becomes is not None:
            world.cloud.put(race.becomes)
        if race.loses is not None:
            world.cloud.remove_instance(race.loses, race.leaves)

    world.at(race.after_s, happens)
    began = world.clock()
    code = world.settle(race.request, race.patience_s)
    # A write that was refused for being too early is no write.
    writes = [call for call in world.cloud.calls if call not in READS]
    return code, world.clock() - began, len(writes)


@pytest.mark.parametrize("name", RACES)
def test_each_race_ends_as_it_must(name: str) -> None:
    race = RACES[name]
    code, seconds, writes = _run(race)
    assert code == race.ends
    assert seconds <= race.seconds
    assert writes <= race.writes


def test_no_race_lacks_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{'race':50} {'ends':20} seconds writes")
        for name, race in RACES.items():
            code, seconds, writes = _run(race)
            print(f"{name:50} {code:20} {seconds:7.1f} {writes:6}")
    messages = {name.partition(": ")[2] for name in RACES}
    missing = {item for item in WANTED if not any(t.startswith(item) for t in messages)}
    assert not missing
