"""Places and control planes for tests.

They have ports and folders of their own, so that a user's lab may run beside them. Each
test process holds a slot, see `leases.py`; how many there are depends on the machine.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TypeVar

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.kube import control_plane
from lib.lab.run import processes, progress
from lib.lab.slots import leases

_Value = TypeVar("_Value")
_ERRORS = 40
SECOND = 100
"""Distance from a slot's lab to the second control plane of that slot."""


def shown() -> progress.Progress:
    """Return the progress report of a test run."""
    return progress.Lines(sys.stderr)


def second(lease: leases.Lease, name: str, offset: int = SECOND) -> places.Places:
    """Return places for a second control plane, with its programs built.

    name: of its folder. offset: of its ports from those of the slot.
    """
    apart = lease.apart(name, offset)
    programs.build(apart, [control_plane.GROUP], shown())
    apart.state.mkdir(parents=True)
    return apart


@contextlib.contextmanager
def second_control_plane(lease: leases.Lease, name: str) -> Iterator[places.Places]:
    """Run a second control plane, for tests that break it or read its audit log."""
    place = second(lease, name)
    try:
        control_plane.up(place, shown())
        yield place
    finally:
        processes.stop(place, control_plane.PROGRAMS, patience_s=1)


def errors_logged(where: places.Places) -> list[str]:
    """Return the last errors that the programs of a lab have logged, with their names.

    OpenStack's format, in which each line of a traceback has the level too.
    """
    logged = []
    for log in sorted(where.log.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if " ERROR " in line]
        logged += [f"{log.stem}: {line}" for line in errors[-_ERRORS:]]
    return logged


def by_tier(default: _Value, long: _Value) -> _Value:
    """Return the value for the tier of this process; without Pants, the default one."""
    return long if os.environ.get("MOORING_TIER") == "long" else default
