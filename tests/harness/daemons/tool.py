"""Runs the operator's tool: its commands in this process, or as a process."""

import contextlib
import dataclasses
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import structlog
from click import testing

from mooring.commands import main

RUN = "import sys; from mooring.commands import main; main.main()"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclasses.dataclass(frozen=True)
class Said:
    """What one run of the tool printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def mooring(*words: str, variables: Mapping[str, str] | None = None) -> Said:
    """Run the tool's commands in this process: most rows are about what they print.

    variables: of the environment, beside the usual ones.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    kept = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "COLUMNS": "200"}
    env = {**dict.fromkeys(os.environ), **kept, **(variables or {})}
    try:
        done = testing.CliRunner().invoke(
            main.commands, words, env=env, prog_name="mooring"
        )
    finally:
        root.handlers[:], root.level = before
        logging.captureWarnings(False)
        structlog.reset_defaults()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Said(done.exit_code, done.stdout, done.stderr)


def mooring_process(*words: str, typed: str = "") -> Said:
    """Run the tool as its user does, as a process of its own. typed: its input."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env=_environment(),
        capture_output=True,
        input=typed,
        text=True,
        timeout=900,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


def _environment() -> dict[str, str]:
    path = os.pathsep.join(folder for folder in sys.path if folder)
    kept = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "PYTHONPATH": path}
    return {**kept, "COLUMNS": "200"}


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run the tool as a process beside the block; it ends with the block."""
    command = [sys.executable, "-c", RUN, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=_environment(), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupted(process: "subprocess.Popen[str]") -> Said:
    """Press Ctrl-C; return what the process printed, once it has ended."""
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=900)
    assert "Traceback" not in stderr, stderr
    return Said(process.returncode, stdout, stderr)
