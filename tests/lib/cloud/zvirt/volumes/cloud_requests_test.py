"""How many requests each call takes: the limits are those of docs/zvirt.md."""

import threading

import pytest

from lib.cloud.volumes import ById, ByName, VolumeId
from lib.cloud.zvirt.volumes import cloud
from lib.volumes import callers, model
from tests.lib.cloud.zvirt.volumes.engine_disks import (
    CLUSTER,
    GIB,
    ID,
    World,
    made,
    spec,
)

_POLLS = 4


def warm(world: World, disk: VolumeId) -> cloud.EngineVolumes:
    """Open the volumes of a process that knows the engine and its storage domains."""
    volumes = world.open()
    volumes.observe([ById(disk)])
    world.pass_s(1)
    world.sent.clear()
    return volumes


def test_a_creation_takes_three_requests_and_polls_and_one_again() -> None:
    world = World()
    volumes = world.open()
    request = model.Make(spec(volumes))
    world.settle(request, volumes)
    began = ["GET disks", "GET datacenters", "POST disks"]
    # Once in ten minutes the engine is asked who it is.
    assert world.sent[:4] == [*began, "GET "]
    print("create", world.sent)
    assert len(world.sent) <= 3 + _POLLS * 2
    world.pass_s(1)
    world.pass_s(1)
    world.sent.clear()
    world.settle(request, volumes)
    assert world.sent == ["GET disks"]


def test_a_publish_takes_two_requests_and_one_poll_and_one_again() -> None:
    world = World()
    disk = made(world)
    volumes = warm(world, disk)
    request = model.PublishVolume(disk, world.node)
    world.settle(request, volumes)
    attachment = "GET vms/{}/diskattachments/{}"
    assert world.sent == ["GET disks/{}", "POST vms/{}/diskattachments", attachment]
    world.pass_s(1)
    world.sent.clear()
    world.settle(request, volumes)
    assert world.sent == [attachment]


def test_a_publish_of_what_another_process_attached_takes_two() -> None:
    world = World()
    disk = made(world)
    world.settle(model.PublishVolume(disk, world.node))
    volumes = warm(world, disk)
    world.settle(model.PublishVolume(disk, world.node), volumes)
    assert world.sent == ["GET disks/{}", "GET vms/{}/diskattachments/{}"]


def test_an_unpublish_takes_two_requests_and_polls() -> None:
    world = World()
    disk = made(world)
    world.settle(model.PublishVolume(disk, world.node))
    volumes = warm(world, disk)
    request = model.UnpublishVolume(disk, world.node)
    world.settle(request, volumes)
    attachment = "vms/{}/diskattachments/{}"
    poll = [f"GET {attachment}", "GET disks/{}"]
    assert world.sent == [f"GET {attachment}", f"DELETE {attachment}", *poll]
    world.pass_s(1)
    world.sent.clear()
    world.settle(request, volumes)
    assert world.sent == poll


def test_an_expansion_takes_two_requests_and_polls() -> None:
    world = World()
    disk = made(world)
    volumes = warm(world, disk)
    world.settle(model.Expand(disk, 2 * GIB), volumes)
    assert world.sent[:2] == ["GET disks/{}", "PUT disks/{}"]
    assert set(world.sent[2:]) == {"GET disks/{}", "GET jobs"}
    print("expand", world.sent)
    assert len(world.sent) <= 2 + _POLLS * 2
    world.pass_s(1)
    world.sent.clear()
    world.settle(model.Expand(disk, 2 * GIB), volumes)
    assert world.sent == ["GET disks/{}"]


def test_a_deletion_takes_two_requests_and_polls() -> None:
    world = World()
    disk = made(world)
    volumes = warm(world, disk)
    world.settle(model.RemoveVolume(disk, CLUSTER), volumes)
    assert world.sent[:2] == ["GET disks/{}", "DELETE disks/{}"]
    print("delete", world.sent)
    assert len(world.sent) <= 2 + 3


def test_a_hundred_parallel_attaches_take_330_requests_at_most() -> None:
    world = World()
    disks = [made(world, name=f"pvc-{number}") for number in range(100)]
    volumes = warm(world, disks[0])
    world.begin_threads()
    process = world.flow(volumes)
    failures: list[BaseException] = []

    def publish(disk: VolumeId) -> None:
        try:
            call = callers.Caller(world.now_s + 3000.0)
            process.settle(model.PublishVolume(disk, world.node), call)
        except BaseException as error:  # reported by the test
            failures.append(error)

    threads = [threading.Thread(target=publish, args=(disk,)) for disk in disks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("100 attaches", world.counts)
    assert failures == []
    assert len(world.attachments()) == 100
    assert len(world.sent) <= 330


def test_two_hundred_claims_at_once_are_searched_together() -> None:
    """A list of names costs one request, whatever the number of callers."""
    world = World()
    volumes = world.open()
    refs = [ByName(f"pvc-{number}") for number in range(200)]
    assert volumes.observe(refs).by_ref == dict.fromkeys(refs, ())
    assert len(world.sent) <= 6


@pytest.mark.parametrize("title", ["listing", "capacity"])
def test_a_list_takes_a_few_requests(title: str) -> None:
    world = World()
    disk = made(world)
    world.settle(model.PublishVolume(disk, world.node))
    volumes = world.open()
    world.sent.clear()
    if title == "capacity":
        volumes.capacity("", ())
        assert world.sent == ["GET datacenters"]
        return
    (volume,) = volumes.listing()
    assert (volume.id, volume.attachments[0].instance_id) == (ID, world.node)
    assert world.sent == ["GET disks", "GET vms", "GET datacenters"]
