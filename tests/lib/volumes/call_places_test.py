"""Writes in progress are limited, for 20 volumes and 100 attachments at once.

Callers are threads; their time runs fifty times as fast.
"""

import concurrent.futures
import functools
import threading
import time
from collections.abc import Callable

import pytest

from lib.cloud.fake import volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.support.places import AdaptivePlaces
from lib.cloud.volumes import VolumeId, VolumePhase, VolumeSpec
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

FASTER = 50.0
OPERATION_S = 5.0
MOST = 3
BUSY = {VolumePhase.CREATING, VolumePhase.ATTACHING}
SIZE = volume_rules.GIB


def clock() -> float:
    return time.monotonic() * FASTER


def wait(condition: threading.Condition, seconds: float) -> None:
    condition.wait(seconds / FASTER)


class Bounded(AdaptivePlaces):
    """Places whose number is that of the test."""

    def bound(self, start: int, most: int) -> None:
        del start, most


class LimitedVolumes(fake.FakeVolumes):
    """Volumes of a cloud that works on few at the same time.

    most: volumes that were in progress at the same time.
    """

    def __init__(self, places: int = MOST) -> None:
        super().__init__(clock, OPERATION_S)
        self.of_volumes = Bounded(clock, places, places)
        self.of_attachments = Bounded(clock, places, places)
        self.most = 0
        self.after_call = self._count

    def places(self, *, attaches: bool) -> AdaptivePlaces:
        """See `lib.cloud.volumes.Placing`."""
        return self.of_attachments if attaches else self.of_volumes

    def _count(self, operation: str) -> None:
        del operation
        busy = [volume for volume in self.volumes() if volume.phase in BUSY]
        self.most = max(self.most, len(busy))


def started(cloud: fake.FakeVolumes) -> flow.VolumesFlow:
    effects = callers.CallEffects(clock, wait)
    return flow.VolumesFlow(lambda: cloud, effects, started=clock() - 1000)


def spec(name: str) -> VolumeSpec:
    return VolumeSpec(name=name, size_bytes=SIZE, cluster="blue")


def at_once(calls: list[Callable[[], object]]) -> list[object]:
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [ended.result() for ended in [pool.submit(call) for call in calls]]


def patient() -> callers.Caller:
    return callers.Caller(clock() + 3600)


def test_20_volumes_and_100_attachments_at_once() -> None:
    """Each is written once, and no more at the same time than there are places."""
    cloud = LimitedVolumes()
    volumes = started(cloud)

    def create(name: str) -> object:
        return volumes.settle(model.Make(spec(name)), patient())

    at_once([functools.partial(create, f"pvc-{n}") for n in range(20)])
    assert sum(call.startswith("create") for call in cloud.calls) == 20
    assert 1 < cloud.most <= MOST
    assert cloud.of_volumes.standing().held == 0
    cloud.most = 0
    cloud.instances = {InstanceId(f"node-{n}") for n in range(10)}
    at_once([functools.partial(create, f"more-{n}") for n in range(80)])
    ids = sorted(volume.id for volume in cloud.volumes())
    assert len(ids) == 100
    cloud.most = 0

    def attach(number: int, id_: VolumeId) -> object:
        node = InstanceId(f"node-{number % 10}")
        return volumes.settle(model.PublishVolume(id_, node), patient())

    at_once([functools.partial(attach, n, id_) for n, id_ in enumerate(ids)])
    assert all(volume.attachments for volume in cloud.volumes())
    assert cloud.most <= MOST
    assert cloud.of_attachments.standing().held == 0


def test_a_call_that_is_given_up_keeps_its_place_while_the_cloud_works() -> None:
    """The next one of the same volume goes on with it; a third gets it afterwards."""
    cloud = LimitedVolumes(places=1)
    volumes = started(cloud)
    with pytest.raises(RefusedCall) as refused:
        volumes.settle(model.Make(spec("a")), callers.Caller(clock() + 2))
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert cloud.of_volumes.standing().held == 1
    with pytest.raises(RefusedCall):
        volumes.settle(model.Make(spec("b")), callers.Caller(clock() + 1))
    assert [volume.name for volume in cloud.volumes()] == ["a"]
    assert cloud.of_volumes.standing().waiting == 0, "it has left the line"
    assert volumes.settle(model.Make(spec("a")), patient())
    assert cloud.of_volumes.standing().held == 0
    assert volumes.settle(model.Make(spec("b")), patient())


def test_a_caller_that_cancels_leaves_the_line() -> None:
    cloud = LimitedVolumes(places=1)
    volumes = started(cloud)
    with pytest.raises(RefusedCall):
        volumes.settle(model.Make(spec("a")), callers.Caller(clock() + 2))
    waiting = callers.Caller(clock() + 3600)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ended = pool.submit(volumes.settle, model.Make(spec("b")), waiting)
        while not cloud.of_volumes.standing().waiting:
            time.sleep(0.001)
        waiting.cancel()
        with pytest.raises(RefusedCall) as refused:
            ended.result()
    assert refused.value.code is Code.CANCELLED
    assert cloud.of_volumes.standing().waiting == 0


def test_a_write_that_is_refused_releases_its_place() -> None:
    cloud = LimitedVolumes(places=1)
    volumes = started(cloud)
    missing = model.PublishVolume(VolumeId("no such volume"), InstanceId("node-1"))
    with pytest.raises(RefusedCall):
        volumes.settle(missing, patient())
    volume = volumes.settle(model.Make(spec("a")), patient())
    assert volume is not None
    with pytest.raises(RefusedCall):
        volumes.settle(model.PublishVolume(volume.id, InstanceId("absent")), patient())
    assert cloud.of_attachments.standing().held == 0
