"""From objects of Cluster API to stages, from owned resources to leftovers: pure."""

from collections.abc import Collection, Iterable, Mapping

from lib.cloud import machines
from lib.machines import translate
from lib.machines.clusters.model import ClusterStage, Leftover
from lib.machines.kinds import (
    CLUSTER_NAME,
    MANAGED_BY,
    NO_ENDPOINT,
    ClusterObject,
    ControlPlaneEndpoint,
    MachineObject,
    OwnerCluster,
)
from lib.machines.model import MachineSettings


def stage(
    cluster: ClusterObject,
    owner: OwnerCluster | None,
    finalizer: str,
    settings: MachineSettings,
) -> ClusterStage:
    """Return what may be done for a cluster now."""
    about = cluster.metadata
    if not translate.is_responsible(about, settings) or is_managed(cluster):
        return ClusterStage.IGNORED
    if cluster.is_deleted:
        if finalizer not in about.finalizers:
            return ClusterStage.IGNORED
    elif owner is None:
        return ClusterStage.IGNORED
    if translate.is_paused(about, owner):
        return ClusterStage.PAUSED
    return ClusterStage.DELETED if cluster.is_deleted else ClusterStage.DESIRED


def is_managed(cluster: ClusterObject) -> bool:
    """Report whether another tool manages it: the contract has a label or annotation.

    Source: kubernetes-sigs/cluster-api util/annotations/helpers.go checks the
    annotation, the text of the contract says label.
    """
    about = cluster.metadata
    return MANAGED_BY in about.labels or MANAGED_BY in about.annotations


def machines_of(
    cluster: ClusterObject, listed: Iterable[MachineObject]
) -> tuple[str, ...]:
    """Return the names of the machine objects of a cluster, sorted."""
    about = cluster.metadata
    reference = cluster.owner
    name = about.labels.get(CLUSTER_NAME) or (reference.name if reference else "")
    return tuple(
        sorted(
            machine.metadata.name
            for machine in listed
            if machine.metadata.namespace == about.namespace
            and machine.metadata.labels.get(CLUSTER_NAME) in (name, None)
        )
    )


def endpoint(
    owner: OwnerCluster | None, own: ControlPlaneEndpoint
) -> ControlPlaneEndpoint:
    """Return the endpoint of a cluster. own: as this process reaches its API server."""
    desired = owner.spec.control_plane_endpoint if owner else NO_ENDPOINT
    return desired if desired.host and desired.port else own


def leftovers(
    owned: Iterable[machines.Owned],
    living: Collection[MachineObject],
    namespace: str = "",
) -> tuple[Leftover, ...]:
    """Return owned resources by the machine that they were created for.

    living: machine objects that exist; theirs are none. namespace: of those, empty:
    all; whether machine objects of another one exist is not known.
    """
    uids = {machine.metadata.uid for machine in living}
    names = {machine.metadata.name for machine in living}
    groups: dict[machines.Ref | None, list[machines.Owned]] = {}
    for resource in owned:
        ref = resource.ref
        if ref is not None and namespace and ref.namespace not in ("", namespace):
            continue
        is_living = resource.uid in uids or (ref is not None and ref.name in names)
        if not is_living:
            groups.setdefault(ref, []).append(resource)
    return tuple(_leftover(ref, group) for ref, group in groups.items())


def _leftover(ref: machines.Ref | None, group: Collection[machines.Owned]) -> Leftover:
    if ref is None:
        return Leftover(tuple(group))
    only = frozenset(resource.id for resource in group)
    return Leftover(tuple(group), machines.Target(ref, None, only))


def with_observations(
    left: Iterable[Leftover],
    observations: Mapping[machines.Ref, machines.Observation],
) -> tuple[Leftover, ...]:
    """Return leftovers with what exists of their targets."""
    return tuple(
        (
            each
            if each.target is None
            else Leftover(each.owned, each.target, observations[each.target.ref])
        )
        for each in left
    )
