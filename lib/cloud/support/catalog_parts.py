"""The parts of a catalog that a cloud reads from one list of storage types."""

import dataclasses
from collections.abc import Callable
from typing import Generic, TypeVar

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown

T = TypeVar("T")
R = TypeVar("R")
_OF_STORAGE = frozenset({CatalogPart.DOCUMENT, CatalogPart.STORAGE_TYPES})
PARTS = _OF_STORAGE | {CatalogPart.VOLUMES}
"""Of a cloud whose VMs have no sizes to choose from, and that reports no conditions."""


@dataclasses.dataclass(frozen=True, slots=True)
class StorageReaders(Generic[T]):
    """Functions that read a cloud; each raises CloudError.

    storage: lists its own objects for storage types, once for all parts. document,
    storage_types: make a part of them. volumes: lists the volumes of the cluster.
    """

    storage: Callable[[], T]
    document: Callable[[T], catalog.Document]
    storage_types: Callable[[T], tuple[catalog.StorageType, ...]]
    volumes: Callable[[], tuple[catalog.CatalogVolume, ...]]


def read(
    parts: frozenset[CatalogPart], readers: StorageReaders[T]
) -> catalog.CatalogReading:
    """Return the parts that are requested; a failed read is Unknown in its own part."""
    # Not read where no part needs it; `part` then returns None.
    storage = caught(readers.storage) if _OF_STORAGE & parts else None

    def part(kind: CatalogPart, make: Callable[[T], R]) -> Seen[R] | Unknown | None:
        if kind not in parts or storage is None:
            return None
        if isinstance(storage, Unknown):
            return storage
        value = storage.value
        return caught(lambda: make(value))

    return catalog.CatalogReading(
        document=part(CatalogPart.DOCUMENT, readers.document),
        volumes=caught(readers.volumes) if CatalogPart.VOLUMES in parts else None,
        storage_types=part(CatalogPart.STORAGE_TYPES, readers.storage_types),
    )


def caught(read_part: Callable[[], R]) -> Seen[R] | Unknown:
    """Read a part; an error of the cloud is Unknown."""
    try:
        return Seen(read_part())
    except errors.CloudError as error:
        return Unknown(error)
