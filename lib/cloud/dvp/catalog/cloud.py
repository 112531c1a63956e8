"""The catalog of one project: storage classes of the parent, and volumes of a cluster.

A cycle lists each of the two once; nothing is watched between cycles.
"""

from lib.cloud import catalog
from lib.cloud.catalog import CatalogPart
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.catalog import discovery_document
from lib.cloud.dvp.kinds import ParentStorageClass
from lib.cloud.dvp.parent import Parent
from lib.cloud.dvp.volumes import disk_names, translate
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import catalog_parts
from lib.cloud.volumes import VolumePhase


class DvpCatalog:
    """Implements `lib.cloud.catalog.Catalog`."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    @property
    def parts(self) -> frozenset[CatalogPart]:
        """See the protocol."""
        return catalog_parts.PARTS

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol."""
        readers = catalog_parts.StorageReaders(
            self._classes,
            lambda classes: discovery_document.write(
                classes, request.installer_document
            ),
            discovery_document.storage_types,
            lambda: self._volumes(request.cluster_id),
        )
        return catalog_parts.read(request.parts, readers)

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol; the ID of a class is its name."""
        return catalog_parts.caught(
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
