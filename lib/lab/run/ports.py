"""Whether the lab's ports are free, and the programs that use those which are not."""

import contextlib
import socket
from collections.abc import Iterable

import psutil

from lib.lab import errors, places
from lib.lab.run import processes

LOOPBACK = "127.0.0.1"


def free(port: int) -> bool:
    """Report whether a server could listen on this port of the loopback address."""
    with socket.socket() as probe:
        # As servers do: what lingers of a closed connection is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def holder(port: int) -> str:
    """Return the process that listens on a port: "nginx (pid 12)", if readable."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            at = connection.laddr
            if at and at.port == port and connection.pid is not None:
                name = psutil.Process(connection.pid).name()
                return f"{name} (pid {connection.pid})"
    return "a program that may not be read"


def require(where: places.Places, required: Iterable[tuple[str, str]]) -> None:
    """Make sure that programs which do not run yet will find their ports free.

    required: pairs of a program and the name of one port it listens on.

    Raises:
        LabError: one is taken; names every such port and the program that uses it.
    """
    taken = [
        f"port {where.port(name)}, meant for {program}, is held by"
        f" {holder(where.port(name))}"
        for program, name in required
        if processes.find(where, program) is None and not free(where.port(name))
    ]
    if taken:
        raise errors.LabError(
            f"{'; '.join(taken)}: end it, or give the lab other ports with"
            " MOORING_LAB_PORT_BASE"
        )
