"""JSON documents of `--output json`: their keys do not change after the first release.

docs/reference/names.md describes each key.
"""

from typing import TypedDict

# ---------------------------------------------------------------- mooring plan nodes


class NodeActionEntry(TypedDict):
    """One action on one Node."""

    node: str
    action: str
    reason: str


class UnknownNode(TypedDict):
    """A Node whose instance cannot be read."""

    node: str
    reason: str


class NodesPlan(TypedDict):
    """Document of `mooring plan nodes`."""

    nodes: int
    not_managed: int
    actions: list[NodeActionEntry]
    unknown: list[UnknownNode]


# ------------------------------------------------------------- mooring plan services


class FieldEntry(TypedDict):
    """One field of an object, as observed and as desired."""

    field: str
    observed: str
    desired: str
    requested_by: str


class ChangeEntry(TypedDict):
    """One object that would be created, changed or deleted."""

    path: list[str]
    action: str
    reason: str
    is_later: bool
    fields: list[FieldEntry]


class ProblemEntry(TypedDict):
    """One problem of a Service."""

    reason: str
    message: str
    is_fatal: bool


class ServiceEntry(TypedDict):
    """What would be done for one Service."""

    service: str
    state: str
    reason: str
    load_balancer: str
    changes: list[ChangeEntry]
    problems: list[ProblemEntry]
    events: list[str]
    not_owned: list[str]


class ServicesPlan(TypedDict):
    """Document of `mooring plan services`."""

    services: list[ServiceEntry]
    totals: dict[str, int]
    other_controllers: int


# ------------------------------------------------------------- mooring plan machines


class MachineChangeEntry(TypedDict):
    """One write for a machine, in the cloud or in Kubernetes."""

    object: str
    action: str
    reason: str
    is_later: bool


class MachineProblem(TypedDict):
    """One problem of a machine."""

    reason: str
    message: str
    is_fatal: bool


class MachineEntry(TypedDict):
    """What would be done for one machine."""

    machine: str
    state: str
    reason: str
    changes: list[MachineChangeEntry]
    problems: list[MachineProblem]


class MachinesPlan(TypedDict):
    """Document of `mooring plan machines`."""

    machines: list[MachineEntry]
    totals: dict[str, int]


# --------------------------------------------------------------- mooring plan routes


class RouteActionEntry(TypedDict):
    """One write, or one problem."""

    object: str
    action: str
    reason: str


class RoutesPlan(TypedDict):
    """Document of `mooring plan routes`."""

    table: str
    nodes: int
    actions: list[RouteActionEntry]
    error: str


# --------------------------------------------------------------- mooring plan volumes


class RefusedVolumeEntry(TypedDict):
    """One volume, claim or StorageClass that the driver refuses."""

    object: str
    cause: str
    reason: str


class VolumesPlan(TypedDict):
    """Document of `mooring plan volumes`."""

    driver: str
    checked: int
    refused: list[RefusedVolumeEntry]


# ---------------------------------------------------------------- mooring plan osdpl


class ReleaseEntry(TypedDict):
    """One release, or a service that cannot be deployed."""

    release: str
    service: str
    state: str
    action: str
    reason: str
    diff: list[str]


class ManualChangeEntry(TypedDict):
    """One object of a release that was changed manually."""

    release: str
    kind: str
    name: str
    change: str


class OsdplPlan(TypedDict):
    """Document of `mooring plan osdpl`."""

    refused: str
    ignored: list[str]
    releases: list[ReleaseEntry]
    manual_changes: list[ManualChangeEntry]


# -------------------------------------------------------------------- mooring doctor


class CheckEntry(TypedDict):
    """One check of `mooring doctor` and `mooring doctor osdpl`."""

    check: str
    state: str
    message: str
    remedy: str


class Checks(TypedDict):
    """Document of `mooring doctor`."""

    checks: list[CheckEntry]


# ------------------------------------------------------------------- mooring orphans


class OrphanEntry(TypedDict):
    """One resource of the cloud."""

    kind: str
    id: str
    name: str
    created: str | None
    created_for: str
    reason: str


class FailedEntry(OrphanEntry):
    """A resource that could not be deleted."""

    error: str


class UnknownKind(TypedDict):
    """A kind whose resources cannot be read."""

    kind: str
    reason: str


class OrphansReport(TypedDict):
    """Document of `mooring orphans`."""

    orphans: list[OrphanEntry]
    kept: list[OrphanEntry]
    not_owned: list[OrphanEntry]
    unknown: list[UnknownKind]
    deleted: list[OrphanEntry]
    failed: list[FailedEntry]


# ------------------------------------------------------------------- mooring version


class ComponentEntry(TypedDict):
    """This tool, or one component in the cluster, by Deployment or DaemonSet."""

    component: str
    version: str
    commit: str
    python: str
    object: str
    image: str
    ready: str


