"""The catalog of one data center: storage domains for data, and disks of a cluster.

A cycle lists data centers, the domains of one of them, and disks where they are asked
for; nothing is kept between cycles but which domains the last one had.
"""

from ovirtsdk4 import types

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import catalog_parts
from lib.cloud.zvirt import client, disk_tags
from lib.cloud.zvirt.catalog import domains_document
from lib.cloud.zvirt.catalog.domains_document import Domain
from lib.cloud.zvirt.documents import Item

READ_TIMEOUT_S = 120.0
_FLAG = "--data-center"


class EngineCatalog:
    """Implements `lib.cloud.catalog.Catalog`."""

    def __init__(self, access: client.EngineClient, data_center: str = "") -> None:
        """data_center: name or ID of that of the cluster; empty: the only one."""
        self._access = access
        self._data_center = data_center
        self._known: frozenset[str] = frozenset()
        self._last: dict[str, bool] = {}

    @property
    def parts(self) -> frozenset[CatalogPart]:
        """See the protocol."""
        return catalog_parts.PARTS

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol."""
        readers = catalog_parts.StorageReaders(
            self._domains,
            lambda domains: self._document(domains, request),
            domains_document.storage_types,
            lambda: self._volumes(request.cluster_id),
        )
        return catalog_parts.read(request.parts, readers)

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol; the data center of the domain must be shown, too."""
        return catalog_parts.caught(lambda: self._has(type_id))

    def _has(self, type_id: str) -> bool:
        witness = f"datacenters/{self._center().id}"
        path = f"storagedomains/{type_id}"
        return self._access.get(path, witness=witness) is not None

    def _document(
        self, domains: tuple[Domain, ...], request: catalog.CatalogRequest
    ) -> catalog.Document:
        """Write the document.

        A domain that is missing for the first time stays as it is, then it is disabled.
        """
        present = {domain.name: domain.is_enabled for domain in domains}
        gone = dict.fromkeys(self._known - present.keys(), False)
        former = {**gone, **self._last}
        self._known |= present.keys()
        self._last = present
        return domains_document.write(domains, former, request.installer_document)

    def _domains(self) -> tuple[Domain, ...]:
        """Return the domains for data. Only a data center shows their status."""
        path = f"datacenters/{self._center().id}/storagedomains"
        items = self._access.list(path, timeout_s=READ_TIMEOUT_S)
        return tuple(
            Domain(item.id, str(item.entity.name or ""), item.status)
            for item in items
            if item.entity.type == types.StorageDomainType.DATA and item.entity.name
        )

    def _center(self) -> Item:
        """Return the data center of the cluster.

        Raises:
            InvalidRequest: none has that name, or no name selects one of several.
        """
        centers = self._access.list("datacenters", timeout_s=READ_TIMEOUT_S)
        chosen = self._data_center
        matches = [
            item for item in centers if chosen in ("", item.id, item.entity.name)
        ]
        if len(matches) == 1:
            return matches[0]
        known = ", ".join(sorted(str(item.entity.name) for item in centers)) or "none"
        value = f'unsupported value "{chosen}"' if chosen else "not set"
        raise errors.InvalidRequest(
            f"{_FLAG}: {value}: must be one of the data centers of the engine: {known}",
            operation="list datacenters",
        )

    def _volumes(self, cluster_id: str) -> tuple[catalog.CatalogVolume, ...]:
        disks = self._access.list_all("disks", timeout_s=READ_TIMEOUT_S)
        return tuple(
            catalog.CatalogVolume(
                item.id,
                str(item.entity.alias or item.entity.name or ""),
                is_in_creation=item.status == "locked",
            )
            for item in disks
            if disk_tags.cluster_of(item.entity.description) == cluster_id
        )
