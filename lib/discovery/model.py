"""Snapshots and actions of a cycle of discovery.

A cycle has steps, each a key of the queue: it is observed, decided, carried out,
retried and reported by itself, so that no step hides another.
"""

import dataclasses
import datetime
import enum
from collections.abc import Collection, Mapping

import msgspec

from lib.cloud import errors as cloud_errors
from lib.cloud.catalog import (
    CatalogPart,
    CatalogVolume,
    Condition,
    InstanceType,
    StorageType,
)
from lib.discovery import storage_classes
from lib.discovery.provider import Provider
from lib.kube import errors as kube_errors
from lib.kube import objects
from lib.kube import persistent_volumes as kube_volumes

NAMESPACE = "kube-system"
INPUT_SECRET = "d8-provider-cluster-configuration"  # noqa: S105 - a name
INPUT_KEY = "cloud-provider-discovery-data.json"
INPUT_CONFIGURATION = "cloud-provider-cluster-configuration.yaml"
DATA_KEY = "discovery-data.json"
CATALOG = "for-cluster-autoscaler"
CONDITIONS_MAP = "d8-cloud-provider-conditions"
CONDITIONS_KEY = "conditions"
"""Names that consumers know. Source: deckhouse, go_lib/cloud-data/reconciler.go."""

ORPHAN_MIN_AGE = datetime.timedelta(minutes=15)
"""A volume is created before its PersistentVolume; a clone takes minutes."""

OWNERSHIP_LABEL = ("mooring.io/made-by", "cloud-data-discoverer")
"""Label of the StorageClasses that are owned by cloud-data-discoverer."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
"""Kubernetes reads both. Source: kubernetes pkg/apis/storage/util, helpers.go."""
DEFAULT_CHOICE = "mooring.io/default-class"
"""Annotation of every owned class: the name of the default class, so that the choice
outlives the class itself. Of the Secret with the discovery data while the default class
is recreated and no other class is owned."""
TYPE_ID = "mooring.io/volume-type-id"
"""Annotation of an owned class: the ID of its volume type, which outlives its name."""


class DiscoveryStep(enum.StrEnum):
    """The steps of a cycle, in their order; the values are labels of metrics."""

    CONDITIONS = "conditions"
    INSTANCE_TYPES = "instance_types"
    DISCOVERY_DATA = "discovery_data"
    ORPHANED_DISKS = "orphaned_disks"
    STORAGE_CLASSES = "storage_classes"


PARTS: Mapping[DiscoveryStep, CatalogPart] = {
    DiscoveryStep.CONDITIONS: CatalogPart.CONDITIONS,
    DiscoveryStep.INSTANCE_TYPES: CatalogPart.INSTANCE_TYPES,
    DiscoveryStep.DISCOVERY_DATA: CatalogPart.DOCUMENT,
    DiscoveryStep.ORPHANED_DISKS: CatalogPart.VOLUMES,
    DiscoveryStep.STORAGE_CLASSES: CatalogPart.STORAGE_TYPES,
}
"""Part of the catalog that each step requires; without it the step is omitted."""


class InvalidCatalog(Exception):
    """The catalog can't be published; the message names each field."""


StepError = cloud_errors.CloudError | kube_errors.KubeError | InvalidCatalog


@dataclasses.dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """Settings of the user.

    module_config: used where the installer's document does not exist. cluster_id:
    empty disables the detection of orphaned disks. orphan_min_age: minimum age of a
    volume without a PersistentVolume to be reported. period_s: of the cycle.
    provider: settings of the cloud's entry point. parts: those that the cloud
    supports. manages_classes: whether StorageClasses are created. rules: for their
    choice.
    """

    module_config: Mapping[str, object] = dataclasses.field(default_factory=dict)
    cluster_id: str = ""
    orphan_min_age: datetime.timedelta = ORPHAN_MIN_AGE
    period_s: float = 3600.0
    manages_classes: bool = False
    provider: Provider = dataclasses.field(default_factory=Provider)
    parts: frozenset[CatalogPart] = frozenset(CatalogPart)
    rules: storage_classes.StorageClassRules = dataclasses.field(
        default_factory=storage_classes.StorageClassRules
    )

    @property
    def steps(self) -> tuple[DiscoveryStep, ...]:
        """The steps of this discoverer."""
        return tuple(
            step
            for step in DiscoveryStep
            if PARTS[step] in self.parts
            and (self.manages_classes or step is not DiscoveryStep.STORAGE_CLASSES)
        )


