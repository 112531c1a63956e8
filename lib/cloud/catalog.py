"""What a cloud offers, as discovery reads it: part by part, each with its own luck.

Rules: a part that could not be read is `Unknown` and takes no other part with it.
"""

import dataclasses
import datetime
import enum
from collections.abc import Mapping
from typing import Protocol

from lib.cloud.model import Seen, Unknown


class CatalogPart(enum.Enum):
    """What can be asked for."""

    CONDITIONS = "conditions"
    INSTANCE_TYPES = "instance types"
    DOCUMENT = "discovery document"
    VOLUMES = "volumes"
    STORAGE_TYPES = "storage types"


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogRequest:
    """What to read.

    installer_document: the document that the installer left, or the module's settings
    in its place; only the provider reads it. cluster_id: in the ownership metadata of
    the requested volumes; must not be empty with VOLUMES.
    """

    parts: frozenset[CatalogPart]
    installer_document: Mapping[str, object] = dataclasses.field(default_factory=dict)
    cluster_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """Something about the cloud that its operator must see to, unless ok."""

    name: str
    message: str
    is_ok: bool


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceType:
    """A size that instances can have. Memory in MiB, root disk in GiB."""

    name: str
    vcpus: int
    memory_mib: int
    root_disk_gib: int


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogVolume:
    """A volume with the ownership metadata of the cluster.

    created: UTC, None when not reported. is_in_creation: its content is not complete.
    """

    id: str
    name: str
    created: datetime.datetime | None = None
    is_in_creation: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class StorageType:
    """A kind of storage of which volumes can be created, by the cloud's own name.

    id: stays the same when the type is renamed; empty where the cloud has none.
    is_default: it is the default of the cloud for the StorageClasses of its clusters.
    reclaim_policy, is_expandable: fields of a StorageClass of this type.
    """

    name: str
    id: str = ""
    is_default: bool = False
    reclaim_policy: str = "Delete"
    is_expandable: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """All that the cloud offers, as JSON in the provider's own published format."""

    body: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogReading:
    """Offers of a cloud; None for a part that was not requested.

    conditions: empty for a cloud that reports none. instance_types, volumes,
    storage_types: in the cloud's order.
    """

    conditions: Seen[tuple[Condition, ...]] | Unknown | None = None
    instance_types: Seen[tuple[InstanceType, ...]] | Unknown | None = None
    document: Seen[Document] | Unknown | None = None
    volumes: Seen[tuple[CatalogVolume, ...]] | Unknown | None = None
    storage_types: Seen[tuple[StorageType, ...]] | Unknown | None = None


class Catalog(Protocol):
    """Read-only access to what a cloud offers."""

    @property
    def parts(self) -> frozenset[CatalogPart]:
        """Return the parts that the cloud has; no other is asked for."""
        ...

    def read(self, request: CatalogRequest) -> CatalogReading:
        """Read these parts, now, each list once however many parts need it.

        Never raises for a part; bounded by a time-out of its own.
        """
        ...

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """Report whether a storage type exists, by a direct read of its ID.

        Never raises; bounded by a timeout of its own.
        """
        ...
