"""Images of components, as `mooring lab image` has built them."""

import json
import pathlib
import shlex
import tarfile
from collections.abc import Mapping, Sequence

from lib.lab import errors

FOLDER = "dist/images"
"""In a checkout, where `mooring lab image` writes them."""


def missing(folder: pathlib.Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the images of which the folder has no archive."""
    return tuple(name for name in names if not (folder / f"{name}.tar").is_file())


def find(folder: pathlib.Path, names: Sequence[str]) -> Mapping[str, pathlib.Path]:
    """Return the archives of some images, by name.

    Raises:
        LabError: one does not exist; names the command that builds it.
    """
    files = {name: folder / f"{name}.tar" for name in names}
    absent = missing(folder, names)
    if absent:
        is_usual = folder == pathlib.Path(FOLDER).absolute()
        words = [*absent, *([] if is_usual else ["--output", str(folder)])]
        raise errors.LabError(
            f"{files[absent[0]]}: not found: --charts needs the images of"
            f" {', '.join(names)}; in a checkout"
            f" `mooring lab image {shlex.join(words)}` builds what is missing"
        )
    return files


def reference(archive: pathlib.Path) -> str:
    """Return the reference of the image in an archive for `docker load`.

    Raises:
        LabError: it is no such archive.
    """
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile("manifest.json")
            rows = json.loads(file.read()) if file is not None else []
            return str(rows[0]["RepoTags"][0])
    except (tarfile.TarError, KeyError, ValueError, IndexError, TypeError) as error:
        raise errors.LabError(
            f"{archive}: no archive of an image ({error}); `mooring lab image` builds"
            " it again"
        ) from error
