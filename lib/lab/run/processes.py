"""Programs of a lab that outlive the command which starts them.

Rules: a program is known by its pid file, which holds the pid and the time the kernel
says it was started, so that a reused pid is never taken for it, nor killed. Its command
is kept as long as it is meant to run: `stop` removes the command before the process.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from lib.lab import errors, places
from lib.lab.run import offspring, waiting

POLL_S = 0.05


def _pid_file(where: places.Places, name: str) -> pathlib.Path:
    return where.run / f"{name}.pid"


def _command_file(where: places.Places, name: str) -> pathlib.Path:
    return where.run / f"{name}.command"


def _started(pid: int) -> float:
    """Return the start time of a process from the kernel.

    Where it can be had, in ticks since boot: a clock that is set does not move them.

    Source: proc_pid_stat(5), field 22.
    """
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        return float(fields.split()[19])
    except FileNotFoundError:
        return psutil.Process(pid).create_time()


def find(where: places.Places, name: str) -> psutil.Process | None:
    """Return the running process that `start` started as `name`, or None."""
    try:
        mark = json.loads(_pid_file(where, name).read_text())
        process = psutil.Process(mark["pid"])
        if (
            offspring.alive(process)
            and abs(_started(process.pid) - mark["started"]) < 1
        ):
            return process
    except (OSError, ValueError, KeyError, psutil.Error):
        pass
    return None


def names(where: places.Places) -> tuple[str, ...]:
    """Name every program that has a pid file, oldest first."""
    files = sorted(where.run.glob("*.pid"), key=lambda file: file.stat().st_mtime)
    return tuple(file.stem for file in files)


def start(
    where: places.Places,
    name: str,
    arguments: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str] | None = None,
) -> None:
    """Start `arguments` detached, unless it runs already; its output goes to a log.

    env: added to the caller's own environment.
    """
    if find(where, name) is not None:
        return
    where.run.mkdir(parents=True, exist_ok=True)
    where.log.mkdir(parents=True, exist_ok=True)
    with (where.log / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Not the caller's: a lab outlives the folder that a test ran in, and
            # without one os.getcwd fails.
            cwd=where.state,
            env={**os.environ, **(env or {})},
        )
    mark = {"pid": child.pid, "started": _started(child.pid)}
    _write(_pid_file(where, name), mark)
    words = [os.fspath(argument) for argument in arguments]
    _write(_command_file(where, name), {"arguments": words, "env": dict(env or {})})


def _write(file: pathlib.Path, content: object) -> None:
    """Replace a file that only its owner may read: variables may hold a password."""
    part = file.with_name(f".{file.name}.new")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(content, out)
    part.replace(file)


def has_exited(where: places.Places, name: str) -> bool:
    """Report whether a program ended that was started and not stopped."""
    return _command_file(where, name).exists() and find(where, name) is None


def restart(where: places.Places, name: str) -> None:
    """Start a program that has exited as it was started; nothing if it was stopped."""
    with contextlib.suppress(FileNotFoundError):
        command = json.loads(_command_file(where, name).read_text())
        start(where, name, command["arguments"], command["env"])


def stop(
    where: places.Places, program_names: Sequence[str], patience_s: float = 10
) -> None:
    """End the programs named, in parallel; those alive in the end are killed."""
    for name in program_names:
        _command_file(where, name).unlink(missing_ok=True)
    known = {name: find(where, name) for name in program_names}
    running = [process for process in known.values() if process is not None]
    for process in running:
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
    stubborn = _wait_gone(running, patience_s)
    for process in stubborn:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _wait_gone(stubborn, 5)
    for name in program_names:
        _pid_file(where, name).unlink(missing_ok=True)


def _wait_gone(
    ending: Sequence[psutil.Process], timeout_s: float
) -> Sequence[psutil.Process]:
    """Wait until programs have ended; return those that have not.

    A zombie has ended: where process 1 does not reap, it stays one for long.
    """
    end = time.monotonic() + timeout_s
    while left := [process for process in ending if offspring.alive(process)]:
        if time.monotonic() > end:
            return left
        time.sleep(POLL_S)
    for process in ending:
        with contextlib.suppress(psutil.Error):
            process.wait(0)  # one that is our own child is a zombie no more
    return ()


def tail(where: places.Places, name: str, lines: int = 5) -> str:
    """Return the end of a program's log."""
    with contextlib.suppress(OSError):
        text = (where.log / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])
    return ""


def wait_for(
    where: places.Places,
    name: str,
    ready: Callable[[], bool],
    poll_s: float = POLL_S,
) -> None:
    """Wait until `ready` returns True.

    Raises:
        LabError: the program exited, or was not ready in time.
    """
    log = where.log / f"{name}.log"

    def is_ready() -> bool:
        if ready():
            return True
        if find(where, name) is None:
            raise errors.LabError(
                f"{name} ended by itself; the end of its log:\n{tail(where, name)}",
                log,
            )
        return False

    try:
        waiting.until(f"{name} is ready; see {log}", is_ready, poll_s=poll_s)
    except errors.LabError as error:
        raise errors.LabError(str(error), error.log or log) from error
