"""What an image contains, as images/NAME/image.yaml describes it."""

import dataclasses
import pathlib

import msgspec
import yaml

from lib.lab import errors


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One image.

    pex: name of the component's PEX. main: module and function that are the entry
    point. programs: of the lab's Go modules, by name. folders: empty ones, for mounts.
    user: number of user and group.
    """

    pex: str
    main: str
    programs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    user: int


def read(root: pathlib.Path, name: str) -> Description:
    """Return the description of an image. root: of the checkout.

    Raises:
        LabError: there is none, or it is malformed.
    """
    file = root / "images" / name / "image.yaml"
    try:
        document = yaml.safe_load(file.read_text())
        return msgspec.convert(document, Description)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise errors.LabError(f"image {name}: {error}") from error
