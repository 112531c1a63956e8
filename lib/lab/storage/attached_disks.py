"""The machine of a server: volumes attached by the cloud become loop devices.

The lab's cloud keeps a folder with a link per attached volume. To be used in a private
mount namespace, see `loop_disks.py`.
"""

import contextlib
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from lib.lab.storage import loop_disks

POLL_S = 0.05
SERIAL = 20
"""Characters of a serial that virtio-blk shows. Source: Linux VIRTIO_BLK_ID_BYTES."""


def virtio(volume_id: str) -> tuple[str, Sequence[str]]:
    """Return serial and links of a volume as virtio-blk and udev name them."""
    return volume_id[:SERIAL], (f"virtio-{volume_id[:SERIAL]}",)


def scsi(serial: str) -> tuple[str, Sequence[str]]:
    """Return serial and links of a volume that is named by its serial, of QEMU's SCSI.

    Source: systemd udev rules, 60-persistent-storage.rules: by-id of SCSI disks.
    """
    return serial, (f"scsi-0QEMU_QEMU_HARDDISK_{serial}",)


def at_once(volume_id: str) -> float:
    """Return no delay."""
    del volume_id
    return 0.0


class AttachedDisks:
    """Keeps the disks of one machine the same as the attachments of its instance.

    delay_s: seconds by which a disk appears after the cloud attached it, for each
    volume. names: serial and links of a volume by its ID.
    failure: what ended `followed` early; None while it works.
    """

    def __init__(
        self,
        attachments: pathlib.Path,
        machine: loop_disks.Machine,
        delay_s: Callable[[str], float] = at_once,
        names: Callable[[str], tuple[str, Sequence[str]]] = virtio,
    ) -> None:
        self._attachments = attachments
        self._names = names
        self._machine = machine
        self._delay_s = delay_s
        self._due: dict[str, float] = {}
        self.disks: dict[str, loop_disks.LoopDisk] = {}
        self.late = 0
        self.failure: BaseException | None = None

    def follow(self) -> None:
        """Plug, pull and extend disks once; late counts those plugged after a delay."""
        links = {link.name: link for link in self._links()}
        for volume_id in [id_ for id_ in self.disks if id_ not in links]:
            self._machine.pull(self.disks.pop(volume_id))
        self._due = {name: due for name, due in self._due.items() if name in links}
        for volume_id, link in links.items():
            if volume_id in self.disks:
                self.disks[volume_id].follow()
            else:
                self._plug(volume_id, link)

    def _links(self) -> list[pathlib.Path]:
        with contextlib.suppress(FileNotFoundError):
            return sorted(self._attachments.iterdir())
        return []

    def _plug(self, volume_id: str, link: pathlib.Path) -> None:
        now = time.monotonic()
        if volume_id not in self._due:
            delay_s = self._delay_s(volume_id)
            self.late += delay_s > 0
            self._due[volume_id] = now + delay_s
        if now < self._due[volume_id]:
            return
        serial, names = self._names(volume_id)
        with contextlib.suppress(FileNotFoundError):
            disk = self._machine.plug_file(link, serial, *names)
            self.disks[volume_id] = disk


@contextlib.contextmanager
def followed(disks: AttachedDisks) -> Iterator[None]:
    """Follow the attachments for as long as the block lasts."""
    stop = threading.Event()

    def run() -> None:
        try:
            while not stop.wait(POLL_S):
                disks.follow()
        except BaseException as error:
            disks.failure = error
            raise

    thread = threading.Thread(target=run, name="attached-disks")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if disks.failure is not None:
        raise disks.failure
