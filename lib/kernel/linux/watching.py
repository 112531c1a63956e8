"""inotify, for the folders in which device files and links appear.

Source: inotify(7).
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import select
from collections.abc import Iterator, Sequence

from lib.kernel import errors

_IN_CREATE, _IN_MOVED_TO, _IN_ATTRIB, _IN_DELETE = 0x100, 0x80, 0x4, 0x200
_EVENTS = _IN_CREATE | _IN_MOVED_TO | _IN_ATTRIB | _IN_DELETE
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES = 64 * 1024


class Watch:
    """Events of some folders, and of those that are created in them."""

    def __init__(self, folders: Sequence[pathlib.Path]) -> None:
        self._folders = folders
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(_FLAGS)
        if self._descriptor < 0:
            raise errors.Failed(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._add()

    def _add(self) -> None:
        for folder in self._folders:
            path = os.fsencode(folder)
            code = self._libc.inotify_add_watch(self._descriptor, path, _EVENTS)
            number = ctypes.get_errno()
            if code < 0 and number != errno.ENOENT:
                raise errors.Failed(f"inotify of {folder}: {os.strerror(number)}")

    def wait(self, timeout_s: float) -> bool:
        """Wait for an event; folders that exist by then are watched as well."""
        ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._descriptor, _READ_BYTES)
            self._add()
        return bool(ready)

    def close(self) -> None:
        """End the watch."""
        os.close(self._descriptor)


@contextlib.contextmanager
def watch(folders: Sequence[pathlib.Path]) -> Iterator[Watch]:
    """Watch folders; one that does not exist is watched from its creation on.

    A folder is watched from its creation on only if its parent is in the list.
    """
    opened = Watch(folders)
    try:
        yield opened
    finally:
        opened.close()
