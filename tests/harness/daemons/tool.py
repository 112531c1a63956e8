"""Runs the operator's tool: its commands in this process, or as a process."""

import dataclasses
import logging
import os
import signal
import subprocess
import sys

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


def mooring(*words: str) -> Said:
    """Run the tool's commands in this process: most rows are about what they print."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    kept = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "COLUMNS": "200"}
    env = {**dict.fromkeys(os.environ), **kept}
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
    path = os.pathsep.join(one for one in sys.path if one)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"], "PYTHONPATH": path}
        | {"COLUMNS": "200"},
        capture_output=True,
        input=typed,
        text=True,
        timeout=600,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)
