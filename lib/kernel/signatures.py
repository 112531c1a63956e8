"""Reads superblocks: exact facts that blkid does not report. Pure.

blkid knows hundreds of signatures; these few are read a second time because a disk is
formatted only when both find nothing, and because only the superblock shows that mkfs
was interrupted and how large the file system is.
"""

import dataclasses
import struct

from lib.kernel.model import BLANK, EXT, Content, ContentKind

HEAD_BYTES = 128 * 1024
TAIL_BYTES = 128 * 1024
"""How much of the beginning and of the end of a disk is needed."""

_SECTORS = (512, 4096)


@dataclasses.dataclass(frozen=True, slots=True)
class Ends:
    """The first and the last bytes of a disk; both hold all of a small one."""

    head: bytes
    tail: bytes
    size_bytes: int

    def at(self, offset: int, length: int) -> bytes:
        """Return bytes at an offset; of a negative one, from the end."""
        if offset >= 0:
            return self.head[offset : offset + length]
        begin = len(self.tail) + offset
        return self.tail[begin : begin + length] if begin >= 0 else b""


def read(ends: Ends) -> tuple[Content, ...]:
    """Return everything that the superblocks show."""
    examined = (
        examine(ends) for examine in (_ext, _xfs, _btrfs, _partitioned, _container)
    )
    return tuple(content for content in examined if content is not None)


def combine(blkid: Content, own: tuple[Content, ...]) -> Content:
    """Return the content from blkid's verdict and from the superblocks.

    blkid: without a size. A file system that blkid recognises is accepted also where
    a rest of a partition table is behind it.
    """
    if blkid.kind is ContentKind.BLANK:
        candidates = sorted(own, key=lambda c: c.kind is ContentKind.INTERRUPTED)
        return candidates[0] if candidates else BLANK
    for content in own:
        if content.type == blkid.type:
            return content
        if content.type in EXT and blkid.type in EXT:
            return dataclasses.replace(content, type=blkid.type)
    return blkid


def ext_size_bytes(superblock: bytes) -> int | None:
    """Return the size of a file system of the ext family from its superblock.

    Source: Linux Documentation/filesystems/ext4/super.rst.
    """
    if len(superblock) < 0x154 or superblock[56:58] != b"\x53\xef":
        return None
    low, log_size = struct.unpack_from("<I", superblock, 4)[0], superblock[24]
    (incompatible,) = struct.unpack_from("<I", superblock, 96)
    has_64_bits = bool(incompatible & 0x80)
    high = struct.unpack_from("<I", superblock, 0x150)[0] if has_64_bits else 0
    return int((high << 32 | low) << (10 + log_size))


def needs_recovery(ends: Ends) -> bool | None:
    """Report whether a file system is incomplete; None: its superblock does not show.

    ext with a journal has the feature "recover" while it is mounted writable, without
    one the flag "valid" is missing. Files that were deleted while open are in a list of
    orphans, which Linux empties even in a mount that is read-only. A log tree of btrfs
    is what fsync wrote.

    Source: Linux fs/ext4/ext4.h (EXT4_FEATURE_INCOMPAT_RECOVER, EXT4_VALID_FS,
    s_last_orphan, EXT4_FEATURE_RO_COMPAT_ORPHAN_PRESENT), fs/ext4/orphan.c
    (ext4_orphan_cleanup); btrfs On-disk format, "Superblock", log_root.
    """
    ext = ends.at(1024, 1024)
    if ext_size_bytes(ext) is not None:
        compatible, incompatible, read_only = struct.unpack_from("<III", ext, 92)
        (state,) = struct.unpack_from("<H", ext, 58)
        (last_orphan,) = struct.unpack_from("<I", ext, 0xE8)
        if last_orphan or read_only & 0x10000:
            return True
        has_journal = bool(compatible & 0x4)
        return bool(incompatible & 0x4) if has_journal else not state & 0x1
    btrfs = ends.at(0x10000, 4096)
    if btrfs[0x40:0x48] == b"_BHRfS_M":
        return bool(struct.unpack_from("<Q", btrfs, 0x60)[0])
    return None


def xfs_log_bytes(superblock: bytes) -> int | None:
    """Return the size of an internal log, 0 for an external one; None: no XFS."""
    if superblock[:4] != b"XFSB":
        return None
    (block_size,) = struct.unpack_from(">I", superblock, 4)
    (log_start,) = struct.unpack_from(">Q", superblock, 48)
    (log_blocks,) = struct.unpack_from(">I", superblock, 96)
    return int(block_size * log_blocks) if log_start else 0


