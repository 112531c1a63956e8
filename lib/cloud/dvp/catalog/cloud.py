"""The catalog of one project: storage classes of the parent, and volumes of a cluster.

A cycle lists each of the two once; nothing is watched between cycles.
"""

from collections.abc import Callable
from typing import TypeVar

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.catalog import discovery_document
from lib.cloud.dvp.kinds import ParentStorageClass
from lib.cloud.dvp.parent import Parent
from lib.cloud.dvp.volumes import disk_names, translate
from lib.cloud.model import Seen, Unknown
from lib.cloud.volumes import VolumePhase

T = TypeVar("T")

_OF_CLASSES = frozenset({CatalogPart.DOCUMENT, CatalogPart.STORAGE_TYPES})


class DvpCatalog:
    """Implements `lib.cloud.catalog.Catalog`."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    @property
    def parts(self) -> frozenset[CatalogPart]:
        """See the protocol; VMs have no sizes to choose from, and no conditions."""
        return _OF_CLASSES | {CatalogPart.VOLUMES}

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol."""
        classes: Seen[tuple[ParentStorageClass, ...]] | Unknown = Seen(())
        if _OF_CLASSES & request.parts:
            classes = _caught(self._classes)
        return catalog.CatalogReading(
            document=(
                _of(
                    classes,
                    lambda read: discovery_document.write(
                        read, request.installer_document
                    ),
                )
                if CatalogPart.DOCUMENT in request.parts
                else None
            ),
            volumes=(
                _caught(lambda: self._volumes(request.cluster_id))
                if CatalogPart.VOLUMES in request.parts
                else None
            ),
            storage_types=(
                _of(classes, discovery_document.storage_types)
                if CatalogPart.STORAGE_TYPES in request.parts
                else None
            ),
        )

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol; the ID of a class is its name."""
        return _caught(
            lambda: self._parent.get(kinds.STORAGE_CLASSES, type_id) is not None
        )

    def _classes(self) -> tuple[ParentStorageClass, ...]:
        return self._parent.list_labelled(kinds.STORAGE_CLASSES, "")

    def _volumes(self, cluster_id: str) -> tuple[catalog.CatalogVolume, ...]:
        disks = self._parent.list_labelled(
            kinds.VIRTUAL_DISKS, ownership.selector(cluster_id)
        )
        return tuple(
            catalog.CatalogVolume(
                disk.metadata.name,
                disk_names.volume_name(disk),
                disk.metadata.creation_timestamp,
                translate.volume(disk, (), {}).phase is VolumePhase.CREATING,
            )
            for disk in disks
            if disk_names.is_volume(disk)
        )


def _caught(read: Callable[[], T]) -> Seen[T] | Unknown:
    try:
        return Seen(read())
    except errors.CloudError as error:
        return Unknown(error)


def _of(
    classes: Seen[tuple[ParentStorageClass, ...]] | Unknown,
    make: Callable[[tuple[ParentStorageClass, ...]], T],
) -> Seen[T] | Unknown:
    if isinstance(classes, Unknown):
        return classes
    return _caught(lambda: make(classes.value))
