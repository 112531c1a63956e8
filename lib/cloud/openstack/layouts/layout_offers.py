"""What the inputs of a layout can name. Frozen values only."""

import dataclasses
from collections.abc import Mapping

from lib.cloud.layouts import ProjectObject


@dataclasses.dataclass(frozen=True, slots=True)
class ImageOffer:
    """An image of a project. min_disk_gib: the smallest disk that it boots from."""

    id: str
    name: str
    min_disk_gib: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutOffers:
    """What the inputs of a layout can name.

    zones: those that take servers. flavors: disk in GiB, by name. objects: all that a
    lookup by name can find.
    """

    zones: tuple[str, ...]
    flavors: Mapping[str, int]
    images: tuple[ImageOffer, ...]
    volume_types: frozenset[str]
    objects: tuple[ProjectObject, ...]