def _other(type: str) -> Content:
    return Content(ContentKind.OTHER, type)


def _partitioned(ends: Ends) -> Content | None:
    """Source: UEFI 2.10, 5.3; the second header is in the last sector."""
    for sector in _SECTORS:
        if b"EFI PART" in (ends.at(sector, 8), ends.at(-sector, 8)):
            return _other("gpt")
    table = ends.at(446, 64)
    has_entry = any(table[at + 4] != 0 for at in range(0, len(table), 16))
    is_boot_sector = ends.at(510, 2) == b"\x55\xaa"
    return _other("dos") if is_boot_sector and has_entry else None


_MAGICS = (
    ("crypto_LUKS", (0,), b"LUKS\xba\xbe"),
    # The second header of LUKS2, for a disk of which the first was overwritten.
    ("crypto_LUKS", tuple(0x4000 << n for n in range(3)), b"SKUL\xba\xbe"),
    ("LVM2_member", tuple(512 * n for n in range(4)), b"LABELONE"),
    ("linux_raid_member", (0, 4096), b"\xfc\x4e\x2b\xa9"),
    ("swap", (4086, 65526), b"SWAPSPACE2"),
    ("swap", (4086, 65526), b"SWAP-SPACE"),
)
"""Type, offsets, magic. Sources: LUKS2 on-disk format 1.1.1, 2.1; lvm2
lib/format_text/layout.h; md(4) superblocks 1.1 and 1.2; mkswap(8)."""


def _container(ends: Ends) -> Content | None:
    for type, offsets, magic in _MAGICS:
        if any(ends.at(offset, len(magic)) == magic for offset in offsets):
            return _other(type)
    raid = b"\xfc\x4e\x2b\xa9"
    # md 1.0: 8 KiB before the end, on a multiple of 4 KiB. md 0.90: the last whole
    # 64 KiB.
    places = (
        (ends.size_bytes - 8192) & ~4095,
        (ends.size_bytes & ~65535) - 65536,
    )
    if any(ends.at(at - ends.size_bytes, 4) == raid for at in places if at >= 0):
        return _other("linux_raid_member")
    return None


def _ext(ends: Ends) -> Content | None:
    superblock = ends.at(1024, 1024)
    size_bytes = ext_size_bytes(superblock)
    if size_bytes is None:
        return None
    compatible, incompatible, read_only = struct.unpack_from("<III", superblock, 92)
    if incompatible & 0x8:
        return _other("jbd")
    # Features that ext3 does not have: beyond filetype, recover and meta_bg; beyond
    # sparse_super, large_file and btree_dir. Source: fs/ext4/ext4.h, EXT3_FEATURE_*.
    if incompatible & ~0x16 or read_only & ~0x7:
        return Content(ContentKind.FILE_SYSTEM, "ext4", size_bytes)
    name = "ext3" if compatible & 0x4 else "ext2"
    return Content(ContentKind.FILE_SYSTEM, name, size_bytes)


def _xfs(ends: Ends) -> Content | None:
    """mkfs.xfs clears sb_inprogress at its end.

    Source: Linux fs/xfs/libxfs/xfs_format.h, struct xfs_dsb.
    """
    superblock = ends.at(0, 512)
    if superblock[:4] != b"XFSB":
        return None
    if superblock[126] != 0:
        return Content(ContentKind.INTERRUPTED, "xfs")
    block_size, blocks = struct.unpack_from(">IQ", superblock, 4)
    return Content(ContentKind.FILE_SYSTEM, "xfs", block_size * blocks)


def _btrfs(ends: Ends) -> Content | None:
    """mkfs.btrfs writes the final magic at its end.

    Source: btrfs-progs kernel-shared/ctree.h, BTRFS_MAGIC_TEMPORARY; the size is that
    of the device (dev_item.total_bytes), btrfs.readthedocs.io/en/latest/dev/On-disk-
    format.html, "Superblock".
    """
    superblock = ends.at(0x10000, 4096)
    if superblock[0x40:0x48] == b"!BHRfS_M":
        return Content(ContentKind.INTERRUPTED, "btrfs")
    if superblock[0x40:0x48] != b"_BHRfS_M":
        return None
    (size_bytes,) = struct.unpack_from("<Q", superblock, 0xC9 + 8)
    return Content(ContentKind.FILE_SYSTEM, "btrfs", size_bytes)
