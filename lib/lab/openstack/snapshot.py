"""Keeps the data of a freshly seeded lab, so that the next start can begin there.

Rules: a snapshot is named after everything that decides its content; it appears in
the cache when it is complete; it holds addresses with ports, but no paths.
"""

import os
import pathlib
import shutil
import tarfile
import zlib

from lib.lab import errors
from lib.lab.openstack import layout, resources

_FORMAT = "1"


def file(home: layout.Layout) -> pathlib.Path:
    """Say where the snapshot for this lab's ports is, or would be."""
    key = resources.digest(
        _FORMAT,
        home.install.key,
        resources.seed_digest(),
        str(home.where.port_base),
    )
    folder = home.where.cache / "openstack" / "snapshots"
    return folder / f"{home.where.port_base}-{key}.tar.gz"


def take(home: layout.Layout) -> None:
    """Keep the data as it is; the database must not run."""
    target = file(home)
    target.parent.mkdir(parents=True, exist_ok=True)
    for old in target.parent.glob(f"{home.where.port_base}-*"):
        old.unlink(missing_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.new")
    with tarfile.open(part, "w:gz", compresslevel=1) as archive:
        archive.add(home.data, arcname="data")
    part.chmod(0o600)
    part.replace(target)


def restore(home: layout.Layout) -> bool:
    """Put a kept snapshot in the place of the data; False when there is none.

    A broken one is removed, as if there were none.
    """
    kept = file(home)
    part = home.root / "restoring"
    shutil.rmtree(part, ignore_errors=True)
    try:
        with tarfile.open(kept, "r:gz") as archive:
            archive.extractall(part, filter="data")
    except FileNotFoundError:
        return False
    except (tarfile.TarError, EOFError, zlib.error):
        kept.unlink(missing_ok=True)
        return False
    except OSError as error:
        raise errors.LabError(
            f"the kept data could not be unpacked to {home.root}: {error}"
        ) from error
    shutil.rmtree(home.data, ignore_errors=True)
    (part / "data").replace(home.data)
    shutil.rmtree(part, ignore_errors=True)
    return True
