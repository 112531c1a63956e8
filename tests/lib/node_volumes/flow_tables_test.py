"""Pure tables: which disk, which options of mkfs, which mounts are orphaned."""

from collections.abc import Sequence

import pytest

from lib.kernel.fake.kernel import FakeKernel
from lib.kernel.model import Content, ContentKind, DeviceNumber, Disk, Link, Mount
from lib.node_volumes import limits, lookup, mkfs_options, orphans, stats
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import NodePublish, NodeVolume, Stage

ID = "11111111-2222-3333-4444-555555555555"
SHORT = ID[:20]
B, C = DeviceNumber(254, 16), DeviceNumber(254, 32)
GIB = 2**30


def disk(name: str, number: DeviceNumber, serial: str = "") -> Disk:
    return Disk(name, f"/dev/{name}", number, serial, GIB)


@pytest.mark.parametrize(
    ("links", "disks", "expected"),
    [
        pytest.param((), (disk("vdb", B, SHORT),), ("vdb",), id="virtio's serial"),
        pytest.param((), (disk("sdb", B, ID),), ("sdb",), id="SCSI's serial"),
        pytest.param((), (disk("vdb", B, SHORT[:-1]),), (), id="a shorter serial"),
        pytest.param((), (disk("vdb", B),), (), id="no serial, no link"),
        *(
            pytest.param((Link(name, B),), (disk("x", B),), ("x",), id=name)
            for name in (
                f"virtio-{SHORT}",
                f"virtio-{ID}",
                f"scsi-0QEMU_QEMU_HARDDISK_{SHORT}",
                f"scsi-0QEMU_QEMU_HARDDISK_{ID}",
                f"scsi-SQEMU_QEMU_HARDDISK_{SHORT}",
                f"scsi-SQEMU_QEMU_HARDDISK_{ID}",
                "wwn-0x11111111222233334444555555555555",
            )
        ),
        pytest.param(
            (Link(f"virtio-{SHORT}-part1", B),), (disk("x", B),), (), id="a partition"
        ),
        pytest.param(
            (Link(f"virtio-{SHORT}", None),), (disk("x", B),), (), id="a dangling link"
        ),
        pytest.param(
            (Link(f"virtio-{SHORT}", B),),
            (disk("vdb", B, "99999999-9999-9999-9"),),
            (),
            id="a link to a disk with another serial",
        ),
        pytest.param(
            (Link(f"virtio-{SHORT}", C),),
            (disk("vdb", B, SHORT), disk("vdc", C)),
            ("vdb", "vdc"),
            id="two candidates",
        ),
    ],
)
def test_which_disk(
    links: Sequence[Link], disks: Sequence[Disk], expected: Sequence[str]
) -> None:
    matching = lookup.find(ID, links, disks)
    assert matching.matches == expected
    assert (matching.disk is not None) == (len(expected) == 1)


def test_a_short_serial_is_searched_without_an_error() -> None:
    assert lookup.find("v", (), (disk("vdb", B, "v"),)).disk is None
    assert "virtio-v" in lookup.names("v")


@pytest.mark.parametrize(
    ("fs_type", "text"),
    [
        ("ext4", "-i 8192 -O ^has_journal,bigalloc -E lazy_itable_init=0,nodiscard"),
        ("ext3", "-N 100000 -m 0.5 -T largefile"),
        ("xfs", "-K -d su=64k,sw=4 -i size=1024 -m reflink=0,crc=1"),
        ("btrfs", "--nodesize 16k -O no-holes --csum xxhash -K"),
        ("xfs", ""),
    ],
)
def test_allowed_mkfs_options(fs_type: str, text: str) -> None:
    assert mkfs_options.read(text, fs_type) == tuple(text.split())


