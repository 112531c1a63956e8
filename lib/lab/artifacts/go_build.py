"""What the builders of the lab's Go programs share: a lock, flags and sources."""

import contextlib
import pathlib
from collections.abc import Mapping

from lib.lab import places
from lib.lab.run import file_lock, progress


def alone(
    where: places.Places, shown: progress.Progress
) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of the cache while the block runs; wait for other builds."""
    title = "Wait for another build of the lab's programs"
    return file_lock.held(where.cache / "build.lock", shown, title)


def flags(linker_flags: str) -> tuple[str, ...]:
    """Return the flags of every build: common packages are compiled once."""
    return (
        *("-trimpath", "-mod=readonly", "-buildvcs=false"),
        *("-ldflags", linker_flags),
        # The linker throws it away: a tenth of the time, a fifth of the cache.
        "-gcflags=all=-dwarf=false",
    )


def write_sources(
    where: places.Places, name: str, files: Mapping[str, bytes]
) -> pathlib.Path:
    """Write the files of a module into a folder of the cache; return the folder."""
    folder = where.cache / "go" / "sources" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return folder
