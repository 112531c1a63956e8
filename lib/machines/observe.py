"""Reads of the flow: the watched objects of Cluster API, and the cloud once for all."""

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence

from lib.cloud.machines import Machines, Results, Target
from lib.kube import client, fresh, resources
from lib.kube import errors as kube_errors
from lib.machines import bootstrap, decide, translate
from lib.machines.kinds import (
    ClusterObject,
    Kinds,
    MachineObject,
    OwnerCluster,
    OwnerMachine,
)
from lib.machines.model import (
    MachineMemory,
    MachineSettings,
    MachineStage,
    Related,
    Snapshot,
    Stores,
    Topic,
)
from lib.plans.engine import Engine
from lib.process import decoding

Claim = tuple[str, frozenset[Topic]]


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where the flow reads from. now: UTC, for the time limit of a deletion."""

    stores: Stores
    api: client.Api
    kinds: Kinds
    settings: MachineSettings
    machines: Callable[[], Machines]
    now: Callable[[], datetime.datetime]


class MachineObserver:
    """Reads for a batch of machines together. clock: monotonic seconds."""

    def __init__(
        self,
        sources: Sources,
        memory: MachineMemory,
        engine: Engine[Target, Results],
        clock: Callable[[], float],
    ) -> None:
        self._sources = sources
        self._memory = memory
        self._engine = engine
        self._fresh = fresh.Fresh(
            sources.stores.machines,
            sources.api,
            sources.kinds.machine,
            MachineObject,
            clock,
        )

    def observe(self, claims: Sequence[Claim]) -> Mapping[str, Snapshot]:
        """Return one snapshot per machine that exists; nothing of the cloud yet."""
        snapshots: dict[str, Snapshot] = {}
        for key, topics in claims:
            reading = self._fresh.read(key)
            if reading.value is not None:
                snapshot = Snapshot(reading.value, topics, held=reading.held)
                snapshots[key] = self._isolated(snapshot)
        self._resume(snapshots)
        return snapshots

    def _isolated(self, snapshot: Snapshot) -> Snapshot:
        """Parse one machine; an unexpected error concerns no other of the batch.

        Raises:
            KubeError: the API server does not answer, which concerns all.
        """
        if snapshot.held:
            return snapshot
        try:
            return self._with_desired(snapshot)
        except kube_errors.KubeError:
            raise
        except Exception as error:
            self._memory.drop(snapshot.uid)
            return dataclasses.replace(snapshot, error=error)

    def related(self, machine: MachineObject) -> Related:
        """Return the objects of Cluster API that belong to a machine."""
        stores, owner = self._sources.stores, self._owner(machine)
        if owner is None:
            return Related()
        namespace = machine.metadata.namespace
        cluster = stores.clusters.get(f"{namespace}/{owner.spec.cluster_name}")
        return Related(
            owner,
            cluster,
            self._secret(machine, owner.spec.bootstrap.data_secret_name or ""),
            self._infrastructure(cluster),
        )

    def _infrastructure(self, cluster: OwnerCluster | None) -> ClusterObject | None:
        kind, store = self._sources.kinds.infrastructure, self._sources.stores
        if cluster is None or kind is None or store.infrastructure is None:
            return None
        reference = cluster.spec.infrastructure_ref
        if reference.kind != kind.kind:
            return None
        key = f"{cluster.metadata.namespace}/{reference.name}"
        return store.infrastructure.get(key)

    def _secret(
        self, machine: MachineObject, name: str
    ) -> bootstrap.BootstrapSecret | None:
        """Return the bootstrap Secret of a machine.

        It is read directly if the watch does not show it: it may be new, or lack the
        label by which Secrets are watched.
        """
        namespace = machine.metadata.namespace
        secret = self._sources.stores.secrets.get(f"{namespace}/{name}")
        is_needed = name and not machine.provider_id and not machine.is_deleted
        if secret is not None or not is_needed:
            return secret
        try:
            body = self._sources.api.read(
                resources.SECRETS, name, namespace, timeout_s=bootstrap.READ_TIMEOUT_S
            )
        except kube_errors.NotFound:
            return None
        return decoding.decode(body, bootstrap.BootstrapSecret)

    def _owner(self, machine: MachineObject) -> OwnerMachine | None:
        reference = machine.owner
        if reference is None:
            return None
        key = f"{machine.metadata.namespace}/{reference.name}"
        owner = self._sources.stores.owners.get(key)
        is_same = owner is not None and owner.metadata.uid == reference.uid
        return owner if is_same else None

    def desire(
        self, machine: MachineObject, related: Related
    ) -> tuple[Snapshot, Target | None]:
        """Return what is desired for a machine: pure but for the watched objects."""
        sources = self._sources
        machines = sources.machines()
        assessment = translate.assess(
            machine,
            related,
            sources.kinds,
            sources.settings,
            machines.bootstrap_bytes_max,
        )
        facts = translate.facts(
            machine, related, sources.settings.cluster_id, assessment.bootstrap
        )
        target, problems = translate.target(facts, assessment.stage, machines)
        snapshot = Snapshot(
            machine,
            related=related,
            assessment=assessment,
            target=target,
            problems=problems,
        )
        return snapshot, target

    def _with_desired(self, snapshot: Snapshot) -> Snapshot:
        machine, uid = snapshot.machine, snapshot.uid
        desired, target = self.desire(machine, self.related(machine))
        settled = self._memory.settled(uid)
        is_settled = settled is not None and settled[0] == target
        return dataclasses.replace(
            desired,
            topics=snapshot.topics,
            settled=settled[1] if settled is not None and is_settled else None,
            is_in_progress=self._memory.is_in_progress(uid),
            may_be_late=self._may_be_late(desired),
            backoff_s=self._memory.backoff_s(uid, is_desired=snapshot.is_desired),
            reported=self._memory.reported(uid),
            failed=self._memory.failed(uid),
            refusal=self._memory.refusal(uid),
            refused_s=self._memory.refused_s(uid),
        )

    def _may_be_late(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud has to be read for that, in place of a gate."""
        timeout_s = self._sources.settings.deletion_timeout_s
        since = snapshot.machine.metadata.deletion_timestamp
        now = self._sources.now()
        return since is not None and decide.left_s(since, now, timeout_s) <= 0

    def _resume(self, snapshots: dict[str, Snapshot]) -> None:
        """Resume open plans; a deletion that may be late is observed instead."""
        by_uid: dict[str, str] = {}
        for key, snapshot in snapshots.items():
            if snapshot.held or snapshot.error is not None:
                continue
            if snapshot.may_be_late or snapshot.assessment.stage is MachineStage.PAUSED:
                self._memory.drop(snapshot.uid)
            else:
                by_uid[snapshot.uid] = key
        targets = {uid: snapshots[key].target for uid, key in by_uid.items()}
        for uid, resumed in self._engine.resume(targets).items():
            key = by_uid[uid]
            snapshots[key] = dataclasses.replace(snapshots[key], resumed=resumed)

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud must be read: not if all was in sync."""
        if snapshot.held or snapshot.resumed is not None or snapshot.target is None:
            return False
        return snapshot.settled is None or Topic.DRIFT in snapshot.topics

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud for those that need it, all together."""
        targets = {
            key: snapshot.target
            for key, snapshot in snapshots.items()
            if snapshot.target is not None and self.needs_read(snapshot)
        }
        if not targets:
            return snapshots
        for key in targets:
            self._memory.unsettle(snapshots[key].uid)
        observations = self._sources.machines().observe(tuple(targets.values()))
        return {
            key: (
                dataclasses.replace(
                    snapshot, observed=observations[targets[key].ref], settled=None
                )
                if key in targets
                else snapshot
            )
            for key, snapshot in snapshots.items()
        }

    def forget(self, key: str) -> None:
        """Drop what is kept for a machine that was deleted."""
        self._fresh.forget(key)