# Objects of the API server: the fields that are read.


class CatalogItem(msgspec.Struct, frozen=True, rename="camel"):
    """One instance type of an InstanceTypesCatalog, in canonical quantities."""

    name: str
    cpu: str
    memory: str
    root_disk: str


class StoredCatalog(msgspec.Struct, frozen=True, rename="camel"):
    """An InstanceTypesCatalog."""

    instance_types: tuple[CatalogItem, ...] | None = None


class StoredSecret(msgspec.Struct, frozen=True):
    """A Secret; its values are decoded."""

    data: Mapping[str, bytes] = {}
    metadata: objects.ObjectMeta = objects.ObjectMeta()


class StoredClass(msgspec.Struct, frozen=True, rename="camel"):
    """A StorageClass.

    type_parameter, our_provisioner: added by `observe`, no fields of Kubernetes. An
    empty our_provisioner stands for any.
    """

    metadata: objects.ObjectMeta
    provisioner: str = ""
    parameters: Mapping[str, str] = {}
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allow_volume_expansion: bool = False
    type_parameter: str = "type"
    our_provisioner: str = ""

    @property
    def is_owned(self) -> bool:
        """Whether it has the ownership label, and the provisioner of this cloud."""
        return self.metadata.labels.get(OWNERSHIP_LABEL[0]) == OWNERSHIP_LABEL[
            1
        ] and self.our_provisioner in ("", self.provisioner)

    @property
    def is_default(self) -> bool:
        """Whether this is the class of claims without one."""
        annotations = self.metadata.annotations
        keys = (DEFAULT_CLASS, BETA_DEFAULT_CLASS)
        return any(annotations.get(key) == "true" for key in keys)

    @property
    def volume_type(self) -> str:
        """The name of the volume type; empty without one."""
        return self.parameters.get(self.type_parameter, "")

    @property
    def type_id(self) -> str:
        """The ID of the volume type as it was when the class was written."""
        return self.metadata.annotations.get(TYPE_ID, "")

    @property
    def default_choice(self) -> str:
        """The name of the default class, as recorded in this one."""
        return self.metadata.annotations.get(DEFAULT_CHOICE, "")

    def is_listed(self, offered: Collection[StorageType]) -> bool:
        """Report whether the volume type is in a list, by its ID or its name."""
        return any(
            storage_type.name == self.volume_type
            or (self.type_id and storage_type.id == self.type_id)
            for storage_type in offered
        )


# Snapshots of the steps.


@dataclasses.dataclass(frozen=True, slots=True)
class FailedStep:
    """The step could not be observed."""

    step: DiscoveryStep
    error: StepError


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedConditions:
    """Conditions that the cloud reports.

    shown: name and message of those in the metric. stored: the ConfigMap, None without
    one. may_store: False without the permission.
    """

    conditions: tuple[Condition, ...]
    shown: frozenset[tuple[str, str]]
    stored: bytes | None = None
    may_store: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedInstanceTypes:
    """stored: the InstanceTypesCatalog, None without one."""

    offered: tuple[InstanceType, ...]
    stored: bytes | None


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedDocument:
    """Snapshot for the discovery data.

    problems: of the document. stored: the Secret, None without one. is_configured:
    whether the installer's Secret has a configuration of the cluster.
    """

    document: bytes
    problems: tuple[str, ...]
    stored: bytes | None = dataclasses.field(repr=False)
    is_configured: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedDisks:
    """Snapshot for orphaned disks.

    shown: ID and name of those in the metric. claims: PersistentVolumeClaims;
    read only when some volume is not referenced by any PersistentVolume.
    """

    volumes: tuple[CatalogVolume, ...]
    persistent: tuple[kube_volumes.PersistentVolume, ...]
    shown: frozenset[tuple[str, str]]
    claims: tuple[kube_volumes.VolumeClaim, ...] = ()


