"""What the lab keeps between runs, and how much room that takes."""

import os
import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import places


def sizes(where: places.Places) -> Mapping[str, int]:
    """Return the bytes on disk of each part of the cache, by name; a lock is none."""
    if not where.cache.is_dir():
        return {}
    parts = sorted(part for part in where.cache.iterdir() if part.is_dir())
    return {part.name: _weight(part) for part in parts}


def _weight(root: pathlib.Path) -> int:
    """Add up what `du` would: blocks, each file once however many names it has."""
    total, counted, todo = 0, set(), [os.fspath(root)]
    while todo:
        path = todo.pop()
        status = os.lstat(path)
        if (status.st_dev, status.st_ino) in counted:
            continue
        counted.add((status.st_dev, status.st_ino))
        total += status.st_blocks * 512
        if os.path.isdir(path) and not os.path.islink(path):
            todo.extend(entry.path for entry in os.scandir(path))
    return total


def remove(where: places.Places) -> None:
    """Remove them all."""
    if where.cache.is_dir():
        shutil.rmtree(where.cache)
