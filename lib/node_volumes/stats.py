"""Usage and condition of a volume on its node; no child process."""

import dataclasses

from lib.kernel import errors
from lib.kernel.model import Disk, EntryKind, Mount, Usage, top_mount
from lib.kernel.protocol import Kernel
from lib.node_volumes.call_failures import CallFailed, FailureReason, from_kernel
from lib.node_volumes.observe import with_disk


@dataclasses.dataclass(frozen=True, slots=True)
class Stats:
    """Usage and condition of a volume.

    usage: of its file system, None for a raw block volume or when it cannot be read.
    size_bytes: of a raw block volume. problem: empty for a volume in good condition.
    """

    usage: Usage | None = None
    size_bytes: int | None = None
    problem: str = ""


def read(kernel: Kernel, volume_id: str, path: str) -> Stats:
    """Return usage and condition. path: where the volume is staged or published.

    Raises:
        Failure: NOT_FOUND, the path is absent; or the kernel cannot be read.
    """
    try:
        return _read(kernel, volume_id, kernel.resolve(path))
    except errors.KernelError as error:
        message = f'volume "{volume_id}": {error}'
        raise from_kernel(error, False, message) from error


def _read(kernel: Kernel, volume_id: str, path: str) -> Stats:
    entry = kernel.entry(path)
    if entry.kind is EntryKind.ABSENT:
        text = f'volume_path: invalid value "{path}": volume "{volume_id}" is not there'
        raise CallFailed(FailureReason.NOT_FOUND, text)
    mount = top_mount(kernel.mounts(), path)
    if mount is None:
        return Stats(problem=f"not mounted at {path}")
    is_block = entry.kind is EntryKind.BLOCK
    number = entry.number if is_block else with_disk(kernel, mount).number
    disks = kernel.disks(has_serials=False)
    disk = next((disk for disk in disks if disk.number == number), None)
    if disk is None:
        return Stats(problem=f"the disk below {path} disappeared")
    if is_block:
        return Stats(size_bytes=disk.size_bytes)
    return _of_file_system(kernel, mount, disk)


def _of_file_system(kernel: Kernel, mount: Mount, disk: Disk) -> Stats:
    shut_down = f"the file system of {disk.path} has shut down"
    try:
        usage = kernel.usage(mount.target)
    except errors.BadDisk:
        return Stats(problem=shut_down)
    if mount.super_options & {"shutdown", "emergency_ro"}:
        return Stats(usage, problem=shut_down)
    if "ro" in mount.super_options and not mount.is_read_only:
        return Stats(usage, problem=f"the file system of {disk.path} became read-only")
    return Stats(usage)