class MissingType(enum.Enum):
    """State of a volume type that is not in the list."""

    RECENT = "not in the list for less than a discovery period"
    ABSENT = "not found by its ID either"
    EXISTS = "not in the list, but found by its ID"
    UNKNOWN = "not in the list, and could not be read by its ID"


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedClasses:
    """Snapshot for StorageClasses.

    offered: types of storage. stored: all StorageClasses, owned and not owned.
    missing: by name of an owned class whose type is not offered. secret: that of the
    discovery data, None without one. recorded: the name of the default class that it
    holds; empty without one.
    """

    offered: tuple[StorageType, ...]
    stored: tuple[StoredClass, ...]
    missing: Mapping[str, MissingType] = dataclasses.field(default_factory=dict)
    secret: bytes | None = dataclasses.field(default=None, repr=False)
    recorded: str = ""


Snapshot = (
    FailedStep
    | ObservedConditions
    | ObservedInstanceTypes
    | ObservedDocument
    | ObservedDisks
    | ObservedClasses
)


def step_of(snapshot: Snapshot) -> DiscoveryStep:
    """Return the step of a snapshot."""
    match snapshot:
        case FailedStep(step=step):
            return step
        case ObservedConditions():
            return DiscoveryStep.CONDITIONS
        case ObservedInstanceTypes():
            return DiscoveryStep.INSTANCE_TYPES
        case ObservedDocument():
            return DiscoveryStep.DISCOVERY_DATA
        case ObservedDisks():
            return DiscoveryStep.ORPHANED_DISKS
        case ObservedClasses():
            return DiscoveryStep.STORAGE_CLASSES


# Actions of the steps.


@dataclasses.dataclass(frozen=True, slots=True)
class ShowConditions:
    """Set the metric to these unmet conditions: name and message."""

    unmet: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class StoreConditions:
    """Write the text to the ConfigMap; base: as observed, None to create it."""

    text: str
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StoreCatalog:
    """Write these items to the InstanceTypesCatalog; base: as above."""

    items: tuple[CatalogItem, ...]
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StoreDocument:
    """Write the document to the Secret; base: as above."""

    document: bytes
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ShowOrphans:
    """Set the metric to these disks: ID and name."""

    disks: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class CreateClass:
    """Create a StorageClass of a type. choice: value of an annotation, if not empty."""

    desired: storage_classes.StorageClass
    offered: StorageType
    choice: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteClass:
    """Delete an owned StorageClass, exactly as observed."""

    name: str
    uid: str
    resource_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class ChangeClass:
    """Change mutable fields of an owned StorageClass, as observed.

    is_default: None: unchanged. type_id, choice: values of annotations; empty:
    unchanged. is_expandable: value of allowVolumeExpansion.
    """

    name: str
    resource_version: str
    is_default: bool | None
    type_id: str = ""
    choice: str = ""
    is_expandable: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class RecordDefault:
    """Record the default's name in the Secret of the discovery data.

    name: empty to remove the record. base: the Secret as observed.
    """

    name: str
    base: bytes = dataclasses.field(repr=False)


Action = (
    ShowConditions
    | StoreConditions
    | StoreCatalog
    | StoreDocument
    | ShowOrphans
    | CreateClass
    | DeleteClass
    | ChangeClass
    | RecordDefault
)
