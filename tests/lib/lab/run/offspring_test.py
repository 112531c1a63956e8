"""Ctrl-C: what a start began is ended, what ran before is not."""

import pathlib
import subprocess
import threading

import psutil
import pytest

from lib.lab import errors, places
from lib.lab.run import checkpoint, offspring, processes, steps

SLEEP = ["sleep", "60"]


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    return places.Places(tmp_path / "cache", tmp_path / "state", 21900)


def test_halt_ends_what_was_started_since_and_nothing_else(
    where: places.Places,
) -> None:
    """A program of an earlier start goes on; new ones end and leave no pid file."""
    processes.start(where, "old", SLEEP)
    before = checkpoint.take(where)
    processes.start(where, "new", SLEEP)
    before.halt()
    old = processes.find(where, "old")
    try:
        assert old is not None
        assert processes.names(where) == ("old",)
        assert processes.find(where, "new") is None
    finally:
        processes.stop(where, ["old"])


def test_halt_ends_builds_in_child_processes(where: places.Places) -> None:
    """Also a child's child that a shell has begun is ended."""
    before = checkpoint.take(where)
    build = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
    while len(psutil.Process(build.pid).children()) < 1:
        pass
    inner = psutil.Process(build.pid).children()[0]
    before.halt()
    assert not offspring.alive(inner)
    # A shell whose job was killed may still end by itself, and then with any status.
    build.wait(10)


def test_halt_does_not_take_a_killed_build_s_status_away(where: places.Places) -> None:
    """The thread that runs a build learns that it was killed, not that it succeeded."""
    before = checkpoint.take(where)
    began = threading.Event()

    def build() -> None:
        with subprocess.Popen(SLEEP) as child:
            began.set()
            if child.wait() != 0:
                raise errors.LabError("build failed")

    def press() -> None:
        assert began.wait(10)
        raise KeyboardInterrupt

    reported: list[BaseException] = []

    def watched() -> None:
        try:
            build()
        except errors.LabError as error:
            reported.append(error)
            raise

    plan = [steps.StartStep("build", watched), steps.StartStep("ctrl-c", press)]
    with pytest.raises(KeyboardInterrupt):
        steps.run(plan, before.halt)
    assert [str(error) for error in reported] == ["build failed"]


def test_a_deaf_program_is_killed(where: places.Places) -> None:
    """Ignoring SIGTERM does not help."""
    before = offspring.seen()
    child = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        offspring.end(before, patience_s=0.2)
        assert child.wait(10) == -9
