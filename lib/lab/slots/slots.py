"""Slots for test labs: a block of ports and a folder each, taken by a file lock.

Rules: free slots are tried in the order that the caller prefers; the kernel releases
the lock of a process that ends, however it ends; a lock file is never removed, since
another process may be about to lock it. Every port is below those that outgoing
connections use.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import time
from collections.abc import Callable, Sequence

import psutil

from lib.lab import errors

PORT_BASE = 25000
"""First port of the first slot; see lib/lab/places.py for that of a user's lab."""
SLOT_PORTS = 800
MOST = 9
MEMORY_BYTES = 3 * 10**9
"""Of one lab with its tests: OpenStack 1.3 GB, a control plane 0.5 GB, daemons."""
FIRST_EPHEMERAL = 32768
"""Source: Linux ip-sysctl, ip_local_port_range, default."""
POLL_S = 0.2

_CGROUP_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """One slot, held until `release`.

    folder: where everything of the slot lies. lock: descriptor of its lock.
    """

    number: int
    folder: pathlib.Path
    lock: int

    @property
    def port_base(self) -> int:
        """Return the first port of the block."""
        return port_base(self.number)

    def release(self) -> None:
        """Release the slot for the next process."""
        os.close(self.lock)


def port_base(number: int) -> int:
    """Return the first port of a slot's block."""
    return PORT_BASE + SLOT_PORTS * number


def count(cores: int, memory_bytes: int) -> int:
    """Return how many labs may run in parallel on a machine; one always may.

    A lab of the long tier waits for half of its time, so that there are two for a core.
    """
    return max(1, min(2 * cores, memory_bytes // MEMORY_BYTES, MOST))


def of_this_machine() -> int:
    """Return how many labs may run in parallel here; a container's limit counts."""
    memory = psutil.virtual_memory().total
    with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
        memory = min(memory, int(_CGROUP_LIMIT.read_text()))
    return count(len(os.sched_getaffinity(0)), memory)


def attempt(root: pathlib.Path, number: int) -> Slot | None:
    """Take one slot if no process holds it.

    Raises:
        LabError: its folder cannot be written.
    """
    folder = root / str(number)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise errors.LabError(f"cannot use the test slot {folder}: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return Slot(number, folder, lock)


def take(
    root: pathlib.Path,
    numbers: Sequence[int],
    refuse: Callable[[Slot], None],
    waits: Callable[[], None],
) -> Slot:
    """Take the first free one of these slots; wait while all are held.

    refuse: raises when a slot cannot be used though it is free; the next one is tried
    then. waits: called once, before the first wait.

    Raises:
        LabError: slots cannot be written. Otherwise what `refuse` raised, when no slot
            is held and none can be used.
    """
    is_first = True
    while True:
        refused: Exception | None = None
        is_held = False
        for number in numbers:
            slot = attempt(root, number)
            if slot is None:
                is_held = True
                continue
            try:
                refuse(slot)
            except Exception as error:
                slot.release()
                refused = refused or error
            else:
                return slot
        if refused is not None and not is_held:
            raise refused
        if is_first:
            waits()
            is_first = False
        time.sleep(POLL_S)
