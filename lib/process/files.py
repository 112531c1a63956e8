"""Noticing that files changed, also when a Secret volume swaps its symbolic links."""

import dataclasses
import hashlib
import os
import pathlib
import stat
import threading
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """Facts about a file that cost one system call; None where it is missing."""

    target: str
    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


def _look(path: pathlib.Path) -> _Look | None:
    try:
        target = os.path.realpath(path)
        at = os.stat(target)
    except OSError:
        return None
    return _Look(
        target, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns
    )


def _digest(path: pathlib.Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


class FileWatch:
    """Reports at each call whether the content of some files has changed.

    Files are only read when their size, time or inode has changed. A missing file
    counts as unchanged until it exists again: it may just be being replaced. Safe for
    many threads; a change is reported to one caller, once.

    Source: Kubernetes Secret and ConfigMap volumes: `..data` is a symbolic link that
    is replaced as a whole.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._paths = tuple(pathlib.Path(path) for path in paths)
        self._lock = threading.Lock()
        self._looks = {path: _look(path) for path in self._paths}
        self._digests = {path: _digest(path) for path in self._paths}

    def changed(self) -> bool:
        """Report whether any content differs from when this was last asked."""
        with self._lock:
            # All are read, or a second changed file would be reported again later.
            news = [self._is_new(path) for path in self._paths]
            return any(news)

    def _is_new(self, path: pathlib.Path) -> bool:
        look = _look(path)
        if look is None or look == self._looks[path]:
            return False
        digest = _digest(path)
        if digest is None:
            return False
        # The look was taken before the content: a write in between shows next time.
        self._looks[path] = look
        is_new = digest != self._digests[path]
        self._digests[path] = digest
        return is_new


def reason(error: OSError) -> str:
    """Return why a file cannot be read, in a few lower-case words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return (error.strerror or type(error).__name__).lower()


def unreadable(path: str) -> str:
    """Return why a file cannot be read, empty when it can."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return reason(error)
    except ValueError:
        return "no such file"  # a path with a null byte
    if stat.S_ISDIR(mode):
        return "is a directory"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    return "" if os.access(path, os.R_OK) else "permission denied"