class Versions(TypedDict):
    """Document of `mooring version`."""

    components: list[ComponentEntry]


# ----------------------------------------------------------------------- mooring get


class ServiceStateEntry(TypedDict):
    """A Service of type LoadBalancer, as the cluster records it."""

    service: str
    address: str
    load_balancer: str
    state: str
    problem: str


class NodeStateEntry(TypedDict):
    """A Node, as the cluster records it."""

    node: str
    address: str
    server: str
    state: str
    problem: str


class VolumeStateEntry(TypedDict):
    """A PersistentVolume, as the cluster records it."""

    volume: str
    claim: str
    volume_id: str
    node: str
    state: str
    problem: str


class ServiceStates(TypedDict):
    """Document of `mooring get services`."""

    services: list[ServiceStateEntry]


class NodeStates(TypedDict):
    """Document of `mooring get nodes`."""

    nodes: list[NodeStateEntry]


class VolumeStates(TypedDict):
    """Document of `mooring get volumes`."""

    volumes: list[VolumeStateEntry]


# -------------------------------------------------------------- mooring render osdpl


class RenderedRelease(TypedDict):
    """One release of which values and manifests were written."""

    release: str
    chart: str
    version: str
    digest: str
    folder: str


class RenderedReleases(TypedDict):
    """Document of `mooring render osdpl`."""

    releases: list[RenderedRelease]


# ---------------------------------------------------------------- mooring lab status


class LabProgram(TypedDict):
    """One program of the lab."""

    program: str
    port: int | None
    state: str
    log: str


class LabNode(TypedDict):
    """One Node and its server; empty texts for what does not exist."""

    node: str
    ready: str
    server: str
    provider_id: str
    addresses: list[str]
    zone: str
    type: str
    taints: list[str]
    pods: str
    is_routed: bool | None


class LabPod(TypedDict):
    """The pod of a component. state: Ready, its phase, or why a container waits."""

    component: str
    pod: str
    service_account: str
    node: str
    state: str
    restarts: int


class LabStatus(TypedDict):
    """Document of `mooring lab status`. error: why Nodes cannot be read; else empty."""

    programs: list[LabProgram]
    pods: list[LabPod]
    nodes: list[LabNode]
    error: str


class LabRelease(TypedDict):
    """One release. workloads_ready: of `workloads`; state: of helm, empty: none yet."""

    release: str
    service: str
    chart: str
    revision: int
    state: str
    workloads_ready: int
    workloads: int
    waiting_for: str


class OsdplLabStatus(TypedDict):
    """Document of `mooring lab osdpl status`. state: of the OpenStackDeployment."""

    programs: list[LabProgram]
    releases: list[LabRelease]
    conditions: list[str]
    state: str


# ------------------------------------------------------------------- mooring layouts


class LayoutEntry(TypedDict):
    """One layout of terraform/."""

    layout: str
    folder: str
    purpose: str


class Layouts(TypedDict):
    """Document of `mooring layouts list`."""

    layouts: list[LayoutEntry]


class LayoutObjectEntry(TypedDict):
    """One object that a root would create."""

    root: str
    kind: str
    name: str


class LayoutObjects(TypedDict):
    """Document of `mooring layouts check`."""

    objects: list[LayoutObjectEntry]


class ReviewedChangeEntry(TypedDict):
    """One change of a plan."""

    address: str
    action: str
    lost: str
    is_destructive: bool


class LayoutBlockEntry(TypedDict):
    """One block: import, moved or state rm, which is a command to run before.

    address: imported to, moved from or removed. id: of an import. to: of a move.
    """

    block: str
    address: str
    id: str
    to: str


class LayoutRecovery(TypedDict):
    """Document of `mooring layouts recover`."""

    blocks: list[LayoutBlockEntry]
    problems: list[str]


class LayoutReview(TypedDict):
    """Document of `mooring layouts review`."""

    changes: list[ReviewedChangeEntry]


DOCUMENTS = {
    "mooring plan nodes": NodesPlan,
    "mooring plan services": ServicesPlan,
    "mooring plan machines": MachinesPlan,
    "mooring plan routes": RoutesPlan,
    "mooring plan volumes": VolumesPlan,
    "mooring plan osdpl": OsdplPlan,
    "mooring doctor": Checks,
    "mooring orphans": OrphansReport,
    "mooring render osdpl": RenderedReleases,
    "mooring layouts list": Layouts,
    "mooring layouts check": LayoutObjects,
    "mooring layouts recover": LayoutRecovery,
    "mooring layouts review": LayoutReview,
    "mooring version": Versions,
    "mooring get services": ServiceStates,
    "mooring get nodes": NodeStates,
    "mooring get volumes": VolumeStates,
    "mooring lab status": LabStatus,
    "mooring lab osdpl status": OsdplLabStatus,
}
"""By command."""
