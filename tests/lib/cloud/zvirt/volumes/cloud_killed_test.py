"""Every request comes true from any crash, with a second process, with each fault.

The tables that are printed have one row per request to the engine; a second process,
which was started just now, completes the call.
"""

import dataclasses
import threading
from collections.abc import Callable, Mapping

import pytest

from lib.cloud.volumes import VolumeId
from lib.lab.zvirt import seed
from lib.volumes import model
from lib.volumes.csi_codes import Code, RefusedCall
from tests.lib.cloud.zvirt.volumes.engine_disks import (
    CLUSTER,
    GIB,
    ID,
    NAME,
    Killed,
    World,
    made,
    spec,
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A call, where it starts, and whether it came true."""

    start: Callable[[World], VolumeId]
    request: Callable[[World, VolumeId], model.Request]
    is_true: Callable[[World, VolumeId], bool]


def _nothing(world: World) -> VolumeId:
    del world
    return ID


def _disk(world: World) -> VolumeId:
    return made(world)


def _attached(world: World) -> VolumeId:
    disk = made(world)
    world.add_attachment(disk, world.node)
    return disk


def _inactive(world: World) -> VolumeId:
    disk = world.add_disk()
    world.add_attachment(disk, world.node, is_active=False)
    return disk


def _is_created(world: World, disk: VolumeId) -> bool:
    del disk
    return [(d.alias, d.status.value) for d in world.disks()] == [(NAME, "ok")]


def _is_plugged(world: World, disk: VolumeId) -> bool:
    return world.attachments() == [(disk, world.node, True)]


CASES: Mapping[str, Case] = {
    "create": Case(
        _nothing, lambda world, disk: model.Make(spec(world.open())), _is_created
    ),
    "publish": Case(
        _disk,
        lambda world, disk: model.PublishVolume(disk, world.node),
        _is_plugged,
    ),
    "publish what is inactive": Case(
        _inactive,
        lambda world, disk: model.PublishVolume(disk, world.node),
        _is_plugged,
    ),
    "unpublish": Case(
        _attached,
        lambda world, disk: model.UnpublishVolume(disk, world.node),
        lambda world, disk: world.attachments() == [],
    ),
    "expand": Case(
        _disk,
        lambda world, disk: model.Expand(disk, 2 * GIB),
        lambda world, disk: [d.provisioned_size for d in world.disks()] == [2 * GIB],
    ),
    "delete": Case(
        _disk,
        lambda world, disk: model.RemoveVolume(disk, CLUSTER),
        lambda world, disk: world.disks() == [],
    ),
}


def _run(title: str, die_at: int | None, is_before: bool) -> tuple[World, VolumeId]:
    """Run a call until its process is killed; requests are counted from its start."""
    world = World()
    case = CASES[title]
    disk = case.start(world)
    request = case.request(world, disk)
    world.pass_s(1)
    world.sent.clear()
    world.die_at, world.is_before = die_at, is_before
    try:
        world.settle(request)
    except Killed:
        pass
    finally:
        world.die_at = None
    return world, disk


@pytest.mark.parametrize("title", CASES)
def test_a_call_comes_true_after_a_crash_at_each_request(title: str) -> None:
    world, disk = _run(title, None, is_before=True)
    assert CASES[title].is_true(world, disk)
    requests = list(world.sent)
    for number, sent in enumerate(requests):
        for is_before in (True, False):
            world, disk = _run(title, number, is_before)
            world.pass_s(1)
            world.settle(CASES[title].request(world, disk))
            when = "before" if is_before else "after"
            print(f"{title:26} {sent:34} killed {when:6} completed")
            assert CASES[title].is_true(world, disk), (title, sent, when)


@pytest.mark.parametrize("title", CASES)
def test_two_processes_settle_one_call(title: str) -> None:
    """Both at the same time: one object results, and both calls end well."""
    world = World()
    case = CASES[title]
    disk = case.start(world)
    request = case.request(world, disk)
    world.pass_s(1)
    failures: list[BaseException] = []
    together = threading.Barrier(2)
    world.begin_threads()

    def settle() -> None:
        volumes = world.open()
        together.wait()
        try:
            for _ in range(5):
                try:
                    world.settle(request, volumes)
                    return
                except RefusedCall as refused:
                    if refused.code not in (Code.ABORTED, Code.UNAVAILABLE):
                        raise
        except Exception as error:  # reported by the test
            failures.append(error)

    threads = [threading.Thread(target=settle) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.is_threaded = False
    world.pass_s(5)
    assert failures == []
    assert case.is_true(world, disk)


FAULTS = (
    "html {method} {path} 503 2",
    "html {method} {path} 404 2",
    "refuse {method} {path} 500 2 Internal Engine Error",
    "refuse {method} {path} 409 2 Related operation is currently in progress",
    "no-response {method} {path} 1",
    "no-effect {method} {path} 1",
    "silence {method} {path} 1",
)
"""Faults of one request; each call is repeated as a sidecar does."""


def _pattern(sent: str) -> tuple[str, str]:
    method, _, path = sent.partition(" ")
    return method, f"api/{path.replace('{}', '*')}".rstrip("/")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda text: " ".join(text.split()[::3]))
@pytest.mark.parametrize("title", CASES)
def test_a_call_comes_true_although_each_request_fails(title: str, fault: str) -> None:
    world, _ = _run(title, None, is_before=True)
    for sent in dict.fromkeys(world.sent):
        world = World()
        case = CASES[title]
        disk = case.start(world)
        request = case.request(world, disk)
        world.pass_s(1)
        method, path = _pattern(sent)
        world.vms.rules(fault.format(method=method, path=path))
        volumes = world.open()
        codes: list[str] = []
        for _ in range(8):
            try:
                world.settle(request, volumes, patience_s=30.0)
                break
            except RefusedCall as refused:
                codes.append(refused.code.value)
                world.pass_s(10)
        print(f"{title:26} {sent:34} {fault.split()[0]:12} {codes or 'at once'}")
        assert case.is_true(world, disk), (title, sent, fault, codes)


def test_a_failed_job_is_the_error_of_the_call_with_its_event() -> None:
    world = World("fail disk-ready")
    volumes = world.open()
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.Make(spec(volumes)), volumes)
    assert raised.value.code is Code.INTERNAL
    assert "Add-Disk operation" in raised.value.message
    assert world.disks() == []


def test_a_failed_expansion_is_the_error_of_the_call_and_is_tried_again() -> None:
    world = World()
    disk = made(world)
    world.vms.rules("fail disk-ready")
    volumes = world.open()
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.Expand(disk, 2 * GIB), volumes)
    assert raised.value.code is Code.INTERNAL
    assert "Failed to extend size" in raised.value.message


@pytest.mark.parametrize("line", ["", "taken-id-fails-later"])
def test_a_disk_that_another_process_creates_is_not_created_twice(line: str) -> None:
    """Both have read that it is absent; the engine refuses the second in two ways."""
    world = World(*filter(None, [line]))
    first, second = world.open(), world.open()
    desired = spec(first)
    for volumes in (first, second):
        (ref,) = model.needs(model.Make(desired), model.CallHistory())
        assert volumes.observe([ref]).by_ref == {ref: ()}
    first.create(desired)
    try:
        second.create(desired)
    except Exception as error:
        print(type(error).__name__, error)
    world.pass_s(5)
    world.settle(model.Make(desired), second)
    assert _is_created(world, ID)


def test_capacity_is_of_the_chosen_domain() -> None:
    volumes = World().open()
    everything = volumes.capacity("", ()).available_bytes
    by_name = volumes.capacity(seed.ISCSI, ())
    assert by_name == volumes.capacity(seed.identifier(seed.ISCSI), ())
    assert everything > by_name.available_bytes > 0
