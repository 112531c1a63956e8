"""Plays a process that is killed before or after one change of the kernel."""

import functools
from collections.abc import Callable, Sequence
from typing import cast

from lib.kernel.protocol import Kernel

CHANGES = (
    "bind",
    "check_file_system",
    "expand",
    "make_directory",
    "make_file",
    "make_file_system",
    "mount",
    "remount_read_only",
    "remove",
    "rescan_disk",
    "unmount",
)


class Killed(BaseException):
    """The process was killed; nothing in it catches this."""


class _Killing:
    """Counts changes, and ends at one of them."""

    def __init__(self, kernel: Kernel, at: int, is_after: bool) -> None:
        self._kernel = kernel
        self._at = at
        self._is_after = is_after
        self.changes: list[str] = []

    def __getattr__(self, name: str) -> object:
        method = getattr(self._kernel, name)
        if name not in CHANGES:
            return method
        return functools.partial(self._change, name, method)

    def _change(
        self, name: str, method: Callable[..., object], *arguments: object
    ) -> object:
        is_last = len(self.changes) == self._at
        self.changes.append(name)
        if is_last and not self._is_after:
            raise Killed
        result = method(*arguments)
        if is_last:
            raise Killed
        return result


def killed_at(kernel: Kernel, at: int, is_after: bool) -> tuple[Kernel, Sequence[str]]:
    """Return a kernel with which the process is killed at change number `at`.

    at: from 0; negative: never. The second value lists the changes made so far.
    """
    killing = _Killing(kernel, at, is_after)
    return cast(Kernel, killing), killing.changes
