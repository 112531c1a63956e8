"""What a lab has been started with, kept between commands."""

import fcntl
import json
import os
import pathlib
from collections.abc import Callable

import msgspec

from lib.lab import errors, places
from lib.lab.grounds import grounds, servers

NAMES = ("mooring-lab-1", "mooring-lab-2", "mooring-lab-3")
NODE = "mooring-lab-node"
"""The real kubelet's Node, and the server that passes for its machine."""


class Record(msgspec.Struct, frozen=True):
    """One lab's parts.

    kubeconfig: of an existing cluster, empty for our own. provider: whose cloud it is;
    empty in records of earlier versions, which knew one. existing_cloud: its name in
    `existing_file` (empty: the usual place); empty for our own.
    names: of our servers with simulated Nodes. booted: ids of servers we created in an
    existing cloud. created: API paths of our objects in an existing cluster.
    node: a real kubelet runs too. components: names of our daemons that run; None: all
    that this lab supports. charts: they run in pods of that node. images: folder with
    the archives of their images.
    """

    kubeconfig: str = ""
    provider: str = ""
    existing_cloud: str = msgspec.field(default="", name="os_cloud")
    existing_file: str = msgspec.field(default="", name="clouds_file")
    kind: servers.Kind = servers.Kind()
    names: tuple[str, ...] = NAMES
    booted: tuple[str, ...] = ()
    created: tuple[str, ...] = msgspec.field(default=(), name="made")
    node: bool = False
    components: tuple[str, ...] | None = None
    charts: bool = False
    images: str = ""

    @property
    def existing(self) -> grounds.Existing:
        """The cloud that is there already; `grounds.OWN` for the lab's own."""
        return grounds.Existing(self.existing_cloud, self.existing_file)

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of all servers: of simulated Nodes, and of the real one."""
        return (*self.names, NODE) if self.node else self.names


def _file(where: places.Places) -> pathlib.Path:
    return where.state / "lab.json"


def read(where: places.Places) -> Record | None:
    """Return the record; None when no lab was ever started here.

    Raises:
        LabError: the file is no record.
    """
    try:
        return msgspec.json.decode(_file(where).read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise errors.LabError(
            f"{_file(where)} is invalid ({error}); `mooring lab down --wipe` removes it"
        ) from error


def write(where: places.Places, record: Record) -> None:
    """Keep the record."""
    where.state.mkdir(parents=True, exist_ok=True)
    part = _file(where).with_suffix(".new")
    part.write_bytes(json.dumps(msgspec.to_builtins(record), indent=1).encode())
    os.replace(part, _file(where))


def update(where: places.Places, change: Callable[[Record], Record]) -> None:
    """Read, change and write the record under a lock."""
    where.state.mkdir(parents=True, exist_ok=True)
    with (where.state / "lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(where, change(read(where) or Record()))


def forget(where: places.Places) -> None:
    """Remove the record."""
    _file(where).unlink(missing_ok=True)
