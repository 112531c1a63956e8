"""The fake kernel answers as Linux does: one suite for both.

Linux: loop devices and mounts in a namespace of this process.
"""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Protocol

import pytest

from lib.kernel import errors
from lib.kernel.fake import kernel as fake_kernel
from lib.kernel.linux import commands
from lib.kernel.linux import kernel as linux_kernel
from lib.kernel.model import (
    BLANK,
    Check,
    Content,
    ContentKind,
    Disk,
    EntryKind,
    Mount,
    top_mount,
)
from lib.kernel.protocol import Kernel
from lib.lab.storage import loop_disks

MIB = 2**20
SIZE = 320 * MIB
"""The least that mkfs.xfs formats is 300 MiB."""
GROWN = 448 * MIB
SERIAL = "11111111-2222-3333-4444-555555555555"
KINDS = ("ext3", "ext4", "xfs", "btrfs")


class Ground(Protocol):
    """A machine, and hands to change it. folder: for mounts."""

    kernel: Kernel
    folder: str

    def plug(self, serial: str, size_bytes: int, *links: str) -> Disk: ...

    def clone(self, disk: Disk, serial: str) -> Disk: ...

    def grow(self, disk: Disk, size_bytes: int) -> None: ...

    def unplug(self, disk: Disk) -> None: ...

    def interrupt(self, disk: Disk, fs_type: str) -> None:
        """Leave the disk as mkfs does that is killed before its end."""
        ...

    def partition(self, disk: Disk) -> None: ...


class Fake:
    folder = "/kubelet"

    def __init__(self) -> None:
        self.machine = fake_kernel.FakeKernel()
        self.machine.make_directory(self.folder)
        self.kernel: Kernel = self.machine

    def plug(self, serial: str, size_bytes: int, *links: str) -> Disk:
        name = f"vd{'bcdefg'[len(self.machine.machine_disks)]}"
        disk = self.machine.plug(name, serial, size_bytes)
        disk.links = tuple(("by-id", link) for link in links)
        return disk.disk

    def _known(self, disk: Disk) -> fake_kernel.FakeDisk:
        known = self.machine.machine_disks
        return next(k for k in known if k.disk.name == disk.name)

    def clone(self, disk: Disk, serial: str) -> Disk:
        original = self._known(disk)
        copy = self.plug(serial, disk.size_bytes)
        self._known(copy).content = original.content
        self._known(copy).uuid = original.uuid
        return copy

    def grow(self, disk: Disk, size_bytes: int) -> None:
        self.machine.sizes[disk.name] = size_bytes
        self.machine.rescan_disk(disk)

    def unplug(self, disk: Disk) -> None:
        self.machine.unplug(self._known(disk))

    def interrupt(self, disk: Disk, fs_type: str) -> None:
        self._known(disk).content = Content(ContentKind.INTERRUPTED, fs_type)

    def partition(self, disk: Disk) -> None:
        self._known(disk).content = Content(ContentKind.OTHER, "gpt")


class Linux:
    def __init__(self, machine: loop_disks.Machine, env: Mapping[str, str]) -> None:
        self.machine = machine
        self.folder = str(machine.kubelet)
        self.runner = commands.Commands(env)
        self.kernel: Kernel = linux_kernel.LinuxKernel(
            self.runner, machine.dev, machine.sys
        )
        self._loops: dict[str, loop_disks.LoopDisk] = {}

    def plug(self, serial: str, size_bytes: int, *links: str) -> Disk:
        loop = self.machine.plug(serial, size_bytes, *links)
        self._loops[loop.name] = loop
        return next(d for d in self.kernel.disks() if d.name == loop.name)

    def clone(self, disk: Disk, serial: str) -> Disk:
        copy = self.plug(serial, disk.size_bytes)
        source, target = self._loops[disk.name], self._loops[copy.name]
        for offset in range(0, disk.size_bytes, 4 * MIB):
            data = source.read(offset, 4 * MIB)
            if data.strip(b"\0"):
                target.write(offset, data)
        return copy

    def grow(self, disk: Disk, size_bytes: int) -> None:
        self._loops[disk.name].grow(size_bytes)

    def unplug(self, disk: Disk) -> None:
        self.machine.unplug(self._loops[disk.name])

    def interrupt(self, disk: Disk, fs_type: str) -> None:
        """Undo the last write of mkfs, which makes the superblock valid."""
        self.kernel.make_file_system(disk.path, fs_type, ())
        offset, data = {"xfs": (126, b"\1"), "btrfs": (0x10040, b"!BHRfS_M")}[fs_type]
        self._loops[disk.name].write(offset, data)

    def partition(self, disk: Disk) -> None:
        self._loops[disk.name].write(512, b"EFI PART")


