"""What a cycle of discovery sees, and what it may do about it.

A cycle has steps, each a key of the queue: it is observed, decided, carried out, tried
again and told of by itself, so that none hides another.
"""

import dataclasses
import enum
from collections.abc import Mapping

import msgspec

from lib.cloud import errors as cloud_errors
from lib.cloud.catalog import Condition, InstanceType, StorageType, Volume
from lib.discovery import storage_classes
from lib.kube import errors as kube_errors
from lib.kube import objects

NAMESPACE = "kube-system"
INPUT_SECRET = "d8-provider-cluster-configuration"  # noqa: S105 - a name
INPUT_KEY = "cloud-provider-discovery-data.json"
DATA_SECRET = "d8-cloud-provider-discovery-data"  # noqa: S105 - a name
DATA_KEY = "discovery-data.json"
CATALOG = "for-cluster-autoscaler"
CONDITIONS_MAP = "d8-cloud-provider-conditions"
CONDITIONS_KEY = "conditions"
"""Names that consumers know. Source: deckhouse, go_lib/cloud-data/reconciler.go."""

MARK = ("mooring.io/made-by", "cloud-data-discoverer")
"""The label of the StorageClasses that are ours."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Source: Kubernetes, StorageClass annotations."""


class Step(enum.StrEnum):
    """The steps of a cycle, in their order; the values are labels of metrics."""

    CONDITIONS = "conditions"
    INSTANCE_TYPES = "instance_types"
    DISCOVERY_DATA = "discovery_data"
    ORPHANED_DISKS = "orphaned_disks"
    STORAGE_CLASSES = "storage_classes"


class Invalid(Exception):
    """What was read can't be published; the message names each field."""


Trouble = cloud_errors.CloudError | kube_errors.KubeError | Invalid


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose.

    module_config: stands in for the installer's document where there is none.
    cluster_id: empty switches the look for orphaned disks off. provisioner: of the
    StorageClasses. manages_classes: whether there are to be any. rules: which of them.
    """

    module_config: Mapping[str, object] = dataclasses.field(default_factory=dict)
    cluster_id: str = ""
    manages_classes: bool = False
    provisioner: str = ""
    rules: storage_classes.Rules = dataclasses.field(
        default_factory=storage_classes.Rules
    )

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that this discoverer takes."""
        return tuple(
            step
            for step in Step
            if self.manages_classes or step is not Step.STORAGE_CLASSES
        )


# Objects of the API server, as far as they are read.


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
    """A Secret; its values are base64 on the way only."""

    data: Mapping[str, bytes] = {}


class StoredConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap."""

    data: Mapping[str, str] = {}


class CsiSource(msgspec.Struct, frozen=True, rename="camel"):
    """Of a PersistentVolume that a CSI driver serves."""

    volume_handle: str = ""


class CinderSource(msgspec.Struct, frozen=True):
    """Of a PersistentVolume of the in-tree driver."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PersistentVolumeSpec(msgspec.Struct, frozen=True):
    """What the volume is in the cloud."""

    csi: CsiSource | None = None
    cinder: CinderSource | None = None


class PersistentVolume(msgspec.Struct, frozen=True):
    """A PersistentVolume."""

    metadata: objects.ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()

    @property
    def handle(self) -> str:
        """The volume's id in the cloud; empty for a kind that is none of ours."""
        if self.spec.csi is not None:
            return self.spec.csi.volume_handle
        return self.spec.cinder.volume_id if self.spec.cinder is not None else ""


class StoredClass(msgspec.Struct, frozen=True, rename="camel"):
    """A StorageClass."""

    metadata: objects.ObjectMeta
    provisioner: str = ""
    parameters: Mapping[str, str] = {}
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allow_volume_expansion: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it carries our mark."""
        return self.metadata.labels.get(MARK[0]) == MARK[1]

    @property
    def is_default(self) -> bool:
        """Whether claims without a class get this one."""
        return self.metadata.annotations.get(DEFAULT_CLASS) == "true"


# What a pass sees.


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """The step could not be observed."""

    step: Step
    error: Trouble


@dataclasses.dataclass(frozen=True, slots=True)
class SeenConditions:
    """What the cloud tells about itself.

    shown: those that the metric shows, name and message. stored: the ConfigMap, None
    without one. may_store: False when we have no right to it.
    """

    conditions: tuple[Condition, ...]
    shown: frozenset[tuple[str, str]]
    stored: bytes | None = None
    may_store: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class SeenInstanceTypes:
    """stored: the InstanceTypesCatalog, None without one."""

    offered: tuple[InstanceType, ...]
    stored: bytes | None


@dataclasses.dataclass(frozen=True, slots=True)
class SeenDocument:
    """problems: what is wrong with the document. stored: the Secret, None without."""

    document: bytes
    problems: tuple[str, ...]
    stored: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class SeenDisks:
    """shown: those that the metric shows, id and name."""

    volumes: tuple[Volume, ...]
    persistent: tuple[PersistentVolume, ...]
    shown: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class SeenClasses:
    """offered: types of storage. stored: all StorageClasses, ours and others'."""

    offered: tuple[StorageType, ...]
    stored: tuple[StoredClass, ...]


Snapshot = (
    Failed | SeenConditions | SeenInstanceTypes | SeenDocument | SeenDisks | SeenClasses
)


def step_of(snapshot: Snapshot) -> Step:
    """Say which step a snapshot is of."""
    match snapshot:
        case Failed(step=step):
            return step
        case SeenConditions():
            return Step.CONDITIONS
        case SeenInstanceTypes():
            return Step.INSTANCE_TYPES
        case SeenDocument():
            return Step.DISCOVERY_DATA
        case SeenDisks():
            return Step.ORPHANED_DISKS
        case SeenClasses():
            return Step.STORAGE_CLASSES


# What a pass may do.


@dataclasses.dataclass(frozen=True, slots=True)
class ShowConditions:
    """Let the metric show these unmet conditions, name and message, and no others."""

    unmet: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class StoreConditions:
    """Put the text into the ConfigMap; base: it as it was seen, None to make it."""

    text: str
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StoreCatalog:
    """Let the InstanceTypesCatalog hold these; base: as above."""

    items: tuple[CatalogItem, ...]
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StoreDocument:
    """Let the Secret hold this and nothing else; base: as above."""

    document: bytes
    base: bytes | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ShowOrphans:
    """Let the metric show these, id and name, and no others."""

    disks: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class CreateClass:
    """Make a StorageClass."""

    wanted: storage_classes.StorageClass


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteClass:
    """Delete a StorageClass of ours, exactly as it was seen."""

    name: str
    uid: str
    resource_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class ChangeClass:
    """Change what can be changed of a StorageClass of ours, as it was seen.

    is_default: None leaves it as it is.
    """

    name: str
    resource_version: str
    is_default: bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class Complain:
    """Say what the user must put right; the step counts as failed until then."""

    reasons: tuple[str, ...]


Action = (
    ShowConditions
    | StoreConditions
    | StoreCatalog
    | StoreDocument
    | ShowOrphans
    | CreateClass
    | DeleteClass
    | ChangeClass
    | Complain
)
