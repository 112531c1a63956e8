"""The kinds of Cluster API that the flow reads, and what differs between providers.

Source: kubernetes-sigs/cluster-api docs/book/src/developer/providers/contracts.
"""

import dataclasses
from collections.abc import Mapping

import msgspec

from lib.kube import objects
from lib.kube.resources import Resource

CORE = "cluster.x-k8s.io"
CLUSTER_NAME = f"{CORE}/cluster-name"
CONTROL_PLANE = f"{CORE}/control-plane"
PAUSED = f"{CORE}/paused"
WATCH_FILTER = f"{CORE}/watch-filter"
MANAGED_BY = f"{CORE}/managed-by"

Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Kinds:
    """All that the flow knows of a provider's kinds.

    machine: the provider's machine. finalizer: of it. condition: type of the condition
    that shows the state of the instance. field_manager: of its status. mirrors: paths
    in status that repeat `initialization.provisioned` for older contracts. id_path:
    where in spec the ID of the instance, the provider ID without its scheme, is
    written as well; empty: nowhere. core_version: in which Machine and Cluster are
    read. infrastructure: the infrastructure cluster, whose spec is part of the facts
    about a machine; None: no machine needs it.
    """

    machine: Resource
    finalizer: str
    condition: str
    field_manager: str
    mirrors: tuple[Path, ...] = (("ready",),)
    id_path: Path = ()
    core_version: str = "v1beta2"
    infrastructure: Resource | None = None

    @property
    def owners(self) -> Resource:
        """Machine of Cluster API."""
        return Resource(CORE, self.core_version, "machines", "Machine", True)

    @property
    def clusters(self) -> Resource:
        """Cluster of Cluster API."""
        return Resource(CORE, self.core_version, "clusters", "Cluster", True)


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """One owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""


class OwnedMeta(objects.ObjectMeta, frozen=True, rename="camel"):
    """Metadata with the owners."""

    owner_references: tuple[OwnerReference, ...] = ()

    def owner(self, kind: str) -> OwnerReference | None:
        """Return the reference to an owner of a kind of Cluster API; None: none."""
        for reference in self.owner_references:
            group = reference.api_version.partition("/")[0]
            if (group, reference.kind) == (CORE, kind):
                return reference
        return None


class ProviderObject(msgspec.Struct, frozen=True):
    """An object of the provider; its spec is opaque to the flows."""

    metadata: OwnedMeta
    spec: Mapping[str, object] = msgspec.field(default_factory=dict)
    status: Mapping[str, object] = msgspec.field(default_factory=dict)

    @property
    def key(self) -> str:
        """namespace/name."""
        return self.metadata.key

    @property
    def is_deleted(self) -> bool:
        """True once its deletion was requested."""
        return self.metadata.deletion_timestamp is not None


class MachineObject(ProviderObject, frozen=True):
    """The provider's machine."""

    @property
    def provider_id(self) -> str:
        """spec.providerID, empty without one."""
        value = self.spec.get("providerID")
        return value if isinstance(value, str) else ""

    @property
    def is_provisioned(self) -> bool:
        """status.initialization.provisioned, as recorded."""
        return at(self.status, ("initialization", "provisioned")) is True

    @property
    def owner(self) -> OwnerReference | None:
        """Reference to the Machine that owns it; None without one."""
        return self.metadata.owner("Machine")


class ClusterObject(ProviderObject, frozen=True):
    """The provider's infrastructure cluster."""

    @property
    def has_endpoint(self) -> bool:
        """Report whether spec.controlPlaneEndpoint is set."""
        return bool(at(self.spec, ("controlPlaneEndpoint", "host")))

    @property
    def owner(self) -> OwnerReference | None:
        """Reference to the Cluster that owns it; None without one."""
        return self.metadata.owner("Cluster")


class MachineBootstrap(msgspec.Struct, frozen=True, rename="camel"):
    """spec.bootstrap of a Machine."""

    data_secret_name: str | None = None


class ObjectName(msgspec.Struct, frozen=True):
    """Reference to an object, by its kind and name."""

    name: str = ""
    kind: str = ""


class OwnerSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Machine's spec that the flow reads."""

    cluster_name: str = ""
    bootstrap: MachineBootstrap = MachineBootstrap()
    failure_domain: str | None = None
    infrastructure_ref: ObjectName = ObjectName()


class OwnerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Machine's status that the flow reads."""

    node_ref: ObjectName | None = None


class OwnerMachine(msgspec.Struct, frozen=True):
    """A Machine of Cluster API."""

    metadata: objects.ObjectMeta
    spec: OwnerSpec = OwnerSpec()
    status: OwnerStatus = OwnerStatus()


class ControlPlaneEndpoint(msgspec.Struct, frozen=True):
    """Address of the API server of a cluster; empty: not set."""

    host: str = ""
    port: int = 0


NO_ENDPOINT = ControlPlaneEndpoint()


class ClusterSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Cluster's spec that the flow reads."""

    paused: bool | None = None
    control_plane_endpoint: ControlPlaneEndpoint = NO_ENDPOINT
    infrastructure_ref: ObjectName = ObjectName()


class Initialization(msgspec.Struct, frozen=True, rename="camel"):
    """status.initialization of a Cluster."""

    infrastructure_provisioned: bool | None = None


class ClusterStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Cluster's status that the flow reads, of both contracts."""

    initialization: Initialization | None = None
    infrastructure_ready: bool | None = None


class OwnerCluster(msgspec.Struct, frozen=True):
    """A Cluster of Cluster API."""

    metadata: objects.ObjectMeta
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    @property
    def is_provisioned(self) -> bool:
        """Report whether machines may be created in it."""
        begun = self.status.initialization
        is_new = begun is not None and begun.infrastructure_provisioned
        return bool(is_new or self.status.infrastructure_ready)


def at(document: object, path: Path) -> object:
    """Return the value at a path of a document; None if there is none."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def nested(path: Path, value: object) -> dict[str, object]:
    """Return a document with one value at a path."""
    first, *rest = path
    return {first: nested(tuple(rest), value) if rest else value}


def merged(
    first: Mapping[str, object], second: Mapping[str, object]
) -> dict[str, object]:
    """Return both documents in one; of two values at one path the second."""
    result = dict(first)
    for name, value in second.items():
        before = result.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[name] = merged(before, value)
        else:
            result[name] = value
    return result
