"""Ini files of a folder, read again when they change."""

import pathlib
import threading
from collections.abc import Callable, Mapping

POLL_S = 2.0
"""Between two reads of the folder."""
SIZE_MAX = 64 * 1024
"""Bytes of a file that are read."""


class IniFolder:
    """Reads *.ini of a folder, then conf.d/*.ini, each by name. Safe for threads.

    path: None: no folder.
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._files = self._read()

    def files(self) -> Mapping[str, str]:
        """Return the content of the files by name, as of the last read."""
        with self._lock:
            return self._files

    def refresh(self) -> bool:
        """Read the folder again; report whether anything has changed."""
        files = self._read()
        with self._lock:
            is_new = files != self._files
            self._files = files
        return is_new

    def watch(self, on_change: Callable[[], None], stop: threading.Event) -> None:
        """Poll the folder until `stop` is set."""
        while not stop.wait(POLL_S):
            if self.refresh():
                on_change()

    def _read(self) -> Mapping[str, str]:
        if self._path is None:
            return {}
        files: dict[str, str] = {}
        for folder in (self._path, self._path / "conf.d"):
            for file in sorted(folder.glob("*.ini")):
                if not file.is_file():
                    continue  # to open a pipe would wait for its other end
                try:
                    with file.open(encoding="utf-8", errors="replace") as opened:
                        files[str(file.relative_to(self._path))] = opened.read(SIZE_MAX)
                except OSError:
                    continue  # it is being replaced: the next read has it
        return files
