"""A catalog of a cloud that lives in memory."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown

T = TypeVar("T")


@dataclasses.dataclass
class FakeCatalog:
    """Implements `lib.cloud.catalog.Catalog`; tests change it at will.

    parts: those that it has. document: what is published, to which the input
    document's zones are added. marked: volumes by the cluster ID of their ownership
    metadata. faults: errors of parts, until removed. hidden_types: names of storage
    types that lists lack although they exist. type_fault: error of the reads of
    single types. reads: the parts of each read so far. before_call, after_call: run
    around each read; may raise to simulate a crash of the process.
    """

    parts: frozenset[CatalogPart] = frozenset(CatalogPart)
    conditions: tuple[catalog.Condition, ...] = ()
    instance_types: tuple[catalog.InstanceType, ...] = ()
    document: dict[str, object] = dataclasses.field(default_factory=dict)
    marked: dict[str, tuple[catalog.CatalogVolume, ...]] = dataclasses.field(
        default_factory=dict
    )
    storage_types: tuple[catalog.StorageType, ...] = ()
    faults: dict[CatalogPart, errors.CloudError] = dataclasses.field(
        default_factory=dict
    )
    hidden_types: set[str] = dataclasses.field(default_factory=set)
    type_fault: errors.CloudError | None = None
    reads: list[frozenset[CatalogPart]] = dataclasses.field(default_factory=list)
    before_call: Callable[[str], None] = lambda operation: None
    after_call: Callable[[str], None] = lambda operation: None

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol."""
        self.before_call("read catalog")
        self.reads.append(request.parts)
        reading = catalog.CatalogReading(
            conditions=self._part(request, CatalogPart.CONDITIONS, self.conditions),
            instance_types=self._part(
                request, CatalogPart.INSTANCE_TYPES, self.instance_types
            ),
            document=self._part(
                request,
                CatalogPart.DOCUMENT,
                self._document(request.installer_document),
            ),
            volumes=self._part(
                request, CatalogPart.VOLUMES, self.marked.get(request.cluster_id, ())
            ),
            storage_types=self._part(
                request,
                CatalogPart.STORAGE_TYPES,
                tuple(t for t in self.storage_types if t.name not in self.hidden_types),
            ),
        )
        self.after_call("read catalog")
        return reading

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol."""
        self.before_call("has storage type")
        fault = self.type_fault
        exists = any(storage_type.id == type_id for storage_type in self.storage_types)
        self.after_call("has storage type")
        return Seen(exists) if fault is None else Unknown(fault)

    def _document(self, values: Mapping[str, object]) -> catalog.Document:
        zones = {"zones": values["zones"]} if "zones" in values else {}
        return catalog.Document(json.dumps({**self.document, **zones}).encode())

    def _part(
        self, request: catalog.CatalogRequest, part: CatalogPart, value: T
    ) -> Seen[T] | Unknown | None:
        if part not in request.parts:
            return None
        fault = self.faults.get(part)
        return Seen(value) if fault is None else Unknown(fault)
