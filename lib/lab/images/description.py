"""Content of an image, as images/NAME/image.yaml describes it."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import yaml

from lib.lab import errors

FOLDER = "images"
"""In a checkout."""
_BASE = "base.yaml"
_Value = TypeVar("_Value")

Packages = Mapping[str, tuple[str, ...]]
"""Debian packages by name, each with those of its programs that the image contains."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The layer that all images share. packages: of Debian 12."""

    packages: Packages


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One image.

    text: what it is, for its label. pex: name of the component's PEX. main: module
    and function of the entry point. packages: besides those of the base. programs: of
    the lab's Go modules, by name. folders: empty ones, for mounts. user: number of
    user and group.
    """

    text: str
    pex: str
    main: str
    packages: Packages = dataclasses.field(default_factory=dict)
    programs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    user: int


def names(root: pathlib.Path) -> tuple[str, ...]:
    """Return the names of all images. root: of the checkout."""
    return tuple(
        sorted(file.parent.name for file in (root / FOLDER).glob("*/image.yaml"))
    )


def read(root: pathlib.Path, name: str) -> Description:
    """Return the description of an image. root: of the checkout.

    Raises:
        LabError: it does not exist, or it is malformed.
    """
    return _read(root / FOLDER / name / "image.yaml", Description)


def base(root: pathlib.Path) -> Base:
    """Return the description of the layer that all images share.

    Raises:
        LabError: as `read`.
    """
    return _read(root / FOLDER / _BASE, Base)


def packages(root: pathlib.Path) -> tuple[str, ...]:
    """Return the Debian packages of all images.

    Raises:
        LabError: a description is malformed.
    """
    layers = [base(root).packages, *(read(root, x).packages for x in names(root))]
    return tuple(sorted({name for packages in layers for name in packages}))


def _read(file: pathlib.Path, kind: type[_Value]) -> _Value:
    try:
        return msgspec.convert(yaml.safe_load(file.read_text()), kind)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise errors.LabError(f"{file}: {error}") from error
