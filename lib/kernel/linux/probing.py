"""Finds out what a disk contains: one blkid, and its superblocks."""

import errno
import os

from lib.kernel import errors, signatures
from lib.kernel.linux import commands
from lib.kernel.model import BLANK, Content, ContentKind

_TIMEOUT_S = 60.0
_NOTHING, _AMBIVALENT = 2, 8
"""Exit codes. Source: blkid(8), "EXIT STATUS"."""


def probe(runner: commands.Commands, device: str) -> Content:
    """Return the content of a disk that nothing holds.

    Raises:
        Busy: something holds the disk.
    """
    ends = _ends(device, os.O_EXCL)
    words = ["blkid", "-p", "-o", "export", device]
    finished = runner.run(words, device, _TIMEOUT_S)
    return signatures.combine(_verdict(finished, device), signatures.read(ends))


def _verdict(finished: commands.Finished, device: str) -> Content:
    if finished.code == _NOTHING:
        return BLANK
    if finished.code == _AMBIVALENT:
        return Content(ContentKind.OTHER, "several signatures")
    if finished.code != 0:
        raise errors.Failed(f"blkid {device}: exit {finished.code}", finished.output)
    pairs = (line.partition("=") for line in finished.output.splitlines())
    facts = {key: value for key, _, value in pairs}
    type = facts.get("TYPE") or facts.get("PTTYPE")
    if type is None:
        return BLANK
    is_file_system = facts.get("USAGE") == "filesystem"
    kind = ContentKind.FILE_SYSTEM if is_file_system else ContentKind.OTHER
    return Content(kind, type)


def needs_recovery(runner: commands.Commands, device: str) -> bool:
    """Report whether the journal of a file system must be recovered.

    Only the log of XFS shows it, which xfs_logprint reads without changing it.

    Source: xfsprogs logprint/log_misc.c (xlog_print_find_head and its callers).
    """
    answer = signatures.needs_recovery(_ends(device, 0))
    if answer is not None:
        return answer
    finished = runner.run(["xfs_logprint", "-t", device], device, _TIMEOUT_S)
    if finished.code != 0:
        text = f"xfs_logprint {device}: exit {finished.code}"
        raise errors.Failed(text, finished.output)
    return "state: <CLEAN>" not in finished.output


def superblock(device: str, offset: int = 0, length: int = 4096) -> bytes:
    """Return the beginning of a disk, which may be mounted."""
    return _ends(device, 0).at(offset, length)


def _ends(device: str, flags: int) -> signatures.Ends:
    """Read both ends. O_EXCL of a block device fails while something holds it.

    Source: open(2), O_EXCL.
    """
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC | flags)
    except OSError as error:
        raise _refused(device, error) from error
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        head = os.pread(descriptor, signatures.HEAD_BYTES, 0)
        begin = max(size - signatures.TAIL_BYTES, 0)
        tail = os.pread(descriptor, signatures.TAIL_BYTES, begin)
    except OSError as error:
        raise errors.BadDisk(f"read {device}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return signatures.Ends(head, tail, size)


def _refused(device: str, error: OSError) -> errors.KernelError:
    text = f"open {device}: {error.strerror}"
    if error.errno == errno.EBUSY:
        holders = "a mount, mkfs, fsck, LVM, device mapper or md"
        return errors.Busy(f"{text}: must not be held by {holders}")
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return errors.NotFound(text)
    return errors.Failed(text)