@pytest.mark.parametrize(
    ("fs_type", "text", "expected"),
    [
        ("ext4", "-S", 'unsupported option "-S" of mkfs.ext4: must be one of -C, -E'),
        ("ext4", "-d /etc", 'unsupported option "-d"'),
        ("ext4", "/dev/vda", 'unsupported option "/dev/vda"'),
        ("ext4", "-i", "mkfs.ext4 -i: not set: requires a value"),
        ("ext4", "-i -O", 'mkfs.ext4 -i: invalid value "-O": must match'),
        ("ext4", "-O journal_dev", 'mkfs.ext4 -O: invalid value "journal_dev"'),
        ("ext4", "-b 65536", 'mkfs.ext4 -b: invalid value "65536"'),
        ("ext4", "-J device=/dev/vda", "mkfs.ext4 -J: invalid value"),
        ("xfs", "-l logdev=/dev/vda", "mkfs.xfs -l: invalid value"),
        ("xfs", "-d file=1,name=/x", "mkfs.xfs -d: invalid value"),
        ("xfs", "-p proto", 'unsupported option "-p" of mkfs.xfs'),
        ("btrfs", "-d raid0", 'unsupported option "-d" of mkfs.btrfs'),
        ("btrfs", "-m raid1", "mkfs.btrfs -m: invalid value"),
        ("vfat", "-F 32", 'file system "vfat": has no mkfs options'),
    ],
)
def test_other_mkfs_options_are_refused(fs_type: str, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=".") as caught:
        mkfs_options.read(text, fs_type)
    assert expected in str(caught.value)


def mount(target: str, number: DeviceNumber, source: str = "/dev/vdb") -> Mount:
    return Mount(number, "/", target, frozenset({"rw"}), "xfs", source)


def test_orphans_are_mounts_of_disks_that_disappeared() -> None:
    staged = "/k/plugins/kubernetes.io/csi"
    pod = "/k/pods/1/volumes/kubernetes.io~csi/pvc-1/mount"
    mounts = (
        mount(f"{staged}/mine/1/globalmount", B),
        mount(f"{staged}/mine/2/globalmount", C, "/dev/vdc"),
        mount(f"{staged}/other/3/globalmount", C, "/dev/vdc"),
        mount(pod, C, "/dev/vdc"),
        mount("/k/pods/2/volumes/kubernetes.io~empty-dir/x", C, "tmpfs"),
        mount("/elsewhere", C, "/dev/vdc"),
    )
    orphaned = orphans.find(mounts, (disk("vdb", B),), "/k", "mine")
    assert [orphan.target for orphan in orphaned] == [
        f"{staged}/mine/2/globalmount",
        pod,
    ]
    assert orphaned[0].problem == "its disk (/dev/vdc) disappeared"
    assert orphans.find(mounts, (disk("b", B), disk("c", C)), "/k", "mine") == ()


def test_statistics_and_condition() -> None:
    kernel = FakeKernel()
    content = Content(ContentKind.FILE_SYSTEM, "xfs", GIB)
    plugged = kernel.plug("vdb", ID, GIB, content)
    volume = NodeVolume(ID, ID)
    with pytest.raises(CallFailed) as caught:
        stats.read(kernel, ID, "/stage")
    assert caught.value.reason is FailureReason.NOT_FOUND
    kernel.make_directory("/stage")
    assert stats.read(kernel, ID, "/stage").problem == "not mounted at /stage"
    flow = NodeVolumesFlow(kernel)
    flow.settle(Stage(volume, "/stage"), lambda: 1.0)
    flow.settle(NodePublish(volume, "/stage", "/block", is_block=True), lambda: 1.0)
    healthy = stats.read(kernel, ID, "/stage")
    assert healthy.usage is not None
    assert (healthy.usage.total_bytes, healthy.problem) == (GIB, "")
    assert stats.read(kernel, ID, "/block") == stats.Stats(size_bytes=GIB)
    kernel.make_read_only(plugged)
    assert "became read-only" in stats.read(kernel, ID, "/stage").problem
    plugged.has_shut_down = True
    assert "has shut down" in stats.read(kernel, ID, "/stage").problem
    kernel.unplug(plugged)
    for path in ("/stage", "/block"):
        assert "disappeared" in stats.read(kernel, ID, path).problem


def test_the_limit_is_the_capacity_of_the_bus_without_other_disks() -> None:
    own = "/k/plugins/kubernetes.io/csi/mine/1/globalmount"
    managed = limits.managed((mount(own, B), mount("/elsewhere", C)), "/k", "mine")
    assert managed == {B}
    virtio = [disk("vda", DeviceNumber(254, 0)), disk("vdb", B), disk("loop0", C)]
    assert limits.of_bus(virtio, managed) == 25
    assert limits.of_bus(virtio, set()) == 24
    scsi = [disk("sda", DeviceNumber(8, 0)), disk("sdb", C)]
    assert limits.of_bus(scsi, {C}) == 255
    many = [disk(f"vd{n}", DeviceNumber(254, 16 * n)) for n in range(40)]
    assert limits.of_bus(many, set()) == 1
