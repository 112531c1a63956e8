"""Which files of a package a call enters, by Python's profiler.

A file is entered when one of its functions is called; data classes and constants of a
file can be read without entering it.
"""

import contextlib
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| (\d+)\b[^|]*\|", re.MULTILINE)
"""A walk in the table of docs/design.md: name, files before, files now."""


def drawn(walk: str) -> int:
    """Return how many files a walk enters, as docs/design.md says."""
    return int(dict(_ROW.findall(Path("docs/design.md").read_text()))[walk])


class Walk:
    """The files that a call has entered.

    files: below the folder, in the order of the first entry. returns: how often the
    call came back to a file that it had left. calls: of functions in these files.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.returns = 0
        self.calls = 0
        self._at = ""

    def enter(self, file: str) -> None:
        """Record that a function of a file runs now."""
        if file == self._at:
            return
        self._at = file
        if file in self.files:
            self.returns += 1
        else:
            self.files.append(file)


def traced(call: Callable[[], T], folder: Path) -> tuple[T, Walk]:
    """Return what a call returns, and which files below a folder it has entered.

    Only the thread that calls is traced.
    """
    walk, stack, root = Walk(), list[str](), f"{folder}/"

    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        del arg
        file = frame.f_code.co_filename
        if event == "call":
            stack.append(file)
            if file.startswith(root):
                walk.calls += 1
                walk.enter(file.removeprefix(root))
        elif event == "return" and stack:
            stack.pop()
            if stack and stack[-1].startswith(root):
                walk.enter(stack[-1].removeprefix(root))

    sys.setprofile(profile)
    try:
        return call(), walk
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def entered(folder: Path) -> Iterator[set[str]]:
    """Collect the files below a folder that threads begun in the block enter, too."""
    root = f"{folder}/"
    files = set[str]()

    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        del arg
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(root):
            files.add(file.removeprefix(root))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
