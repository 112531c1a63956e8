"""Every request comes true from any crash: killed before or after each call.

The table that is printed has one row per request and call to the parent; a row that is
missing fails. A second process, which was started just now, completes the request.
"""

import dataclasses
import threading
from collections.abc import Callable

import pytest

from lib.cloud.volumes import VolumeId, VolumeSpec
from lib.kube.fake import calls
from lib.volumes import model
from tests.lib.cloud.dvp.volumes import disks
from tests.lib.cloud.dvp.volumes.disks import NODE

GIB = 2**30
ID = VolumeId("pvc-0f0e0d0c-0000-4000-8000-000000000001")
SPEC = VolumeSpec(ID, GIB, disks.UUID, type=disks.CLASS)
HELD = (
    disks.disk(ID, attachedToVirtualMachines=[{"name": NODE, "mounted": True}]),
    disks.attachment(ID, NODE),
)


class Killed(BaseException):
    """The process ends here."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A request, where it starts, its calls, and whether it came true."""

    request: model.Request
    start: tuple[disks.Json, ...]
    calls: tuple[str, ...]
    is_true: Callable[[disks.ParentInMemory], bool]


def _attachments(world: disks.ParentInMemory) -> list[str]:
    return [item["status"]["phase"] for item in world.all(disks.ATTACHMENTS)]


def _phases(world: disks.ParentInMemory) -> list[str]:
    return [item["status"]["phase"] for item in world.all(disks.DISKS)]


def _capacity(world: disks.ParentInMemory) -> list[str]:
    return [item["status"]["capacity"] for item in world.all(disks.DISKS)]


DISK, ATTACHMENT = disks.DISKS.plural, disks.ATTACHMENTS.plural
CASES = {
    "create": Case(
        model.Make(SPEC),
        (),
        (f"create {DISK}",),
        lambda world: _phases(world) == ["Ready"],
    ),
    "publish": Case(
        model.PublishVolume(ID, NODE),
        (disks.disk(ID),),
        (f"create {ATTACHMENT}",),
        lambda world: _attachments(world) == ["Attached"],
    ),
    "publish what failed": Case(
        model.PublishVolume(ID, NODE),
        (disks.disk(ID), disks.attachment(ID, NODE, "Failed")),
        (f"delete {ATTACHMENT}", f"create {ATTACHMENT}"),
        lambda world: _attachments(world) == ["Attached"],
    ),
    "publish what the reference attached": Case(
        model.PublishVolume(ID, NODE),
        HELD,
        (f"patch {ATTACHMENT}",),
        lambda world: _attachments(world) == ["Attached"],
    ),
    "unpublish": Case(
        model.UnpublishVolume(ID, NODE),
        HELD,
        (f"delete {ATTACHMENT}",),
        lambda world: _attachments(world) == [],
    ),
    "expand": Case(
        model.Expand(ID, 2 * GIB),
        (disks.disk(ID),),
        (f"patch {DISK}",),
        lambda world: _capacity(world) == [str(2 * GIB)],
    ),
    "delete": Case(
        model.RemoveVolume(ID, disks.UUID),
        (disks.disk(ID),),
        (f"delete {DISK}", f"get {DISK}"),
        lambda world: _phases(world) == [],
    ),
}


def _world(case: Case) -> disks.ParentInMemory:
    world = disks.ParentInMemory()
    world.put(*case.start)
    return world


def _run(
    world: disks.ParentInMemory, case: Case, kill_at: int, is_before: bool
) -> list[str]:
    """Run until killed; return the calls. kill_at: number of the call; -1: never."""
    sent: list[str] = []
    own = threading.get_ident()

    def before(call: calls.Call) -> None:
        if threading.get_ident() != own:
            return
        sent.append(f"{call.verb} {call.resource}")
        if is_before and len(sent) - 1 == kill_at:
            raise Killed

    def after(call: calls.Call) -> None:
        del call
        is_own = threading.get_ident() == own
        if is_own and not is_before and len(sent) - 1 == kill_at:
            raise Killed

    with disks.opened(world) as volumes:
        volumes.listing()  # the watches are open
        world.api.before_call, world.api.after_call = before, after
        try:
            disks.settle(volumes, case.request)
        except Killed:
            pass
        finally:
            world.api.before_call = world.api.after_call = None
    return sent


@pytest.mark.parametrize("title", CASES)
def test_a_request_comes_true_after_a_crash_at_each_call(title: str) -> None:
    case = CASES[title]
    world = _world(case)
    with world.moving():
        sent = _run(world, case, -1, is_before=True)
    assert tuple(sent) == case.calls
    rows = []
    for number, call in enumerate(case.calls):
        for is_before in (True, False):
            world = _world(case)
            with world.moving():
                _run(world, case, number, is_before)
                with disks.opened(world) as volumes:
                    volumes.listing()  # the watches are open
                    disks.settle(volumes, case.request)
                    assert case.is_true(world), (title, call, is_before)
            rows.append((call, "before" if is_before else "after"))
    for call, when in rows:
        print(f"{title:36} {call:52} killed {when:6} completed")
    assert len(rows) == 2 * len(case.calls)


@pytest.mark.parametrize("title", CASES)
def test_two_processes_settle_one_request(title: str) -> None:
    """Both at the same time: one object results, and both calls end well."""
    case = CASES[title]
    world = _world(case)
    failures: list[BaseException] = []

    def settle() -> None:
        with disks.opened(world) as volumes:
            volumes.listing()  # the watches are open
            together.wait()
            try:
                disks.settle(volumes, case.request)
            except Exception as error:  # reported by the test
                failures.append(error)
            # The end of a process breaks all watches of this parent.
            ended.wait()

    together, ended = threading.Barrier(2), threading.Barrier(2)
    threads = [threading.Thread(target=settle) for _ in range(2)]
    with world.moving():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert case.is_true(world)
