"""Validation and push of images by crane, of Google's go-containerregistry.

Credentials are those of `docker login`; crane reads them itself.
"""

import os
import pathlib

from lib.lab import places
from lib.lab.artifacts import commands, programs
from lib.lab.images.images import Image
from lib.lab.run import progress

GROUP = "crane"
"""Of the program that must be built."""


def build(where: places.Places, shown: progress.Progress) -> None:
    """Build crane, unless it is built.

    Raises:
        LabError: it could not be built.
    """
    programs.build(where, [GROUP], shown)


def validate(where: places.Places, file: pathlib.Path) -> None:
    """Check the digests, sizes and layers of an archive.

    Raises:
        LabError: crane rejects it.
    """
    _crane(where, "validate", "--tarball", str(file), failure=f"{file.name} is invalid")


def push(where: places.Places, image: Image, registry: str) -> str:
    """Push a layout to a registry; return the reference with its digest.

    registry: host and path, such as registry.example/mooring.

    Raises:
        LabError: the registry rejects it, or cannot be reached.
    """
    name = image.reference.rpartition("/")[2]
    target = f"{registry}/{name}"
    failure = f"{target}: cannot be pushed"
    _crane(where, "push", str(image.layout), target, failure=failure)
    return f"{target}@{image.digest}"


def validate_remote(where: places.Places, reference: str) -> None:
    """Check an image in a registry as `validate` does.

    Raises:
        LabError: crane rejects it.
    """
    _crane(where, "validate", "--remote", reference, failure=f"{reference} is invalid")


def _crane(where: places.Places, *words: str, failure: str) -> None:
    program = programs.path(where, "crane")
    commands.run([program, *words], failure=failure, env=os.environ)
