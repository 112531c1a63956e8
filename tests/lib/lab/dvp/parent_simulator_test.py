"""When steps of the simulated parent happen, and what is asked of it."""

import datetime

import pytest

from lib.kube import objects
from lib.lab.dvp import attachments, parent_simulator, quantities, settings, writes
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, Item, World
from lib.lab.dvp.writes import Finding, Step

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def item(name: str = "disk") -> Item:
    return Item(objects.ObjectMeta(name=name, namespace="p", uid=f"uid of {name}"))


def step(transition: str = "disk-ready", name: str = "disk") -> Step:
    disk = item(name)

    def fail(reason: str, message: str) -> writes.Call:
        return writes.status(DISKS, disk, {"phase": f"{reason}: {message}"})

    calls = [writes.status(DISKS, disk, {"phase": "Ready"})]
    return Step(transition, disk, calls, failed=fail)


def test_a_step_happens_once_its_delay_is_over() -> None:
    """The delay begins with the first proposal, and again after a pause."""
    asked = settings.read({"delays": "disk-ready 2"})
    due = parent_simulator.Due()
    assert due.ready([step()], asked, at=10.0) == ([], 2.0)
    assert due.ready([step()], asked, at=11.5) == ([], 0.5)
    ready, pause = due.ready([step()], asked, at=12.0)
    assert ([each.transition for each in ready], pause) == (["disk-ready"], None)
    assert due.ready([], asked, at=13.0) == ([], None)
    assert due.ready([step()], asked, at=14.0) == ([], 2.0)


def test_a_refused_step_happens_later() -> None:
    """The simulator does not repeat it in a loop."""
    asked, due, refused = settings.read({}), parent_simulator.Due(), step()
    due.postpone(refused, until=6.0)
    assert due.ready([refused], asked, at=5.0) == ([], 1.0)


def test_a_held_step_does_not_happen() -> None:
    """By transition and name, or all of an object."""
    due = parent_simulator.Due()
    for lines in ("disk-ready", "disk-ready d*", "* disk"):
        assert due.ready([step()], settings.read({"hold": lines}), at=1.0)[0] == []
    other = settings.read({"hold": "disk-ready x*\n# disk-ready"})
    assert len(due.ready([step()], other, at=1.0)[0]) == 1


def test_a_step_fails_as_asked() -> None:
    """With reason and message of the line; others succeed."""
    asked = settings.read({"fail": "disk-ready bad* NoRoom on any disk"})
    (call,) = parent_simulator.chosen(step(name="bad-1"), asked)
    assert isinstance(call, writes.PatchObject)
    assert call.body["status"]["phase"] == "NoRoom: on any disk"
    good = step(name="good")
    assert parent_simulator.chosen(good, asked) == good.calls


@pytest.mark.parametrize(
    "data",
    [{"hold": "disk-raedy"}, {"delays": "disk-ready"}, {"fail": "disk-ready disk"}],
)
def test_an_invalid_line_is_refused(data: dict[str, str]) -> None:
    """It names key and line."""
    with pytest.raises(ValueError, match=next(iter(data))):
        settings.read(data)


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """A reason alone moves no time."""
    disk = item()
    first = writes.conditions(disk, NOW, Finding("Ready", False, "Pending"))
    held = Item(disk.metadata, status={"conditions": first})
    later = NOW + datetime.timedelta(hours=1)
    (again,) = writes.conditions(held, later, Finding("Ready", False, "Quota"))
    assert again["lastTransitionTime"] == first[0]["lastTransitionTime"]
    (good,) = writes.conditions(held, later, Finding("Ready", True, "Ready"))
    assert good["lastTransitionTime"] != first[0]["lastTransitionTime"]


@pytest.mark.parametrize(
    ("text", "size_bytes", "written"),
    [
        ("1Gi", 2**30, "1Gi"),
        ("1073741824", 2**30, "1Gi"),
        ("1536Mi", 3 * 2**29, "1536Mi"),
        ("1G", 10**9, "1000000000"),
        ("0", 0, "0"),
    ],
)
def test_sizes_are_written_in_the_largest_unit(
    text: str, size_bytes: int, written: str
) -> None:
    """Whatever a client wrote."""
    assert quantities.parse(text) == size_bytes
    assert quantities.write(size_bytes) == written


def test_what_is_no_quantity_is_refused() -> None:
    """It is named."""
    with pytest.raises(ValueError, match="'10Zi'"):
        quantities.parse("10Zi")


def test_of_two_attachments_of_one_second_the_attached_one_stays() -> None:
    """Their creation times are equal, and the other's UID comes first."""
    reference = {"kind": "VirtualDisk", "name": "data"}
    spec = {"blockDeviceRef": reference, "virtualMachineName": "vm"}

    def attachment(name: str, phase: str) -> Item:
        metadata = objects.ObjectMeta(name=name, namespace="p", uid=name)
        return Item(metadata, spec=spec, status={"phase": phase})

    first, second = attachment("b", "Attached"), attachment("a", "Pending")
    world = World({ATTACHMENTS: {"p/b": first, "p/a": second}})
    refused = [s for s in attachments.decide(world, NOW) if s.item is second]
    assert [step_.transition for step_ in refused] == ["attachment-conflict"]


def test_an_attachment_that_failed_claims_no_device() -> None:
    """Of the same second, it does not fail one whose VM has stopped."""
    reference = {"kind": "VirtualDisk", "name": "data"}
    spec = {"blockDeviceRef": reference, "virtualMachineName": "vm"}

    def attachment(name: str, phase: str) -> Item:
        metadata = objects.ObjectMeta(name=name, namespace="p", uid=name)
        return Item(metadata, spec=spec, status={"phase": phase})

    failed, waiting = attachment("a", "Failed"), attachment("b", "Pending")
    world = World({ATTACHMENTS: {"p/a": failed, "p/b": waiting}})
    steps = [s.transition for s in attachments.decide(world, NOW) if s.item is waiting]
    assert steps == ["attachment-waits"]
