"""The clusters flow, and the events that enqueue a cluster."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from lib.kube import events, store
from lib.machines import writer
from lib.machines.clusters import act, decide, observe
from lib.machines.clusters.model import (
    Action,
    CleanUp,
    ClusterStores,
    Snapshot,
    Topic,
)
from lib.machines.kinds import ClusterObject, MachineObject, OwnerCluster
from lib.plans.writing import Writing
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome, Requeue

Enqueue = Callable[[str, Topic], None]


class ClustersFlow(runner.Flow[Snapshot, Action]):
    """Provisions infrastructure clusters; see lib/reconcile/runner.py.

    zones: failure domains. clock: monotonic seconds. writing: when the cloud may be
    written.
    """

    name = "clusters"

    def __init__(
        self,
        sources: observe.ClusterSources,
        recorder: events.Recorder,
        zones: tuple[str, ...] = (),
        writing: Writing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._zones = zones
        self._failures = act.Failures()
        self._observer = observe.ClusterObserver(sources, self._failures.of, clock)
        kinds = sources.kinds
        objects = writer.ObjectWriter(
            sources.api,
            sources.stores.infrastructure,
            kinds.cluster,
            kinds.field_manager,
            ClusterObject,
        )
        self._actor = act.ClusterActor(
            act.ClusterDependencies(
                kinds,
                objects,
                recorder,
                sources.machines,
                writing or Writing(),
                self._failures,
            )
        )

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read what needs no call of the cloud, once for all claims."""
        return self._observer.observe([claim.key for claim in claims])

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud has to be read for it."""
        return self._observer.needs_read(snapshot)

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud, once for all."""
        return self._observer.read(snapshots)

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/machines/clusters/decide.py."""
        rules = decide.ClusterRules(
            self._sources.kinds, self._sources.machines().plan, self._zones
        )
        return decide.decide(snapshot, now, rules)

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        return runner.HELD_S if snapshot.held else 0.0

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; see the protocol."""
        return self._actor.act(snapshot, action)

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """See the protocol; nothing is counted here."""

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[Requeue]:
        """See the protocol; there are none."""
        return ()

    def is_slow(self, action: Action) -> bool:
        """See the protocol: a cloud may take seconds to answer a deletion."""
        return isinstance(action, CleanUp)

    def forget(self, cluster: ClusterObject) -> None:
        """Drop what is kept for a cluster that was deleted."""
        self._failures.forget(cluster.metadata.uid)
        self._observer.forget(cluster.key)


def watch(stores: ClusterStores, flow: ClustersFlow, add: Enqueue) -> None:
    """Add clusters to the queue when one of their objects changes."""

    def infrastructure(
        key: str, old: ClusterObject | None, new: ClusterObject | None
    ) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            flow.forget(old)
        if new is not None:
            add(key, Topic.SYNC)

    def cluster(key: str, old: OwnerCluster | None, new: OwnerCluster | None) -> None:
        current = new or old
        if current is None or (old and new and old.spec == new.spec):
            return
        for other, item in stores.infrastructure.items().items():
            reference = item.owner
            if reference is not None and reference.uid == current.metadata.uid:
                add(other, Topic.SYNC)

    def machine(key: str, old: MachineObject | None, new: MachineObject | None) -> None:
        if new is None:
            add_deleted(stores.infrastructure, add)

    stores.infrastructure.subscribe(infrastructure)
    stores.clusters.subscribe(cluster)
    stores.machines.subscribe(machine)


def add_deleted(infrastructure: store.Store[ClusterObject], add: Enqueue) -> None:
    """Add the clusters whose deletion can continue: a machine was deleted."""
    for key, item in infrastructure.items().items():
        if item.is_deleted:
            add(key, Topic.SYNC)