@pytest.fixture(params=["fake", "linux"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "fake":
        yield Fake()
        return
    env = request.getfixturevalue("tools")
    machine = request.getfixturevalue("machine")
    yield Linux(machine, env)


def folder_in(ground: Ground, name: str) -> str:
    path = f"{ground.folder}/{name}"
    ground.kernel.make_directory(path)
    return path


def mounted(ground: Ground, fs_type: str, name: str = "stage") -> tuple[Disk, str]:
    """Format a disk and mount it."""
    disk = ground.plug(SERIAL, SIZE)
    target = folder_in(ground, name)
    ground.kernel.make_file_system(disk.path, fs_type, ())
    ground.kernel.mount(disk.path, target, fs_type, ())
    return disk, target


def mount_at(ground: Ground, target: str) -> Mount:
    mount = top_mount(ground.kernel.mounts(), target)
    assert mount is not None
    return mount


def test_a_disk_shows_serial_size_number_and_links(ground: Ground) -> None:
    disk = ground.plug(SERIAL, SIZE, "virtio-11111111-2222-3333-4")
    assert disk in ground.kernel.disks()
    assert (disk.serial, disk.size_bytes) == (SERIAL, SIZE)
    assert ground.kernel.entry(disk.path).kind is EntryKind.BLOCK
    assert ground.kernel.entry(disk.path).number == disk.number
    (link,) = ground.kernel.links("by-id")
    assert (link.name, link.number) == ("virtio-11111111-2222-3333-4", disk.number)
    assert ground.kernel.links("by-path") == ()
    ground.unplug(disk)
    assert disk not in ground.kernel.disks()
    assert ground.kernel.links("by-id") == ()
    assert ground.kernel.entry(disk.path).kind is EntryKind.ABSENT
    with pytest.raises(errors.NotFound):
        ground.kernel.probe(disk.path)


@pytest.mark.parametrize("fs_type", KINDS)
def test_a_file_system_is_made_found_mounted_and_expanded(
    ground: Ground, fs_type: str
) -> None:
    kernel = ground.kernel
    disk = ground.plug(SERIAL, SIZE)
    assert kernel.probe(disk.path) == BLANK
    kernel.make_file_system(disk.path, fs_type, ())
    content = kernel.probe(disk.path)
    assert (content.kind, content.type) == (ContentKind.FILE_SYSTEM, fs_type)
    assert content.size_bytes == SIZE
    if fs_type.startswith("ext"):
        assert kernel.check_file_system(disk.path) is Check.CLEAN
    target = folder_in(ground, "stage")
    kernel.mount(disk.path, target, fs_type, ("noatime",))
    mount = mount_at(ground, target)
    assert (mount.fs_type, mount.root, mount.is_read_only) == (fs_type, "/", False)
    assert "noatime" in mount.options
    if fs_type == "btrfs":
        assert mount.source == disk.path
    else:
        assert mount.number == disk.number
    with pytest.raises(errors.Busy):
        kernel.probe(disk.path)
    assert kernel.file_system_size(mount, disk.path) == SIZE
    usage = kernel.usage(target)
    assert SIZE // 2 < usage.total_bytes <= SIZE
    assert 0 <= usage.used_bytes < usage.total_bytes // 2
    assert (usage.total_inodes > 0) == (fs_type != "btrfs")
    if fs_type.startswith("ext"):
        return  # needs CAP_SYS_RESOURCE: see the test below
    ground.grow(disk, GROWN)
    assert kernel.file_system_size(mount, disk.path) == SIZE
    kernel.expand(fs_type, disk.path, target)
    assert kernel.file_system_size(mount, disk.path) == GROWN
    assert kernel.usage(target).total_bytes > usage.total_bytes


@pytest.mark.parametrize("fs_type", KINDS)
def test_what_was_unmounted_needs_no_recovery(ground: Ground, fs_type: str) -> None:
    """tests/lab/node/readers_test.py has what does."""
    kernel = ground.kernel
    disk = ground.plug(SERIAL, SIZE)
    kernel.make_file_system(disk.path, fs_type, ())
    assert not kernel.needs_recovery(disk.path)
    stage = folder_in(ground, "stage")
    kernel.mount(disk.path, stage, fs_type, ())
    kernel.unmount(stage)
    assert not kernel.needs_recovery(disk.path)


@pytest.mark.parametrize("fs_type", ["xfs", "btrfs"])
def test_an_interrupted_mkfs_is_recognised_and_completed(
    ground: Ground, fs_type: str
) -> None:
    disk = ground.plug(SERIAL, SIZE)
    ground.interrupt(disk, fs_type)
    content = ground.kernel.probe(disk.path)
    assert content == Content(ContentKind.INTERRUPTED, fs_type)
    target = folder_in(ground, "stage")
    with pytest.raises(errors.Failed):
        ground.kernel.mount(disk.path, target, fs_type, ())
    ground.kernel.make_file_system(disk.path, fs_type, ())
    assert ground.kernel.probe(disk.path).kind is ContentKind.FILE_SYSTEM


def test_a_partition_table_is_content(ground: Ground) -> None:
    disk = ground.plug(SERIAL, SIZE)
    ground.partition(disk)
    assert ground.kernel.probe(disk.path) == Content(ContentKind.OTHER, "gpt")


def test_a_clone_of_xfs_mounts_beside_its_source_with_nouuid(ground: Ground) -> None:
    kernel = ground.kernel
    disk = ground.plug(SERIAL, SIZE)
    kernel.make_file_system(disk.path, "xfs", ())
    copy = ground.clone(disk, "another")
    kernel.mount(disk.path, folder_in(ground, "one"), "xfs", ())
    second = folder_in(ground, "two")
    with pytest.raises(errors.Failed):
        kernel.mount(copy.path, second, "xfs", ())
    kernel.mount(copy.path, second, "xfs", ("nouuid",))
    assert mount_at(ground, second).number == copy.number


FLAGS = (
    ("rw", ()),
    ("ro", ("ro",)),
    ("nosuid, nodev and noexec", ("nosuid", "nodev", "noexec")),
    ("noatime, read-only", ("noatime", "ro")),
    ("ro and noload", ("ro", "noload")),
)
COMPARED = {"ro", "rw", "nosuid", "nodev", "noexec", "noatime"}


@pytest.mark.parametrize(("name", "options"), FLAGS, ids=[name for name, _ in FLAGS])
def test_a_bind_mount_has_the_flags_of_its_source(
    ground: Ground, name: str, options: tuple[str, ...]
) -> None:
    """And keeps them when it is remounted read-only; its source keeps its own."""
    kernel = ground.kernel
    disk = ground.plug(SERIAL, SIZE)
    kernel.make_file_system(disk.path, "ext4", ())
    stage, target = folder_in(ground, "stage"), folder_in(ground, "target")
    kernel.mount(disk.path, stage, "ext4", options)
    expected = set(options) & COMPARED | ({"ro"} if "ro" in options else {"rw"})
    kernel.bind(stage, target)
    for path in (stage, target):
        assert mount_at(ground, path).options & COMPARED == expected
    shown = mount_at(ground, target)
    assert (shown.number, shown.root) == (disk.number, "/")
    kernel.remount_read_only(target)
    read_only = expected - {"rw"} | {"ro"}
    assert mount_at(ground, target).options & COMPARED == read_only
    assert mount_at(ground, stage).options & COMPARED == expected


def test_a_device_file_is_bound_to_a_file(ground: Ground) -> None:
    kernel = ground.kernel
    disk = ground.plug(SERIAL, SIZE)
    target = f"{ground.folder}/block"
    with pytest.raises(errors.Failed):
        kernel.bind(disk.path, target)
    kernel.make_file(target)
    kernel.make_file(target)
    kernel.bind(disk.path, target)
    assert kernel.entry(target).number == disk.number
    assert mount_at(ground, target).root.endswith(f"/{disk.name}")
    kernel.unmount(target)
    assert kernel.entry(target).kind is EntryKind.FILE
    kernel.remove(target)
    assert kernel.entry(target).kind is EntryKind.ABSENT
    kernel.remove(target)


def test_mounts_at_one_target_lie_on_each_other(ground: Ground) -> None:
    kernel = ground.kernel
    _, stage = mounted(ground, "ext4")
    target = folder_in(ground, "target")
    kernel.bind(stage, target)
    kernel.bind(stage, target)
    kernel.remount_read_only(target)
    assert mount_at(ground, target).is_read_only
    kernel.unmount(target)
    assert not mount_at(ground, target).is_read_only
    kernel.unmount(target)
    with pytest.raises(errors.NotFound):
        kernel.unmount(target)
    kernel.remove(target)


def test_folders_and_files_are_made_and_removed(ground: Ground) -> None:
    kernel = ground.kernel
    path = f"{ground.folder}/a/b"
    with pytest.raises(errors.NotFound):
        kernel.make_file(f"{ground.folder}/a/file")
    kernel.make_directory(path)
    kernel.make_directory(path)
    with pytest.raises(errors.Failed):
        kernel.remove(f"{ground.folder}/a")
    kernel.make_file(f"{path}/file")
    with pytest.raises(errors.Failed):
        kernel.make_directory(f"{path}/file")
    with pytest.raises(errors.NotFound):
        kernel.usage(f"{ground.folder}/absent")


def test_a_missing_program_is_named(ground: Ground) -> None:
    disk = ground.plug(SERIAL, SIZE)
    if isinstance(ground, Linux):
        runner = commands.Commands({"PATH": "/nonexistent"})
        with pytest.raises(errors.Missing, match="'no-such-program': not found"):
            runner.run(["no-such-program"], disk.path, 1)
        return
    assert isinstance(ground, Fake)
    ground.machine.missing.add("mkfs.xfs")
    with pytest.raises(errors.Missing, match=r"'mkfs\.xfs': not found"):
        ground.kernel.make_file_system(disk.path, "xfs", ())


def test_no_disk_and_no_mount_remains(
    tools: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    with loop_disks.machine(tmp_path) as machine:
        linux = Linux(machine, tools)
        _, stage = mounted(linux, "ext4")
        linux.kernel.bind(stage, folder_in(linux, "target"))
        disks = list(linux._loops.values())
        assert loop_disks.attached(disks) == [disk.name for disk in disks]
    assert loop_disks.attached(disks) == []
    below = [m for m in linux.kernel.mounts() if m.target.startswith(str(tmp_path))]
    assert below == []
