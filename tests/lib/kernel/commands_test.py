"""Commands end, whatever they do, and hold up nothing but their own object."""

import os
import pathlib
import signal
import time

import pytest

from lib.kernel import errors
from lib.kernel.linux import commands

LONG_S = 120.0


@pytest.fixture()
def runner() -> commands.Commands:
    return commands.Commands({"PATH": os.environ.get("PATH", "")})


def test_exit_code_and_output_of_both_streams(runner: commands.Commands) -> None:
    words = ["sh", "-c", "echo one; echo two >&2; exit 3"]
    assert runner.run(words, "disk", LONG_S) == commands.Finished(3, "one\ntwo")
    assert runner.started == 1


def test_only_the_end_of_the_output_is_kept(runner: commands.Commands) -> None:
    words = ["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo end"]
    output = runner.run(words, "disk", LONG_S).output
    assert output.endswith("xend")
    assert len(output) < commands.OUTPUT_BYTES


def test_a_missing_program_is_named(runner: commands.Commands) -> None:
    with pytest.raises(errors.Missing, match="'no-such-program': not found"):
        runner.run(["no-such-program"], "disk", LONG_S)


def test_the_whole_process_group_is_killed(
    runner: commands.Commands, tmp_path: pathlib.Path
) -> None:
    pid = tmp_path / "pid"
    words = ["sh", "-c", f"sleep 600 & echo $! > {pid}; wait"]
    with pytest.raises(errors.TimedOut, match="killed"):
        runner.run(words, "disk", 1.0)
    child = int(pid.read_text())
    deadline = time.monotonic() + LONG_S
    while _is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.split()[0] != "Z"


def test_a_command_that_cannot_be_killed_blocks_its_own_disk_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal is held back: no test can make the kernel hold a process."""
    runner = commands.Commands({}, exit_s=0.1)
    pids: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: pids.append(pid))
    with pytest.raises(errors.Stuck, match="has not exited"):
        runner.run(["sleep", "600"], "bad", 0.1)
    with pytest.raises(errors.Stuck, match="the kernel waits for the disk"):
        runner.run(["true"], "bad", LONG_S)
    assert runner.run(["true"], "good", LONG_S).code == 0
    os.kill(pids[0], signal.SIGKILL)
    os.waitid(os.P_PID, pids[0], os.WEXITED | os.WNOWAIT)
    assert runner.run(["true"], "bad", LONG_S).code == 0
