"""Whether a disk has room for what is about to be written."""

import pathlib
import shutil

from lib.lab import errors

_MB = 10**6


def require(folder: pathlib.Path, needed_bytes: int, what: str) -> None:
    """Check, before anything begins, that a folder's disk has room.

    folder: it need not exist yet. what: needs the room ("OpenStack's data").

    Raises:
        LabError: it has not.
    """
    existing = next(above for above in (folder, *folder.parents) if above.exists())
    free = shutil.disk_usage(existing).free
    if free < needed_bytes:
        raise errors.LabError(
            f"the disk of {existing} has {free // _MB} MB left, but {what} needs"
            f" {needed_bytes // _MB} MB; make room there, or have the lab elsewhere"
            " with XDG_STATE_HOME"
        )
