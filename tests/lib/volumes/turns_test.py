"""One call per volume; attaches of one instance in order, of others beside them."""

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Collection

import pytest

from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Ref, Volume, VolumeId, VolumePhase, VolumesReading
from lib.volumes import callers, flow, model, turns
from lib.volumes.csi_codes import Code, RefusedCall

NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")


def _volume(number: int) -> Volume:
    volume_id = VolumeId(f"{number:08x}-0000-4000-8000-000000000000")
    return Volume(volume_id, f"pvc-{number}", 1, VolumePhase.AVAILABLE, cluster="blue")


class Slow(fake.FakeVolumes):
    """A cloud whose attaches take a while to be accepted, one thread each."""

    def __init__(self) -> None:
        super().__init__(time.monotonic, operation_s=0.05)
        self.order: list[str] = []
        self.at_once: dict[InstanceId, int] = {}
        self.most: dict[InstanceId, int] = {}
        self.all_at_once = self.most_of_all = 0
        self._count = threading.Lock()
        self.may_look = threading.Event()
        self.may_look.set()

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        assert self.may_look.wait(10)
        return super().observe(refs, within_s)

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        with self._count:
            self.order.append(volume.name)
            now = self.at_once[instance_id] = self.at_once.get(instance_id, 0) + 1
            self.most[instance_id] = max(now, self.most.get(instance_id, 0))
            self.all_at_once += 1
            self.most_of_all = max(self.most_of_all, self.all_at_once)
        threading.Event().wait(0.01)
        super().attach(volume, instance_id)
        with self._count:
            self.at_once[instance_id] -= 1
            self.all_at_once -= 1


def test_a_volume_in_hand_is_not_given_to_another_call() -> None:
    key_locks = turns.KeyLocks()
    with key_locks.hold("v1"), key_locks.hold("v2"):
        with pytest.raises(RefusedCall) as raised, key_locks.hold("v1"):
            raise AssertionError
        assert raised.value.code is Code.ABORTED
        assert '"v1"' in raised.value.message
    with key_locks.hold("v1"):
        pass


def test_a_second_call_for_a_volume_is_aborted_while_the_first_is_under_way() -> None:
    cloud = Slow()
    cloud.instances = {NODE}
    cloud.put(dataclasses.replace(_volume(1), phase=VolumePhase.CREATING))
    process = flow.VolumesFlow(lambda: cloud)
    call = callers.Caller(time.monotonic() + 30)
    request = model.PublishVolume(_volume(1).id, NODE)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(process.settle, request, call)
        while not cloud.calls:
            threading.Event().wait(0.001)
        with pytest.raises(RefusedCall) as raised:
            process.settle(model.RemoveVolume(_volume(1).id), call)
        call.cancel()
        with pytest.raises(RefusedCall) as cancelled:
            first.result(10)
    assert raised.value.code is Code.ABORTED
    assert cancelled.value.code is Code.CANCELLED


def test_twenty_volumes_reach_one_instance_in_order_and_none_is_lost() -> None:
    cloud = Slow()
    cloud.instances = {NODE}
    cloud.put(*(_volume(number) for number in range(20)))
    process = flow.VolumesFlow(lambda: cloud)
    call = callers.Caller(time.monotonic() + 60)
    cloud.may_look.clear()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        asked = []
        for number in range(20):
            request = model.PublishVolume(_volume(number).id, NODE)
            asked.append(pool.submit(process.settle, request, call))
            while len(process._turns._lines.get(NODE, ())) <= number:
                threading.Event().wait(0.001)
        cloud.may_look.set()
        for item in asked:
            item.result(60)
    assert cloud.order == [f"pvc-{number}" for number in range(20)]
    assert cloud.most == {NODE: 1}
    assert all(volume.attachments for volume in cloud.volumes())


def test_a_hundred_instances_get_theirs_side_by_side_with_few_calls() -> None:
    """The bench of the lab in small: three calls each at most, and shared looks."""
    cloud = Slow()
    cloud.operation_s = 0.5
    nodes = [InstanceId(f"node-{number}") for number in range(100)]
    cloud.instances = set(nodes)
    cloud.put(*(_volume(number) for number in range(100)))
    process = flow.VolumesFlow(lambda: cloud)
    call = callers.Caller(time.monotonic() + 60)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        asked = [
            pool.submit(process.settle, model.PublishVolume(_volume(n).id, node), call)
            for n, node in enumerate(nodes)
        ]
        for item in asked:
            item.result(60)
    print(f"{len(cloud.calls)} calls, {cloud.most_of_all} attaches at once at most")
    assert cloud.calls.count("attach volume") == 100
    assert len(cloud.calls) <= 330
    assert cloud.most_of_all > 1


def test_who_waits_for_a_turn_may_be_cancelled() -> None:
    lines = turns.Turns(callers.CallEffects())
    call = callers.Caller(time.monotonic() + 30)
    with (
        concurrent.futures.ThreadPoolExecutor() as pool,
        lines.join(NODE) as first,
        lines.join(NODE) as second,
        lines.join(OTHER) as elsewhere,
    ):
        first.wait(call)
        elsewhere.wait(call)
        waiting = pool.submit(second.wait, call)
        threading.Event().wait(0.01)
        assert not waiting.done()
        call.cancel()
        with pytest.raises(RefusedCall) as raised:
            waiting.result(10)
    assert raised.value.code is Code.CANCELLED


def test_who_leaves_lets_the_next_one_act() -> None:
    lines = turns.Turns(callers.CallEffects())
    call = callers.Caller(time.monotonic() + 30)
    with lines.join(NODE) as first, lines.join(NODE) as second:
        first.wait(call)
        first.leave()
        second.wait(call)
        first.leave()  # again, harmless
        second.leave()
        first.wait(call)  # at the end of the line again, which is empty
