"""Sparse files that stand for volumes, and links that stand for attachments.

`volumes/<volume>` is created when a volume is attached for the first time, with the
volume's size. `attachments/<instance>/<volume>` is a hard link to it for as long as the
volume is attached. The simulated machine of the instance serves disks of these links.
"""

import contextlib
import os
import pathlib
import shutil

GIB = 2**30


class Disks:
    """The files of one cloud. state: the state path of a service of that cloud."""

    def __init__(self, state: str) -> None:
        root = pathlib.Path(state).parent.parent / "disks"
        self._volumes = root / "volumes"
        self._attachments = root / "attachments"

    def provide(self, volume_id: str, size_gib: int) -> None:
        """Have a file of the volume's size; what it contains is kept."""
        file = self._volumes / volume_id
        file.parent.mkdir(parents=True, exist_ok=True)
        # A size that the file system cannot hold is a volume that no test mounts.
        with contextlib.suppress(OSError), file.open("ab") as opened:
            if os.fstat(opened.fileno()).st_size < size_gib * GIB:
                opened.truncate(size_gib * GIB)

    def extend(self, volume_id: str, size_gib: int) -> None:
        """Extend the file if there is one."""
        if (self._volumes / volume_id).exists():
            self.provide(volume_id, size_gib)

    def copy(self, source_id: str, volume_id: str, size_gib: int) -> None:
        """Copy the data of a volume, without its holes, into a new one."""
        source = self._volumes / source_id
        if not source.exists():
            return
        self.provide(volume_id, size_gib)
        with source.open("rb") as data, (self._volumes / volume_id).open("r+b") as new:
            start = _seek(data, 0, os.SEEK_DATA)
            while start is not None:
                end = os.lseek(data.fileno(), start, os.SEEK_HOLE)
                while start < end:
                    block = os.pread(data.fileno(), min(end - start, 2**20), start)
                    start += os.pwrite(new.fileno(), block, start)
                start = _seek(data, end, os.SEEK_DATA)

    def delete(self, volume_id: str) -> None:
        """Delete the file."""
        (self._volumes / volume_id).unlink(missing_ok=True)

    def attach(self, instance_id: str, volume_id: str) -> None:
        """Link the volume's file into the instance's folder."""
        link = self._attachments / instance_id / volume_id
        link.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            link.hardlink_to(self._volumes / volume_id)

    def detach(self, instance_id: str, volume_id: str) -> None:
        """Remove the link."""
        (self._attachments / instance_id / volume_id).unlink(missing_ok=True)

    def forget(self, instance_id: str) -> None:
        """Remove all links of an instance that is deleted."""
        shutil.rmtree(self._attachments / instance_id, ignore_errors=True)


def _seek(file, start: int, whence: int) -> "int | None":
    """Return the next offset of data; None behind the last."""
    try:
        return os.lseek(file.fileno(), start, whence)
    except OSError:
        return None


def follow_nova(driver, block_device, disks: Disks) -> None:
    """Have nova keep the links. driver, block_device: classes of nova's.

    A detach is noticed before nova asks the driver, which it does only on a host of
    the process's own name; here several hosts share one process.
    """
    attach, destroy = driver.attach_volume, driver.destroy
    detach = block_device._do_detach

    def attach_volume(self, context, connection_info, instance, *args, **kwargs):
        disks.attach(instance.uuid, connection_info["serial"])
        return attach(self, context, connection_info, instance, *args, **kwargs)

    def detach_volume(self, context, instance, *args, **kwargs):
        disks.detach(instance.uuid, self.volume_id)
        return detach(self, context, instance, *args, **kwargs)

    def destroy_instance(self, context, instance, *args, **kwargs):
        disks.forget(instance.uuid)
        return destroy(self, context, instance, *args, **kwargs)

    driver.attach_volume = attach_volume
    driver.destroy = destroy_instance
    block_device._do_detach = detach_volume
