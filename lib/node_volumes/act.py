"""Carries out one action: one command, or one system call."""

from lib.kernel.model import Check
from lib.kernel.protocol import Kernel
from lib.node_volumes import lookup
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.model import (
    Action,
    Bind,
    CheckFileSystem,
    ExpandFileSystem,
    MakeDirectory,
    MakeFile,
    MakeFileSystem,
    MountDisk,
    NodeVolume,
    OnPath,
    RemountReadOnly,
    Remove,
    RescanDisk,
    Unmount,
)


def act(kernel: Kernel, action: Action, volume: NodeVolume) -> Check | None:
    """Carry out an action; return what fsck reported, else None.

    Raises:
        KernelError: it failed.
        Failure: the disk to be formatted is not the one that was examined.
    """
    match action:
        case CheckFileSystem(disk):
            return kernel.check_file_system(disk.path)
        case MakeFileSystem():
            _format(kernel, action, volume)
        case MountDisk(disk, target, fs_type, options):
            kernel.mount(disk.path, target, fs_type, options)
        case ExpandFileSystem(disk, target, fs_type):
            kernel.expand(fs_type, disk.path, target)
        case RescanDisk(disk):
            kernel.rescan_disk(disk)
        case _:
            _act_on_path(kernel, action)
    return None


def _act_on_path(kernel: Kernel, action: OnPath) -> None:
    match action:
        case Bind(source, target):
            kernel.bind(source, target)
        case RemountReadOnly(target):
            kernel.remount_read_only(target)
        case Unmount(target):
            kernel.unmount(target)
        case MakeDirectory(path):
            kernel.make_directory(path)
        case MakeFile(path):
            kernel.make_file(path)
        case Remove(path):
            kernel.remove(path)


def _format(kernel: Kernel, action: MakeFileSystem, volume: NodeVolume) -> None:
    """Format the disk, once more sure that it is the volume's."""
    disks = kernel.disks()
    matching = lookup.find(volume.serial, kernel.links("by-id"), disks)
    number = kernel.entry(action.disk.path).number
    if action.disk not in disks or number != action.disk.number:
        text = f"{action.disk.path}: changed after it was examined; not formatted"
        raise CallFailed(FailureReason.UNCERTAIN, text)
    # Nothing matches a disk without a serial that only the cloud's metadata names.
    if matching.matches not in ((), (action.disk.name,)):
        text = f"{action.disk.path}: no longer the disk of the volume; not formatted"
        raise CallFailed(FailureReason.UNCERTAIN, text)
    kernel.make_file_system(action.disk.path, action.fs_type, action.options)
