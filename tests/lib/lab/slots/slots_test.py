"""Slots: how many, which ports, and that two processes never hold the same one."""

import pathlib
import subprocess
import sys
import threading

import pytest

from lib.lab import errors
from lib.lab.slots import slots

GB = 10**9


def never(slot: slots.Slot) -> None:
    """Refuse no slot."""


def waits() -> None:
    raise AssertionError("a slot was free")


@pytest.mark.parametrize(
    ("cores", "memory_bytes", "labs"),
    [
        (2, 8 * GB, 2),
        (8, 8 * GB, 2),
        (2, 64 * GB, 4),
        (3, 64 * GB, 6),
        (32, 256 * GB, 9),
        (4, 2 * GB, 1),
        (1, 64 * GB, 2),
        (1, 1 * GB, 1),
    ],
)
def test_cores_memory_and_ports_bound_the_labs(
    cores: int, memory_bytes: int, labs: int
) -> None:
    assert slots.count(cores, memory_bytes) == labs


def test_blocks_do_not_overlap_and_stay_below_outgoing_ports() -> None:
    blocks = [
        range(slots.port_base(number), slots.port_base(number) + slots.SLOT_PORTS)
        for number in range(slots.MOST)
    ]
    ports = [port for block in blocks for port in block]

    assert len(set(ports)) == len(ports)
    assert max(ports) < slots.FIRST_EPHEMERAL


def test_the_lowest_free_slot_is_taken(tmp_path: pathlib.Path) -> None:
    first = slots.take(tmp_path, range(3), never, waits)
    second = slots.take(tmp_path, range(3), never, waits)
    first.release()
    third = slots.take(tmp_path, range(3), never, waits)

    assert [first.number, second.number, third.number] == [0, 1, 0]
    second.release()
    third.release()


def test_who_finds_no_slot_waits_for_one(tmp_path: pathlib.Path) -> None:
    held = slots.take(tmp_path, range(1), never, waits)
    is_waiting = threading.Event()
    taken: list[slots.Slot] = []

    def take() -> None:
        taken.append(slots.take(tmp_path, range(1), never, is_waiting.set))

    thread = threading.Thread(target=take)
    thread.start()
    assert is_waiting.wait(10)
    assert taken == []
    held.release()
    thread.join(10)

    assert [slot.number for slot in taken] == [0]
    taken[0].release()


def test_a_killed_process_holds_no_slot(tmp_path: pathlib.Path) -> None:
    code = (
        "import fcntl, sys, time; lock = open(sys.argv[1], 'w');"
        " fcntl.flock(lock, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    (tmp_path / "0").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "0" / "lock")],
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert slots.attempt(tmp_path, 0) is None
        other.kill()

    slot = slots.attempt(tmp_path, 0)
    assert slot is not None
    slot.release()


def test_a_slot_that_cannot_be_used_is_passed_over(tmp_path: pathlib.Path) -> None:
    def refuse(slot: slots.Slot) -> None:
        if slot.number < 2:
            raise errors.LabError(f"the ports of slot {slot.number} are taken")

    slot = slots.take(tmp_path, range(3), refuse, waits)
    assert slot.number == 2
    slot.release()

    with pytest.raises(errors.LabError, match="ports of slot 0 are taken"):
        slots.take(tmp_path, range(2), refuse, waits)
