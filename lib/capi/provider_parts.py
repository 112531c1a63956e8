"""What the controllers of a provider share, and the watched stores of all."""

import dataclasses
from collections.abc import Callable

import prometheus_client

from lib.cloud import protocol
from lib.cloud.machines import MachineClusters, Machines
from lib.kube import client, events, guarded, resources, store
from lib.machines import kinds, model
from lib.machines.bootstrap import BootstrapSecret
from lib.machines.clusters import model as clusters
from lib.machines.kinds import (
    ClusterObject,
    MachineObject,
    OwnerCluster,
    OwnerMachine,
)
from lib.machines.templates import model as templates
from lib.process import probes
from lib.reconcile import loops
from lib.reconcile import metrics as reconcile_metrics

STALL_S = 600.0
"""A loop without a heartbeat for this time fails the liveness check."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderKinds:
    """The kinds of a provider."""

    machine: kinds.Kinds
    cluster: clusters.ClusterKinds
    template: templates.TemplateKinds


def watched(
    api: client.Api,
    of: kinds.Kinds,
    namespace: str,
    infrastructure: store.Store[ClusterObject] | None = None,
) -> model.Stores:
    """Return the stores of the flow of machines. namespace: empty: all.

    infrastructure: if machines need it, in place of a store of its own.

    Bootstrap Secrets are found by the label of their cluster; one without it is read
    when its machine is created.
    """
    within = namespace or None
    return model.Stores(
        store.Store(api, of.machine, MachineObject, namespace=within),
        store.Store(api, of.owners, OwnerMachine, namespace=within),
        store.Store(api, of.clusters, OwnerCluster, namespace=within),
        store.Store(
            api,
            resources.SECRETS,
            BootstrapSecret,
            namespace=within,
            label_selector=kinds.CLUSTER_NAME,
        ),
        _needed(api, of, within, infrastructure),
    )


def _needed(
    api: client.Api,
    of: kinds.Kinds,
    namespace: str | None,
    shared: store.Store[ClusterObject] | None,
) -> store.Store[ClusterObject] | None:
    """Return the store of infrastructure clusters; None: no machine needs it."""
    if of.infrastructure is None:
        return None
    own = store.Store(api, of.infrastructure, ClusterObject, namespace=namespace)
    return shared or own


class WatchedKinds:
    """The watched stores of all flows: one watch for each kind.

    namespace: of the objects; empty: all.
    """

    def __init__(self, api: client.Api, of: ProviderKinds, namespace: str) -> None:
        infrastructure = store.Store(
            api, of.cluster.cluster, ClusterObject, namespace=namespace or None
        )
        self.machines = watched(api, of.machine, namespace, infrastructure)
        self.clusters = clusters.ClusterStores(
            infrastructure,
            self.machines.clusters,
            self.machines.machines,
        )
        self.templates = templates.TemplateStores(
            store.Store(
                api,
                of.template.template,
                templates.TemplateObject,
                namespace=namespace or None,
            ),
            self.machines.clusters,
        )
        self._loops: dict[str, loops.Loop] = {
            of.cluster.cluster.plural: self.clusters.infrastructure.run,
            "clusters": self.machines.clusters.run,
            "secrets": self.machines.secrets.run,
            "machines": self.machines.owners.run,
            of.machine.machine.plural: self.machines.machines.run,
            of.template.template.plural: self.templates.templates.run,
        }
        self._synced = {
            of.cluster.cluster.plural: self.clusters.infrastructure.synced,
            "clusters": self.machines.clusters.synced,
            "secrets": self.machines.secrets.synced,
            "machines": self.machines.owners.synced,
            of.machine.machine.plural: self.machines.machines.synced,
            of.template.template.plural: self.templates.templates.synced,
        }

    def watch(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`."""
        for plural, run in self._loops.items():
            loop.start(f"watch {plural}", run)

    def start(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`; there is nothing more."""

    def missing(self) -> str | None:
        """Return which kinds are not listed yet; None: all are."""
        names = [name for name, synced in self._synced.items() if not synced.is_set()]
        return f"not listed yet: {', '.join(names)}" if names else None


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderParts:
    """Dependencies of the controllers.

    reading: for reads and watches. writing: refuses when the Lease is lost. machines:
    of the cloud in use. places: see `clusters_observe.ClusterSources`. changes: reports
    of the cloud; None: it has none. permit: entered before each write to the cloud.
    unsettled_s: see lib/kube/election.py. settings: of the flows.
    """

    reading: client.Api
    writing: client.Api
    kinds: ProviderKinds
    stores: WatchedKinds
    settings: model.MachineSettings
    machines: Callable[[], Machines]
    places: Callable[[], MachineClusters] | None
    changes: Callable[[], protocol.ChangeReports[str]] | None
    recorder: events.Recorder
    registry: prometheus_client.CollectorRegistry
    metrics: reconcile_metrics.ReconcileMetrics
    probes: probes.Probes
    permit: guarded.Permit
    unsettled_s: Callable[[float], float]
