"""Files for the disks that a VM of an engine has plugged, as a hypervisor has them."""

import contextlib
import pathlib
import threading
from collections.abc import Iterator

from lib.lab.storage import attached_disks
from lib.lab.zvirt.service import Service


class EngineFiles:
    """Keeps a folder with a link per plugged disk, and files that outlive links."""

    def __init__(self, service: Service, vm: str, folder: pathlib.Path) -> None:
        self._engine = service.engine
        self._vm = vm
        self._files = folder / "files"
        self.links = folder / "plugged"
        self._files.mkdir(parents=True)
        self.links.mkdir()

    def follow(self) -> None:
        """Create, enlarge and remove files and links once."""
        with self._engine.lock:
            sizes = {
                row.key: int(row.entity.provisioned_size)
                for row in self._engine.records.all("disk")
                if row.entity.status.value == "ok"
            }
            known = {row.key for row in self._engine.records.all("disk")}
            plugged = {
                row.entity.id
                for row in self._engine.within("disk_attachment", self._vm)
                if row.entity.active and not row.entity.bootable
            }
        for link in list(self.links.iterdir()):
            if link.name not in plugged:
                link.unlink()
        for file in list(self._files.iterdir()):
            if file.name not in known:
                file.unlink()
        for disk in plugged & sizes.keys():
            self._plug(disk, sizes[disk])

    def _plug(self, disk: str, size: int) -> None:
        file = self._files / disk
        if not file.exists() or file.stat().st_size != size:
            with file.open("ab") as opened:
                opened.truncate(size)
        link = self.links / disk
        if not link.is_symlink():
            link.symlink_to(file)


@contextlib.contextmanager
def followed(files: EngineFiles) -> Iterator[None]:
    """Follow the engine for as long as the block lasts."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(attached_disks.POLL_S):
            files.follow()

    thread = threading.Thread(target=run, name="engine-files")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
