"""The simulated engine of a lab: one process, started, stopped and asked."""

import pathlib
import sys
from collections.abc import Mapping

from lib.lab import places
from lib.lab.run import ports, processes, progress
from lib.lab.zvirt import control, server

PROGRAM = "zvirt-engine"
PORT = places.cloud_ports([PROGRAM])[PROGRAM]


def folder(where: places.Places) -> pathlib.Path:
    """Return the folder of the engine's state."""
    return where.state / "zvirt"


def socket_file(where: places.Places) -> pathlib.Path:
    """Return the control socket of the engine."""
    return folder(where) / server.CONTROL


def url(where: places.Places) -> str:
    """Return the URL of the engine's API."""
    return f"https://{ports.LOOPBACK}:{where.port(PORT)}/ovirt-engine/api"


def up(where: places.Places, shown: progress.Progress) -> None:
    """Start the engine, and wait until it answers; it may run already.

    Raises:
        LabError: its port is taken, or it did not start.
    """
    with shown.step("Start the zVirt engine"):
        if processes.find(where, PROGRAM) is None:
            ports.require(where, [(PROGRAM, PORT)])
        state = folder(where)
        state.mkdir(parents=True, exist_ok=True)
        code = f"from {server.__name__} import main; main()"
        words = (
            *(sys.executable, "-c", code),
            f"--folder={state}",
            f"--port={where.port(PORT)}",
        )
        env = {"PYTHONPATH": ":".join(part for part in sys.path if part)}
        processes.start(where, PROGRAM, words, env)
        processes.wait_for(where, PROGRAM, lambda: answers(where))


def down(where: places.Places) -> None:
    """Stop the engine; its objects are kept."""
    processes.stop(where, [PROGRAM])


def counts(where: places.Places) -> Mapping[str, int]:
    """Return the number of requests by kind; empty while the engine does not run."""
    if not answers(where):
        return {}
    counted: Mapping[str, int] = control.ask(socket_file(where), do="counts")
    return counted


def answers(where: places.Places) -> bool:
    """Report whether the engine answers."""
    return control.is_answered(socket_file(where))
