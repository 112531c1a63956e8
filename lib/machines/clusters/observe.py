"""Reads of the flow: watched objects, and the cloud for a cluster that is deleted."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.machines import MachineClusters, Machines
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import Problem
from lib.kube import client, fresh
from lib.machines import status
from lib.machines.clusters import translate
from lib.machines.clusters.model import (
    ClusterKinds,
    ClusterStage,
    ClusterStores,
    Leftover,
    Snapshot,
)
from lib.machines.kinds import ClusterObject, ControlPlaneEndpoint, OwnerCluster
from lib.machines.model import MachineSettings


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterSources:
    """Where the flow reads from.

    endpoint: how this process reaches its API server. places: checks what clusters
    refer to in the cloud; None: every cluster is usable.
    """

    stores: ClusterStores
    api: client.Api
    kinds: ClusterKinds
    settings: MachineSettings
    machines: Callable[[], Machines]
    endpoint: Callable[[], ControlPlaneEndpoint]
    places: Callable[[], MachineClusters] | None = None


class ClusterObserver:
    """Reads for a batch of clusters together. clock: monotonic seconds."""

    def __init__(
        self,
        sources: ClusterSources,
        failures: Callable[[str], Mapping[str, str]],
        clock: Callable[[], float],
    ) -> None:
        """failures: returns why deletions for the cluster of a UID were rejected."""
        self._sources = sources
        self._failures = failures
        stores = sources.stores
        self._fresh = fresh.Fresh(
            stores.infrastructure,
            sources.api,
            sources.kinds.cluster,
            ClusterObject,
            clock,
        )

    def observe(self, keys: Sequence[str]) -> Mapping[str, Snapshot]:
        """Return one snapshot per cluster that exists; nothing of the cloud yet."""
        snapshots: dict[str, Snapshot] = {}
        for key in keys:
            reading = self._fresh.read(key)
            if reading.value is not None:
                snapshots[key] = self._snapshot(reading.value, held=reading.held)
        return snapshots

    def _snapshot(self, cluster: ClusterObject, *, held: bool) -> Snapshot:
        sources, owner = self._sources, self._owner(cluster)
        stage = translate.stage(
            cluster, owner, sources.kinds.finalizer, sources.settings
        )
        return Snapshot(
            cluster,
            held=held,
            stage=ClusterStage.IGNORED if held else stage,
            machines=translate.machines_of(
                cluster, sources.stores.machines.items().values()
            ),
            others=self._others(cluster),
            endpoint=translate.endpoint(owner, sources.endpoint()),
            failures=self._failures(cluster.metadata.uid),
        )

    def _owner(self, cluster: ClusterObject) -> OwnerCluster | None:
        reference = cluster.owner
        if reference is None:
            return None
        key = f"{cluster.metadata.namespace}/{reference.name}"
        owner = self._sources.stores.clusters.get(key)
        is_same = owner is not None and owner.metadata.uid == reference.uid
        return owner if is_same else None

    def _others(self, cluster: ClusterObject) -> tuple[str, ...]:
        """Return the keys of further clusters; a deleted one cleans up by itself."""
        listed = self._sources.stores.infrastructure.items()
        return tuple(
            sorted(
                key
                for key, other in listed.items()
                if key != cluster.key and not other.is_deleted
            )
        )

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud must be read.

        Once no machine is left, and until the cluster is provisioned: that stays.
        """
        return self._needs_leftovers(snapshot) or self._needs_place(snapshot)

    def _needs_leftovers(self, snapshot: Snapshot) -> bool:
        is_deleted = snapshot.stage is ClusterStage.DELETED
        return is_deleted and not snapshot.machines and not snapshot.others

    def _needs_place(self, snapshot: Snapshot) -> bool:
        if self._sources.places is None or snapshot.stage is not ClusterStage.DESIRED:
            return False
        mirrors = self._sources.kinds.mirrors
        return not status.is_provisioned(snapshot.cluster, mirrors)

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read what machines have left, once for all clusters, and what these need."""
        left: tuple[Leftover, ...] | Unknown | None = None
        if any(map(self._needs_leftovers, snapshots.values())):
            left = self._leftovers()
        return {
            key: dataclasses.replace(
                snapshot,
                left=left if self._needs_leftovers(snapshot) else None,
                place=self._place(snapshot),
            )
            for key, snapshot in snapshots.items()
        }

    def _place(self, snapshot: Snapshot) -> Seen[Problem | None] | Unknown | None:
        places = self._sources.places
        if places is None or not self._needs_place(snapshot):
            return None
        try:
            return Seen(places().check(snapshot.cluster.spec))
        except errors.CloudError as error:
            return Unknown(error)

    def _leftovers(self) -> tuple[Leftover, ...] | Unknown:
        """Return what carries the ownership tag and belongs to no machine object."""
        sources, machines = self._sources, self._sources.machines()
        try:
            owned = tuple(machines.owned(sources.settings.cluster_id))
        except errors.CloudError as error:
            return Unknown(error)
        # Read after the cloud: what was created for a machine object follows it.
        living = tuple(sources.stores.machines.items().values())
        left = translate.leftovers(owned, living, sources.settings.namespace)
        targets = tuple(each.target for each in left if each.target is not None)
        observations = machines.observe(targets) if targets else {}
        return translate.with_observations(left, observations)

    def forget(self, key: str) -> None:
        """Drop what is kept for a cluster that was deleted."""
        self._fresh.forget(key)
