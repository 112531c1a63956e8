import os
import pathlib
import time

import psutil
import pytest

from lib.lab import errors
from lib.lab.artifacts import commands

ENV = {"PATH": "/usr/bin:/bin"}


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_lines_of_both_streams_are_handed_on() -> None:
    """What a command says is shown, wherever it says it."""
    lines: list[str] = []
    commands.run(
        ["sh", "-c", "echo out; echo err >&2"],
        failure="no",
        env=ENV,
        on_line=lines.append,
    )
    assert sorted(lines) == ["err", "out"]


def test_failure_carries_the_end_of_the_output() -> None:
    """The error says what was tried and what the command said last."""
    with pytest.raises(errors.LabError, match=r"cannot sing:\nlost my voice"):
        commands.run(
            ["sh", "-c", "echo lost my voice; exit 3"], failure="cannot sing", env=ENV
        )


def test_missing_command_is_a_lab_error() -> None:
    """A program that is not there is told like any other failure."""
    with pytest.raises(errors.LabError, match="cannot sing"):
        commands.run(["/nowhere/singer"], failure="cannot sing", env=ENV)


def test_interrupt_ends_the_command_and_its_children() -> None:
    """Ctrl-C leaves nothing running, not even what the command has begun."""
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.extend(int(word) for word in line.split())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commands.run(
            ["sh", "-c", "sleep 1000 & echo $$ $!; wait"],
            failure="no",
            env=ENV,
            on_line=interrupt,
        )
    until = time.monotonic() + 5
    while not all(map(gone, pids)) and time.monotonic() < until:
        os.sched_yield()
    assert [gone(pid) for pid in pids] == [True, True]


def test_command_sees_only_the_environment_given(tmp_path: pathlib.Path) -> None:
    """Nothing of our own environment leaks into a build."""
    lines: list[str] = []
    commands.run(
        ["sh", "-c", "pwd; echo ${HOME-none}"],
        failure="no",
        env=ENV,
        cwd=tmp_path,
        on_line=lines.append,
    )
    assert lines == [str(tmp_path), "none"]
