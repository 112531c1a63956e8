"""The data of a parent's disks: one file each, and links for those that are attached.

Layout, below the parent's folder: disks/UID is the data of a disk, as large as its
capacity; machines/HOSTNAME/SERIAL links to the data of each disk that is attached to
the VM with this hostname label. Who plays the machine makes a loop device of each link,
see `lib/lab/storage/attached_disks.py`.
"""

import contextlib
import pathlib
from collections.abc import Mapping

from lib.lab.dvp import disks, quantities
from lib.lab.dvp.kinds import DISKS, MACHINES, World

HOSTNAME = "dvp.deckhouse.io/hostname"
_ALIVE = ("Running", "Migrating")


def sizes(world: World) -> Mapping[str, int]:
    """Return the bytes of each disk that has a capacity, by its UID."""
    return {
        disk.uid: quantities.parse(disk.status["capacity"])
        for disk in world.of(DISKS).values()
        if disk.status.get("capacity")
    }


def attached(world: World) -> Mapping[str, Mapping[str, str]]:
    """Return the UID of each attached disk, by the VM's hostname and by its serial."""
    shown: dict[str, dict[str, str]] = {}
    for vm in world.of(MACHINES).values():
        if vm.phase not in _ALIVE:
            continue
        serials = shown.setdefault(vm.metadata.labels.get(HOSTNAME, vm.name), {})
        for row in vm.status.get("blockDeviceRefs", ()):
            disk = world.get(DISKS, vm.namespace, row["name"])
            if row["kind"] == DISKS.kind and disk and disk.status.get("capacity"):
                serials[disks.serial(disk.uid)] = disk.uid
    return shown


class Backing:
    """Keeps the files of a parent's disks; for one thread."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._disks = folder / "disks"
        self._machines = folder / "machines"
        for each in (self._disks, self._machines):
            each.mkdir(parents=True, exist_ok=True)
        self._before: tuple[object, object] = ({}, {})

    def follow(self, world: World) -> None:
        """Create and delete files and links to match the parent's objects."""
        desired, links = sizes(world), attached(world)
        if (desired, links) == self._before:
            return
        for uid, size_bytes in desired.items():
            self._grow(uid, size_bytes)
        for machine in {*links, *(each.name for each in self._machines.iterdir())}:
            self._link(machine, links.get(machine, {}))
        for file in self._disks.iterdir():
            if file.name not in desired:
                file.unlink()
        self._before = desired, links

    def _grow(self, uid: str, size_bytes: int) -> None:
        file = self._disks / uid
        if not file.exists() or file.stat().st_size != size_bytes:
            with file.open("ab") as opened:
                opened.truncate(size_bytes)

    def _link(self, machine: str, serials: Mapping[str, str]) -> None:
        folder = self._machines / machine
        folder.mkdir(exist_ok=True)
        for link in folder.iterdir():
            if link.name not in serials:
                link.unlink()
        for serial, uid in serials.items():
            with contextlib.suppress(FileExistsError):
                (folder / serial).symlink_to(self._disks / uid)
