"""Options of mkfs that a StorageClass may set: a list per file system. Pure.

Options that name files or devices, skip the kernel's limits, or make a file system that
a node cannot mount, check or expand are not in the list.
"""

import re
from collections.abc import Mapping
from typing import Annotated

from lib.process.documented import Documented

KEY: Annotated[
    str,
    Documented(
        "Options of mkfs, such as `-I 512 -m 1`. Only options of a list per file system"
        " are accepted; anything else is INVALID_ARGUMENT. Not in the reference.",
        kind="options of mkfs",
        default="none",
        used_by=("csi-controller", "csi-node"),
    ),
] = "mooring.io/mkfs-options"
"""Parameter of a StorageClass; csi-node receives it in the volume context."""

_NUMBER = r"\d{1,12}"
_SIZE = r"\d{1,12}[kKmMgG]?"
_EXT_FEATURES = (
    "64bit bigalloc dir_index dir_nlink ext_attr extent extents extra_isize fast_commit"
    " filetype flex_bg has_journal huge_file inline_data large_dir large_file"
    " metadata_csum metadata_csum_seed orphan_file project quota resize_inode"
    " sparse_super sparse_super2 stable_inodes uninit_bg verity"
)
_EXT_EXTENDED = (
    r"(?:lazy_itable_init|lazy_journal_init|packed_meta_blocks)(?:=[01])?"
    rf"|(?:no)?discard|(?:stride|stripe[-_]width|resize)={_SIZE}"
)
_BTRFS_FEATURES = (
    "extref skinny-metadata no-holes free-space-tree block-group-tree raid-stripe-tree"
    " squota"
)


def _list(item: str) -> str:
    return rf"(?:{item})(?:,(?:{item}))*"


def _features(names: str) -> str:
    return _list(rf"\^?(?:{'|'.join(map(re.escape, names.split()))})")


_EXT: Mapping[str, str] = {
    "-b": "1024|2048|4096",
    "-C": _NUMBER,
    "-E": _list(_EXT_EXTENDED),
    "-G": _NUMBER,
    "-I": "128|256|512|1024|2048|4096",
    "-i": _NUMBER,
    "-J": rf"size={_NUMBER}",
    "-m": r"\d{1,2}(?:\.\d{1,2})?",
    "-N": _NUMBER,
    "-O": _features(_EXT_FEATURES),
    "-T": _list(r"[a-z0-9]{1,32}"),
}
_XFS: Mapping[str, str] = {
    "-b": rf"size={_SIZE}",
    "-d": _list(rf"(?:agcount|agsize|su|sw|sunit|swidth)={_SIZE}"),
    "-i": _list(rf"(?:size|log|maxpct|align|sparse|nrext64|exchange)={_SIZE}"),
    "-K": "",
    "-l": _list(rf"(?:size|su|sunit|version|lazy-count)={_SIZE}"),
    "-m": _list(
        r"(?:crc|finobt|inobtcount|bigtime|reflink|rmapbt|autofsck|metadir)=[01]"
    ),
    "-n": _list(rf"(?:size|version|ftype)={_SIZE}|version=ci"),
    "-s": rf"size={_SIZE}",
}
_BTRFS: Mapping[str, str] = {
    "--checksum": "crc32c|xxhash|sha256|blake2",
    "--csum": "crc32c|xxhash|sha256|blake2",
    "--features": _features(_BTRFS_FEATURES),
    "--metadata": "single|dup",
    "--nodesize": _SIZE,
    "--nodiscard": "",
    "--sectorsize": _SIZE,
    "-K": "",
    "-m": "single|dup",
    "-n": _SIZE,
    "-O": _features(_BTRFS_FEATURES),
    "-s": _SIZE,
}
ALLOWED: Mapping[str, Mapping[str, str]] = {
    "ext2": _EXT,
    "ext3": _EXT,
    "ext4": _EXT,
    "xfs": _XFS,
    "btrfs": _BTRFS,
}
"""Option to the pattern of its value, empty for an option without a value.

Sources: mke2fs(8), mkfs.xfs(8), mkfs.btrfs(8)."""


def read(text: str, fs_type: str) -> tuple[str, ...]:
    """Return the words of the options.

    Raises:
        ValueError: an option or value that is not in the list; the message names it.
    """
    allowed = ALLOWED.get(fs_type)
    words = text.split()
    if allowed is None:
        if words:
            raise ValueError(f'file system "{fs_type}": has no mkfs options')
        return ()
    position = 0
    while position < len(words):
        option = words[position]
        if option not in allowed:
            known = ", ".join(sorted(allowed))
            text = f'unsupported option "{option[:100]}" of mkfs.{fs_type}'
            raise ValueError(f"{text}: must be one of {known}")
        if allowed[option]:
            position += 1
            _check(fs_type, option, words[position : position + 1], allowed[option])
        position += 1
    return tuple(words)


def _check(fs_type: str, option: str, value: list[str], pattern: str) -> None:
    if not value:
        raise ValueError(f"mkfs.{fs_type} {option}: not set: requires a value")
    if not re.fullmatch(pattern, value[0]):
        text = f'mkfs.{fs_type} {option}: invalid value "{value[0][:100]}"'
        raise ValueError(f"{text}: must match {pattern}")
