"""From objects of Cluster API to stages and facts: pure."""

from lib.cloud.machines import (
    Bootstrap,
    ConditionState,
    Facts,
    Machines,
    Problems,
    Reason,
    Target,
)
from lib.cloud.steps import Problem
from lib.kube import objects
from lib.machines import bootstrap
from lib.machines.kinds import (
    CONTROL_PLANE,
    PAUSED,
    WATCH_FILTER,
    Kinds,
    MachineObject,
    OwnerCluster,
)
from lib.machines.model import (
    IGNORED,
    Assessment,
    MachineSettings,
    MachineStage,
    Related,
)

WAITS_FOR_CLUSTER = ConditionState(
    False,
    Reason.WAITING_FOR_CLUSTER,
    "the infrastructure of the Cluster is not provisioned yet",
)
WAITS_FOR_BOOTSTRAP = ConditionState(
    False, Reason.WAITING_FOR_BOOTSTRAP, "the Machine has no bootstrap data yet"
)


def assess(
    machine: MachineObject,
    related: Related,
    kinds: Kinds,
    settings: MachineSettings,
    bytes_max: int,
) -> Assessment:
    """Return what may be done for a machine now. bytes_max: of bootstrap data."""
    if not is_responsible(machine.metadata, settings):
        return IGNORED
    if machine.is_deleted:
        has_finalizer = kinds.finalizer in machine.metadata.finalizers
        stage = MachineStage.DELETED if has_finalizer else MachineStage.IGNORED
        if has_finalizer and is_paused(machine.metadata, related.cluster):
            stage = MachineStage.PAUSED
        return Assessment(stage, bootstrap=None)
    if related.owner is None or related.cluster is None:
        return IGNORED
    if is_paused(machine.metadata, related.cluster):
        return Assessment(MachineStage.PAUSED)
    return _prerequisites(machine, related, bytes_max)


def is_responsible(about: objects.ObjectMeta, settings: MachineSettings) -> bool:
    """Report whether this process reconciles an object, by its label and namespace."""
    label = about.labels.get(WATCH_FILTER, "")
    is_filtered = bool(settings.watch_filter) and label != settings.watch_filter
    is_elsewhere = settings.namespace not in ("", about.namespace)
    return not (is_filtered or is_elsewhere)


def is_paused(about: objects.ObjectMeta, cluster: OwnerCluster | None) -> bool:
    """Report whether nothing may be done; an annotation of any value suffices."""
    has_pause = cluster is not None and bool(cluster.spec.paused)
    return has_pause or PAUSED in about.annotations


def _prerequisites(
    machine: MachineObject, related: Related, bytes_max: int
) -> Assessment:
    """Return whether an instance may exist; one with a provider ID may in any case."""
    owner, cluster = related.owner, related.cluster
    if owner is None or cluster is None:
        return IGNORED
    name = owner.spec.bootstrap.data_secret_name or ""
    data = bootstrap.checked(related.secret, name, bytes_max) if name else None
    if machine.provider_id:
        usable = data if isinstance(data, Bootstrap) else None
        return Assessment(MachineStage.DESIRED, bootstrap=usable)
    if not cluster.is_provisioned:
        return Assessment(MachineStage.WAITING, WAITS_FOR_CLUSTER)
    if data is None:
        return Assessment(MachineStage.WAITING, WAITS_FOR_BOOTSTRAP)
    if isinstance(data, Problem):
        state = ConditionState(False, Reason.INVALID_BOOTSTRAP, data.message)
        return Assessment(MachineStage.WAITING, state, problem=data)
    return Assessment(MachineStage.DESIRED, bootstrap=data)


def facts(
    machine: MachineObject, related: Related, cluster_id: str, data: Bootstrap | None
) -> Facts:
    """Return the facts about a machine."""
    about, owner = machine.metadata, related.owner
    reference, infrastructure = machine.owner, related.infrastructure
    return Facts(
        cluster_id,
        about.namespace,
        about.name,
        about.uid,
        reference.name if reference else about.name,
        machine.spec,
        failure_domain=(owner.spec.failure_domain or "") if owner else "",
        is_control_plane=owner is not None and CONTROL_PLANE in owner.metadata.labels,
        provider_id=machine.provider_id,
        was_provisioned=machine.is_provisioned,
        has_node=owner is not None and owner.status.node_ref is not None,
        bootstrap=data,
        cluster_spec=None if infrastructure is None else infrastructure.spec,
        recorded=about.annotations,
    )


def target(
    of: Facts, stage: MachineStage, machines: Machines
) -> tuple[Target | None, tuple[Problem, ...]]:
    """Return what is desired, or None with the problems of its fields."""
    ref = machines.refer(of)
    if stage is MachineStage.DELETED:
        return Target(ref, None), ()
    if stage is not MachineStage.DESIRED:
        return None, ()
    parsed = machines.parse(of)
    if isinstance(parsed, Problems):
        return None, parsed.problems
    return Target(ref, parsed), parsed.problems
