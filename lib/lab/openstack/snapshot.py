"""Keeps the data of a freshly seeded lab, so that the next start can begin there.

Rules: a snapshot is named after everything that decides its content, and after a hash
of the content itself; it appears in the cache when it is complete. Its addresses and
paths are those of the lab that made it; `readdress.py` changes them.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tarfile
import zlib

from lib.lab import errors
from lib.lab.openstack import layout, resources
from lib.lab.run import file_lock, progress

RESTORED = "restored.json"
"""Name of the file of the lab that made the snapshot, in data just restored."""
SEEDED = "seeded.json"
"""Name of the file that shows that data can be used."""

_FORMAT = "2"
_KEPT = 3
_SUFFIX = ".tar.gz"


class DamagedError(errors.LabError):
    """A snapshot cannot be used, and was deleted."""


def folder(home: layout.Layout) -> pathlib.Path:
    """Return the folder of all snapshots."""
    return home.where.cache / "openstack" / "snapshots"


def _stem(home: layout.Layout) -> str:
    key = resources.digest(_FORMAT, home.install.key, resources.seed_digest())
    return f"{key}-"


def find(home: layout.Layout) -> pathlib.Path | None:
    """Return the snapshot of this lab's packages and seed, for any ports."""
    return next(iter(sorted(folder(home).glob(f"{_stem(home)}*{_SUFFIX}"))), None)


def alone(
    home: layout.Layout, shown: progress.Progress
) -> contextlib.AbstractContextManager[None]:
    """Wait until no other lab makes a snapshot, and keep others waiting."""
    title = "Wait for the first start of another OpenStack"
    return file_lock.held(folder(home) / "lock", shown, title)


def take(home: layout.Layout) -> None:
    """Keep the data as it is; the database must not run.

    Raises:
        LabError: it cannot be written.
    """
    target = folder(home)
    part = target / f".{_stem(home)}{os.getpid()}.new"
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(part, "w:gz", compresslevel=1) as archive:
            archive.add(home.data, arcname="data")
        part.chmod(0o600)
        part.replace(target / f"{_stem(home)}{_hash(part)}{_SUFFIX}")
    except OSError as error:
        part.unlink(missing_ok=True)
        raise errors.LabError(
            f"the seeded OpenStack could not be kept in {target}: {error}"
        ) from error
    _prune(target)


def _prune(target: pathlib.Path) -> None:
    """Remove all but the latest: other checkouts may have other packages or seeds."""
    kept = sorted(target.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime)
    for old in kept[:-_KEPT]:
        old.unlink(missing_ok=True)


def _hash(file: pathlib.Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def restore(home: layout.Layout) -> None:
    """Put the snapshot in the place of the data, with `RESTORED` instead of `SEEDED`.

    Raises:
        DamagedError: none exists, or it was not what had been written; it is removed.
        LabError: it could not be unpacked.
    """
    kept = find(home)
    part = home.root / "restoring"
    shutil.rmtree(part, ignore_errors=True)
    if kept is None:
        raise DamagedError("the snapshot of OpenStack has just been removed")
    try:
        if _hash(kept) != kept.name.removesuffix(_SUFFIX).rpartition("-")[2]:
            raise zlib.error("its content does not match its hash")
        with tarfile.open(kept, "r:gz") as archive:
            # Our own, by its hash; before Python 3.11.4 there are no filters.
            archive.extractall(part)  # noqa: S202
        (part / "data" / SEEDED).replace(part / "data" / RESTORED)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        kept.unlink(missing_ok=True)
        raise DamagedError(
            f"the snapshot {kept.name} is damaged ({error}); it is removed"
        ) from error
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise errors.LabError(
            f"the kept data could not be unpacked to {home.root}: {error}"
        ) from error
    shutil.rmtree(home.data, ignore_errors=True)
    (part / "data").replace(home.data)
    shutil.rmtree(part, ignore_errors=True)
