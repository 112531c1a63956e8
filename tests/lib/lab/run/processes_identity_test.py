import json
import pathlib
import subprocess
import sys

import psutil
import pytest

from lib.lab import places
from lib.lab.run import offspring, processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_started_program_is_found_and_ended(where: places.Places) -> None:
    """A program is known by its name until it is stopped."""
    processes.start(where, "etcd", SLEEP)
    process = processes.find(where, "etcd")
    assert process is not None
    processes.stop(where, ["etcd"])
    assert processes.find(where, "etcd") is None
    assert not offspring.alive(process)


def test_reused_pid_is_neither_found_nor_ended(where: places.Places) -> None:
    """Another program that got the pid of one of ours is left alone."""
    with subprocess.Popen(SLEEP) as stranger:
        try:
            mark = {"pid": stranger.pid, "started": 1.0}
            where.run.mkdir(parents=True)
            (where.run / "etcd.pid").write_text(json.dumps(mark))
            assert processes.find(where, "etcd") is None
            processes.stop(where, ["etcd"])
            assert psutil.Process(stranger.pid).status() != psutil.STATUS_ZOMBIE
        finally:
            stranger.kill()


def test_running_program_is_not_started_twice(where: places.Places) -> None:
    """Starting again what runs changes nothing."""
    processes.start(where, "etcd", SLEEP)
    try:
        first = processes.find(where, "etcd")
        processes.start(where, "etcd", SLEEP)
        assert processes.find(where, "etcd") == first
    finally:
        processes.stop(where, ["etcd"])


def test_a_program_outlives_the_folder_of_its_caller(
    where: places.Places, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab that stays up serves tests of other, already deleted, sandboxes."""
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    monkeypatch.chdir(sandbox)
    processes.start(where, "etcd", SLEEP)
    try:
        process = processes.find(where, "etcd")
        assert process is not None
        assert psutil.Process(process.pid).cwd() == str(where.state.resolve())
    finally:
        processes.stop(where, ["etcd"])
