"""Programs that exit are restarted as by a kubelet; those that were stopped are not."""

import stat
import sys

import pytest

from lib.lab import places
from lib.lab.run import processes, restarting, waiting

QUICK = [sys.executable, "-c", "pass"]
SLEEP = [sys.executable, "-c", "import os; print(os.environ['WORD'], flush=True)"]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture()
def clock() -> Clock:
    return Clock()


def exited(where: places.Places, name: str) -> None:
    waiting.until("it exits", lambda: processes.has_exited(where, name), poll_s=0.01)


def test_restarts_have_the_delays_of_a_kubelet(
    where: places.Places, clock: Clock
) -> None:
    restarts: list[float] = []
    restarter = restarting.Restarter(
        where, ["daemon"], clock, lambda text: restarts.append(clock.now_s)
    )
    processes.start(where, "daemon", QUICK)
    while clock.now_s < 700:
        exited(where, "daemon")
        restarter.check()
        clock.now_s += 5
    print(restarts)
    assert restarts == [0, 10, 30, 70, 150, 310, 610]


def test_a_program_that_ran_well_is_restarted_immediately(
    where: places.Places, clock: Clock
) -> None:
    restarts: list[float] = []
    restarter = restarting.Restarter(
        where, ["daemon"], clock, lambda text: restarts.append(clock.now_s)
    )
    processes.start(where, "daemon", QUICK)
    for now_s in (0, 10, 1000, 1010):
        exited(where, "daemon")
        clock.now_s = now_s
        restarter.check()
    assert restarts == [0, 10, 1000, 1010]


def test_a_stopped_program_stays_stopped(where: places.Places, clock: Clock) -> None:
    restarts: list[str] = []
    restarter = restarting.Restarter(where, ["daemon"], clock, restarts.append)
    restarter.check()
    processes.start(where, "daemon", QUICK)
    exited(where, "daemon")
    processes.stop(where, ["daemon"])
    restarter.check()
    processes.restart(where, "daemon")
    assert restarts == []
    assert processes.find(where, "daemon") is None


def test_a_restarted_program_has_its_command_and_its_variables(
    where: places.Places, clock: Clock
) -> None:
    processes.start(where, "daemon", SLEEP, {"WORD": "said"})
    exited(where, "daemon")
    restarting.Restarter(where, ["daemon"], clock, lambda text: None).check()
    exited(where, "daemon")
    assert processes.tail(where, "daemon") == "said\nsaid"
    mode = (where.run / "daemon.command").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
