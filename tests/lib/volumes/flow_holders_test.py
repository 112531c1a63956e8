"""A random walk: two servers, two controllers, one volume, and never two holders.

Attaches are slow or stuck, controllers are killed, answers are lost, and servers come
and go. A server holds the volume from the moment in which an attach to it begins: a
reservation that is taken from it does not stop its hypervisor.
"""

import math
import random

import pytest

from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Volume, VolumeId, VolumePhase
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

SERVERS = (InstanceId("node-1"), InstanceId("node-2"))
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
STEPS = 10_000
FREE = Volume(
    ID,
    "pvc-1",
    10 * volume_rules.GIB,
    VolumePhase.AVAILABLE,
    type="slow",
    cluster="blue",
)


class Died(BaseException):
    """The controller was killed."""


class Watched(fake.FakeVolumes):
    """A cloud that notes what is taken from a server that may have the disk."""

    def __init__(self, now: clock.Clock) -> None:
        super().__init__(now)
        self.stolen: list[str] = []

    def bound_for(self) -> InstanceId | None:
        self.volumes()  # what is due has happened
        return self._records[ID].bound_for

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        before = self.bound_for()
        super().detach(volume, instance_id)
        is_taken = before is not None and self._records[ID].bound_for is None
        if is_taken and before in self.instances and before != instance_id:
            self.stolen.append(f"{before} by a detach of {instance_id}")

    def holders(self) -> set[InstanceId]:
        (volume,) = self.volumes()
        held = {attachment.instance_id for attachment in volume.attachments}
        bound_for = self.bound_for()
        return held | ({bound_for} if bound_for else set())


class World:
    """The cloud, and two controllers of which each can be killed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- a walk that repeats
        self.clock = clock.Clock()
        self.cloud = Watched(self.clock)
        self.cloud.instances = set(SERVERS)
        self.cloud.put(FREE)
        self.ends: dict[str, int] = {}
        self.controllers = [self._start(), self._start()]
        self.cloud.before_call = self._before
        self.cloud.after_call = self._before
        self._calls_left = math.inf

    def _start(self) -> flow.VolumesFlow:
        effects = callers.CallEffects(self.clock, self.clock.wait)
        return flow.VolumesFlow(lambda: self.cloud, effects)

    def _before(self, operation: str) -> None:
        del operation
        self._calls_left -= 1
        if self._calls_left < 0:
            raise Died

    def step(self) -> None:
        """Change the cloud, then have a controller answer one call."""
        self._change()
        number = self.random.randrange(2)
        server = self.random.choice(SERVERS)
        requests: tuple[model.Request, ...] = (
            model.PublishVolume(ID, server),
            model.UnpublishVolume(ID, server),
        )
        is_killed = self.random.random() < 0.1
        self._calls_left = self.random.randrange(6) if is_killed else math.inf
        patience_s = self.random.choice((2.0, 30.0, 180.0))
        end = self._end(number, self.random.choice(requests), patience_s)
        self._calls_left = math.inf
        self.ends[end] = self.ends.get(end, 0) + 1

    def _end(self, number: int, request: model.Request, patience_s: float) -> str:
        caller = callers.Caller(self.clock() + patience_s)
        try:
            self.controllers[number].settle(request, caller)
        except RefusedCall as refused:
            return refused.code.value
        except Died:
            self.controllers[number] = self._start()
            return "killed"
        if isinstance(request, model.UnpublishVolume):
            assert request.instance_id not in self.cloud.holders()
        elif isinstance(request, model.PublishVolume):
            assert self.cloud.holders() == {request.instance_id}
        return "OK"

    def _change(self) -> None:
        draw = self.random.random()
        self.cloud.operation_s = self.random.choice((0.5, 5.0, 60.0, 250.0))
        self.cloud.faults.stuck = {"attach"} if draw < 0.05 else set()
        if draw < 0.1:
            operation = self.random.choice(("attach volume", "detach volume"))
            self.cloud.faults.lost[:] = [operation]
        server = self.random.choice(SERVERS)
        if draw > 0.97:
            self.cloud.remove_instance(server, leaves=draw > 0.985)
        elif draw > 0.9:
            self.cloud.instances.add(server)
        self.clock.move(self.random.choice((0.0, 1.0, 20.0)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_at_no_time_do_two_servers_hold_the_volume(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
        assert len(world.cloud.holders()) <= 1
        assert world.cloud.stolen == []
    print(f"seed {seed}: {dict(sorted(world.ends.items()))}")
    assert world.ends["OK"] > STEPS / 4
    assert Code.FAILED_PRECONDITION.value in world.ends
