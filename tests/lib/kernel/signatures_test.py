"""Superblocks give exact facts; blkid's verdict and they are combined safely."""

import struct
from collections.abc import Mapping

import pytest

from lib.kernel import signatures
from lib.kernel.model import BLANK, Content, ContentKind

SIZE = 2**24
RAID = b"\xfc\x4e\x2b\xa9"


def ends(written: Mapping[int, bytes], size: int = SIZE) -> signatures.Ends:
    """Build a disk from bytes by offset."""
    disk = bytearray(size)
    for offset, data in written.items():
        disk[offset : offset + len(data)] = data
    head, tail = disk[: signatures.HEAD_BYTES], disk[-signatures.TAIL_BYTES :]
    return signatures.Ends(bytes(head), bytes(tail), size)


def ext(compatible: int, incompatible: int, read_only: int = 3) -> bytes:
    superblock = bytearray(1024)
    struct.pack_into("<I", superblock, 4, 4096)
    superblock[24] = 2
    superblock[56:58] = b"\x53\xef"
    struct.pack_into("<III", superblock, 92, compatible, incompatible, read_only)
    struct.pack_into("<I", superblock, 0x150, 1)
    return bytes(superblock)


def xfs(in_progress: int) -> bytes:
    superblock = bytearray(512)
    superblock[:4] = b"XFSB"
    struct.pack_into(">IQ", superblock, 4, 4096, 1000)
    struct.pack_into(">Q", superblock, 48, 77)
    struct.pack_into(">I", superblock, 96, 10)
    superblock[126] = in_progress
    return bytes(superblock)


def btrfs(magic: bytes) -> bytes:
    superblock = bytearray(4096)
    superblock[0x40:0x48] = magic
    struct.pack_into("<Q", superblock, 0xC9 + 8, 12345678)
    return bytes(superblock)


def other(type: str) -> tuple[Content, ...]:
    return (Content(ContentKind.OTHER, type),)


def file_system(type: str, size: int) -> tuple[Content, ...]:
    return (Content(ContentKind.FILE_SYSTEM, type, size),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({}, (), id="zeros are nothing"),
        pytest.param({5000: b"data"}, (), id="data without a signature"),
        pytest.param(
            {1024: ext(0x4, 0x2)}, file_system("ext3", 4096 * 4096), id="ext3"
        ),
        pytest.param(
            {1024: ext(0x0, 0x2)}, file_system("ext2", 4096 * 4096), id="ext2"
        ),
        pytest.param(
            {1024: ext(0x4, 0x2C2)},
            file_system("ext4", (2**32 + 4096) * 4096),
            id="ext4 with 64 bits",
        ),
        pytest.param({1024: ext(0, 0x8)}, other("jbd"), id="a journal of its own"),
        pytest.param({0: xfs(0)}, file_system("xfs", 4096 * 1000), id="xfs"),
        pytest.param(
            {0: xfs(1)},
            (Content(ContentKind.INTERRUPTED, "xfs"),),
            id="mkfs.xfs was killed",
        ),
        pytest.param(
            {0x10000: btrfs(b"_BHRfS_M")}, file_system("btrfs", 12345678), id="btrfs"
        ),
        pytest.param(
            {0x10000: btrfs(b"!BHRfS_M")},
            (Content(ContentKind.INTERRUPTED, "btrfs"),),
            id="mkfs.btrfs was killed",
        ),
        pytest.param({512: b"EFI PART"}, other("gpt"), id="gpt"),
        pytest.param({4096: b"EFI PART"}, other("gpt"), id="gpt of 4 KiB sectors"),
        pytest.param(
            {SIZE - 512: b"EFI PART"}, other("gpt"), id="only the second header of gpt"
        ),
        pytest.param(
            {446: b"\x80" + bytes(3) + b"\x83", 510: b"\x55\xaa"},
            other("dos"),
            id="dos partitions",
        ),
        pytest.param({510: b"\x55\xaa"}, (), id="a boot sector without partitions"),
        pytest.param({0: b"LUKS\xba\xbe"}, other("crypto_LUKS"), id="luks"),
        pytest.param({0x4000: b"SKUL\xba\xbe"}, other("crypto_LUKS"), id="luks, 2nd"),
        pytest.param({512: b"LABELONE"}, other("LVM2_member"), id="lvm"),
        pytest.param({4096: RAID}, other("linux_raid_member"), id="md 1.2"),
        pytest.param({SIZE - 8192: RAID}, other("linux_raid_member"), id="md 1.0"),
        pytest.param({SIZE - 65536: RAID}, other("linux_raid_member"), id="md 0.90"),
        pytest.param({4086: b"SWAPSPACE2"}, other("swap"), id="swap"),
    ],
)
def test_superblocks(written: Mapping[int, bytes], expected: tuple[Content]) -> None:
    assert signatures.read(ends(written)) == expected


