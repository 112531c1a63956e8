"""The reference, as its charts, manifests or Deckhouse left it in a cluster."""

import dataclasses
import enum
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from lib.kube import (
    client,
    container_variables,
    errors,
    listing,
    objects,
    recommended_labels,
    resources,
)
from lib.migration import reference_callers, refused_volumes
from lib.migration.changed_items import ChangedItem
from lib.migration.reference_callers import FinalizedObject, ReferenceCaller
from lib.process import decoding

DRIVER = "cinder.csi.openstack.org"
_MANAGER = "openstack-cloud-controller-manager"
_DRIVER_PROGRAM = "cinder-csi-plugin"
_CSI_DRIVERS = resources.Resource(
    "storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False
)
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class ReplacedBy(enum.Enum):
    """Component that replaces a program of the reference."""

    MANAGER = "openstack-ccm"
    MACHINES = "machines"
    CSI_CONTROLLER = "csi-controller"
    CSI_NODE = "csi-node"
    DISCOVERER = "cloud-data-discoverer"


APPS: Mapping[str, ReplacedBy] = {
    "cloud-controller-manager": ReplacedBy.MANAGER,
    "csi-controller": ReplacedBy.CSI_CONTROLLER,
    "csi-node": ReplacedBy.CSI_NODE,
    "cloud-data-discoverer": ReplacedBy.DISCOVERER,
}
"""By the label `app`. Source: Deckhouse, modules 030-cloud-provider-*."""


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """The reference for one cloud.

    module: label of Deckhouse's objects. driver: name of the CSIDriver. apps: roles by
    the label `app`. has_programs: its programs are also recognized without Deckhouse.
    components: of this project, which may have Deckhouse's names. clusters: kind of its
    objects of Cluster API of which finalizers matter; None: it has none.
    """

    module: str
    driver: str
    apps: Mapping[str, ReplacedBy]
    has_programs: bool
    components: Collection[str]
    clusters: resources.Resource | None = None

    def searched(self) -> str:
        """Return by what the reference is recognized."""
        labels = f"the label module={self.module} and app={'|'.join(self.apps)}"
        if not self.has_programs:
            return labels
        return (
            f"an image or command line of {_MANAGER} or {_DRIVER_PROGRAM}, or {labels}"
        )


OPENSTACK = Family(
    "cloud-provider-openstack",
    DRIVER,
    APPS,
    has_programs=True,
    components=frozenset(role.value for role in ReplacedBy),
)


