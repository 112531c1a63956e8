"""What this process has written to disks of late. Safe for several threads.

Nothing depends on it but the number of requests, and which job is asked for: another
process, or a restart, reads everything from the engine.
"""

import collections
import dataclasses
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

FRESH_S = 1.0
"""For which an observation holds for the write that it leads to."""
MOST = 10_000
T = TypeVar("T")


class Recent(Generic[T]):
    """A value for each of some disks; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: collections.OrderedDict[str, T] = collections.OrderedDict()

    def put(self, disk: str, value: T) -> None:
        """Keep a value."""
        with self._lock:
            self._values[disk] = value
            self._values.move_to_end(disk)
            if len(self._values) > MOST:
                self._values.popitem(last=False)

    def get(self, disk: str) -> T | None:
        """Return the value of a disk; None if there is none."""
        with self._lock:
            return self._values.get(disk)

    def pop(self, disk: str) -> T | None:
        """Remove the value of a disk; return it."""
        with self._lock:
            return self._values.pop(disk, None)


@dataclasses.dataclass(frozen=True, slots=True)
class DiskWrite:
    """A write whose job may run. correlation_id: of its request."""

    correlation_id: str
    is_resizing: bool = False


class DiskWrites:
    """Writes by disk, and what was observed right before them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.jobs = Recent[DiskWrite]()
        self.failures = Recent[str]()
        """Why the last resizing failed."""
        self.vms = Recent[str]()
        """VMs to which this process has attached disks."""
        self._absent = Recent[float]()
        self._free = Recent[float]()

    def now(self) -> float:
        """Return the time for observations that begin now."""
        return self._clock()

    def observed_absent(self, disk: str, at: float) -> None:
        """Note that a read that began then showed no such disk."""
        self._absent.put(disk, at)

    def observed_free(self, disk: str, at: float) -> None:
        """Note that a read that began then showed a disk without attachments."""
        self._free.put(disk, at)

    def take_absent(self, disk: str) -> bool:
        """Report whether a disk was absent just now; holds for one write."""
        return self._is_fresh(self._absent.pop(disk))

    def take_free(self, disk: str) -> bool:
        """Report whether a disk was attached to nothing just now; for one write."""
        return self._is_fresh(self._free.pop(disk))

    def _is_fresh(self, at: float | None) -> bool:
        return at is not None and self._clock() - at < FRESH_S

    def attached(self, disk: str, vm: str) -> None:
        """Note that this process has attached a disk."""
        self._free.pop(disk)
        self.vms.put(disk, vm)