def test_a_disk_smaller_than_what_is_read_is_read() -> None:
    assert signatures.read(ends({}, 4096)) == ()
    assert signatures.read(ends({0: xfs(0)}, 4096))[0].type == "xfs"


def test_the_log_of_xfs_counts_only_inside() -> None:
    assert signatures.xfs_log_bytes(xfs(0)) == 40960
    external = bytearray(xfs(0))
    external[48:56] = bytes(8)
    assert signatures.xfs_log_bytes(bytes(external)) == 0
    assert signatures.xfs_log_bytes(bytes(512)) is None


FS = Content(ContentKind.FILE_SYSTEM, "ext4")
SIZED = Content(ContentKind.FILE_SYSTEM, "ext4", 100)
LOST = Content(ContentKind.INTERRUPTED, "xfs")
GPT = Content(ContentKind.OTHER, "gpt")


@pytest.mark.parametrize(
    ("blkid", "own", "expected"),
    [
        pytest.param(BLANK, (), BLANK, id="both find nothing"),
        pytest.param(BLANK, (GPT,), GPT, id="only ours finds something"),
        pytest.param(BLANK, (LOST,), LOST, id="only an interrupted mkfs"),
        pytest.param(BLANK, (LOST, GPT), GPT, id="content before an interrupted mkfs"),
        pytest.param(FS, (SIZED,), SIZED, id="the size is added"),
        pytest.param(FS, (SIZED, GPT), SIZED, id="remains of a partition table"),
        pytest.param(FS, (), FS, id="only blkid finds something"),
        pytest.param(
            Content(ContentKind.FILE_SYSTEM, "xfs"), (LOST,), LOST, id="blkid: xfs"
        ),
        pytest.param(
            Content(ContentKind.FILE_SYSTEM, "ext3"),
            (SIZED,),
            Content(ContentKind.FILE_SYSTEM, "ext3", 100),
            id="blkid names the member of the family",
        ),
        pytest.param(GPT, (SIZED,), GPT, id="blkid: partitions"),
    ],
)
def test_verdicts_are_combined(
    blkid: Content, own: tuple[Content, ...], expected: Content
) -> None:
    assert signatures.combine(blkid, own) == expected


def written(superblock: bytes, offset: int, data: bytes) -> bytes:
    return superblock[:offset] + data + superblock[offset + len(data) :]


VALID, INVALID = b"\x01\x00", b"\x00\x00"
LOG_ROOT = (30605312).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        pytest.param({1024: ext(0x4, 0x2)}, False, id="ext4, unmounted"),
        pytest.param({1024: ext(0x4, 0x6)}, True, id="ext4, journal in use"),
        pytest.param(
            {1024: written(ext(0, 0x2), 58, VALID)}, False, id="ext2, unmounted"
        ),
        pytest.param(
            {1024: written(ext(0, 0x2), 58, INVALID)}, True, id="ext2, in use"
        ),
        pytest.param(
            {1024: written(ext(0x4, 0x2), 0xE8, b"\x0c\x00\x00\x00")},
            True,
            id="ext4, deleted files still to be released",
        ),
        pytest.param(
            {1024: written(ext(0x4, 0x2), 100, b"\x03\x00\x01\x00")},
            True,
            id="ext4, the same in a file of orphans",
        ),
        pytest.param({0x10000: btrfs(b"_BHRfS_M")}, False, id="btrfs without a log"),
        pytest.param(
            {0x10000: written(btrfs(b"_BHRfS_M"), 0x60, LOG_ROOT)},
            True,
            id="btrfs with a log",
        ),
        pytest.param({0: xfs(0)}, None, id="XFS shows it in its log alone"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_whether_a_journal_must_be_recovered(
    disk: Mapping[int, bytes], expected: bool | None
) -> None:
    assert signatures.needs_recovery(ends(disk)) is expected