class _Mount(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class _Item(msgspec.Struct, frozen=True):
    key: str = ""
    path: str = ""


class _Secret(msgspec.Struct, frozen=True, rename="camel"):
    secret_name: str = ""
    items: tuple[_Item, ...] = ()


class _Volume(msgspec.Struct, frozen=True):
    name: str = ""
    secret: _Secret | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[container_variables.ContainerVariable, ...] = ()
    volume_mounts: tuple[_Mount, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The command line, with values of variables."""
        values = {variable.name: variable.value for variable in self.env}

        def value(match: re.Match[str]) -> str:
            return values.get(match[1], match[0])

        return tuple(_VARIABLE.sub(value, word) for word in (*self.command, *self.args))

    @property
    def proxy(self) -> dict[str, str | None]:
        """Variables of an HTTP proxy that are not empty, by name in upper case.

        None: the value is in another object. Upper case wins, as in the reference.
        """
        values = {
            variable.name: None if variable.value_from else variable.value.strip()
            for variable in self.env
        }
        return {
            name: values[spelling]
            for name in _PROXY
            for spelling in (name.lower(), name)
            if values.get(spelling, "") != ""
        }

    def runs(self, program: str) -> bool:
        """Report whether image or command line name a program."""
        image = self.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
        first = self.words[0] if self.words else ""
        return program in (image, pathlib.PurePath(first).name)


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _WorkloadSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()
    replicas: int | None = None


class _WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    desired_number_scheduled: int = 0


class _Workload(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()


class DriverSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Spec of the CSIDriver; empty where the object does not state a field."""

    pod_info_on_mount: bool = False
    fs_group_policy: str = ""
    volume_lifecycle_modes: tuple[str, ...] = ("Persistent",)


class _Driver(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: DriverSpec = DriverSpec()


class _Bare(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceProgram:
    """A program of the reference. kind: of its workload.

    flags: its command line, without the program. sidecars: command lines of the other
    containers, by container. secret, key: where its cloud.conf is; empty: not in a
    Secret. is_deckhouse: Deckhouse created it. variables: Secret and key of variables.
    desired: number of its pods. proxy: variables of an HTTP proxy, by name in upper
    case, which may contain a password; None: the value is in another object.
    """

    role: ReplacedBy
    kind: str
    namespace: str
    name: str
    flags: tuple[str, ...] = ()
    sidecars: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    secret: str = ""
    key: str = ""
    is_deckhouse: bool = False
    variables: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    desired: int = 0
    proxy: Mapping[str, str | None] = dataclasses.field(
        default_factory=dict, repr=False
    )

    def flag(self, name: str) -> str:
        """Return the value of a flag; empty if it is not set."""
        return flag(self.flags, name)


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """State of a cluster. control_plane: number of its hosts that are Nodes.

    extensions: objects by which API server or Cluster API call the reference.
    finalized: objects of Cluster API, with their finalizers.
    refused: volumes and claims that the CSI driver refuses.
    """

    programs: tuple[ReferenceProgram, ...]
    driver: DriverSpec | None = None
    control_plane: int = 0
    extensions: tuple[ReferenceCaller, ...] = ()
    finalized: tuple[FinalizedObject, ...] = ()
    refused: tuple[ChangedItem, ...] = ()


def running(observed: Observed) -> tuple[str, ...]:
    """Return the workloads with pods, by kind and name."""
    return tuple(
        f"{program.kind} {program.namespace}/{program.name}"
        for program in observed.programs
        if program.desired
    )


def flag(words: Sequence[str], name: str) -> str:
    """Return the value of a flag of a command line; "true" for a flag without one."""
    for number, word in enumerate(words):
        bare, separator, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or bare != name:
            continue
        following = words[number + 1] if number + 1 < len(words) else "-"
        return value if separator else "true" if following[:1] == "-" else following
    return ""


def read(api: client.Api, timeout_s: float, of: Family = OPENSTACK) -> Observed:
    """Read the cluster: seven calls, and a few for objects of Cluster API.

    timeout_s: of each.

    Raises:
        KubeError: one of the lists cannot be read.
    """
    programs = [
        program
        for kind in (resources.DEPLOYMENTS, resources.DAEMON_SETS)
        for workload in listing.read(api, kind, _Workload, timeout_s=timeout_s).items
        if (program := _program(kind.kind, workload, of)) is not None
    ]
    nodes = listing.read(api, resources.NODES, _Bare, timeout_s=timeout_s).items
    hosts = [node for node in nodes if _CONTROL_PLANE in node.metadata.labels]
    driver = _driver(api, timeout_s, of.driver)
    refused = refused_volumes.read(api, timeout_s, of.driver).items
    observed = Observed(tuple(programs), driver, len(hosts), refused=refused)
    if of.clusters is None:
        return observed
    # In other namespaces there are Services of others.
    spaces = {p.namespace for p in programs if p.namespace.startswith("d8-")}
    return dataclasses.replace(
        observed,
        extensions=reference_callers.read(api, timeout_s, of.module, spaces),
        finalized=reference_callers.finalized(api, timeout_s, of.clusters),
    )


def _driver(api: client.Api, timeout_s: float, name: str) -> DriverSpec | None:
    try:
        body = api.read(_CSI_DRIVERS, name, timeout_s=timeout_s)
    except errors.NotFound:
        return None
    return decoding.decode(body, _Driver).spec


def _program(kind: str, workload: _Workload, family: Family) -> ReferenceProgram | None:
    pod = workload.spec.template.spec
    labels = workload.metadata.labels
    if labels.get(recommended_labels.NAME) in family.components:
        return None
    is_deckhouse = labels.get("module") == family.module
    chosen = _role(labels if is_deckhouse else {}, pod, family)
    if chosen is None:
        return None
    role, own = chosen
    secret, key = _secret_of(pod, own)
    return ReferenceProgram(
        role,
        kind,
        workload.metadata.namespace,
        workload.metadata.name,
        tuple(word for word in own.words if word.startswith("-")),
        {other.name: other.words for other in pod.containers if other is not own},
        secret,
        key,
        is_deckhouse,
        {
            variable.name: (of.name, of.key)
            for variable in own.env
            if variable.value_from and (of := variable.value_from.secret_key_ref)
        },
        _desired(kind, workload),
        own.proxy,
    )


def _desired(kind: str, workload: _Workload) -> int:
    """Return the number of pods of a workload."""
    if kind == resources.DAEMON_SETS.kind:
        return workload.status.desired_number_scheduled
    replicas = workload.spec.replicas
    return 1 if replicas is None else replicas


def _role(
    labels: Mapping[str, str], pod: _PodSpec, family: Family
) -> tuple[ReplacedBy, _Container] | None:
    """Return the role and the container of a pod; None: not one of the reference."""
    names = {container.name for container in pod.containers}
    for container in pod.containers:
        if any(word.startswith("--cloud=") for word in container.words):
            return None  # a component of this project
        if not family.has_programs:
            continue
        if container.runs(_MANAGER):
            return ReplacedBy.MANAGER, container
        if container.runs(_DRIVER_PROGRAM):
            is_node = any("registrar" in name for name in names)
            return (
                ReplacedBy.CSI_NODE if is_node else ReplacedBy.CSI_CONTROLLER
            ), container
    role = family.apps.get(labels.get("app", ""))
    own = [item for item in pod.containers if item.name not in _SIDECARS]
    return (role, own[-1]) if role and own else None


_SIDECARS = frozenset(
    (
        "provisioner",
        "attacher",
        "resizer",
        "snapshotter",
        "livenessprobe",
        "node-driver-registrar",
        "kube-rbac-proxy",
    )
)


def _secret_of(pod: _PodSpec, container: _Container) -> tuple[str, str]:
    """Return Secret and key of the file of --cloud-config."""
    path = pathlib.PurePosixPath(flag(container.words, "cloud-config") or "/")
    for mount in container.volume_mounts:
        folder = pathlib.PurePosixPath(mount.mount_path)
        if path != folder and not path.is_relative_to(folder):
            continue
        inside = mount.sub_path or str(path.relative_to(folder))
        for volume in pod.volumes:
            if volume.name == mount.name and volume.secret is not None:
                keys = {item.path: item.key for item in volume.secret.items}
                return volume.secret.secret_name, keys.get(inside, inside)
    return "", ""
