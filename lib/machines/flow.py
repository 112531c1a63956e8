"""The machines flow, and the events that enqueue a machine."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from lib.cloud.machines import Reason, Results, Target
from lib.cloud.steps import CommonReason, ProblemReason
from lib.kube import events, store
from lib.machines import act, decide, observe
from lib.machines.bootstrap import BootstrapSecret
from lib.machines.kinds import (
    CLUSTER_NAME,
    ClusterObject,
    MachineObject,
    OwnerCluster,
    OwnerMachine,
)
from lib.machines.model import (
    Action,
    MachineMemory,
    SettleMachine,
    Snapshot,
    Stores,
    Topic,
)
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.model import ApplyStep, Await, StartBackoff
from lib.plans.writing import Writing
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome, Requeue

Enqueue = Callable[[str, Topic], None]


class MachinesFlow(runner.Flow[Snapshot, Action]):
    """Provides machine objects with instances; see lib/reconcile/runner.py.

    clock: monotonic seconds. applying: when the cloud may be written. on_open: see
    `lib/plans/engine.Engine`.
    """

    name = "machines"

    def __init__(
        self,
        *,
        sources: observe.Sources,
        recorder: events.Recorder,
        clock: Callable[[], float] = time.monotonic,
        applying: Writing | None = None,
        on_open: Callable[[str, frozenset[str]], None] | None = None,
    ) -> None:
        self._sources = sources
        self._memory = MachineMemory(clock)
        engine: Engine[Target, Results] = Engine(
            sources.machines, self._memory, clock, applying, on_open
        )
        self._observer = observe.MachineObserver(sources, self._memory, engine, clock)
        dependencies = act.Dependencies(
            sources.api,
            sources.stores,
            sources.kinds,
            recorder,
            engine,
            self._observer.desire,
            lambda: sources.machines().reasons,
        )
        self._actor = act.MachineActor(dependencies, self._memory)

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read what needs no call of the cloud, once for all claims."""
        return self._observer.observe(
            [(claim.key, frozenset(map(Topic, claim.topics))) for claim in claims]
        )

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud has to be read for it."""
        return self._observer.needs_read(snapshot)

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud, once for all."""
        return self._observer.read(snapshots)

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/machines/decide.py."""
        machines = self._sources.machines()
        rules = decide.Rules(
            self._sources.kinds,
            machines.plan,
            machines.conditions,
            self._sources.settings.deletion_timeout_s,
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
        """See the protocol."""
        return self._actor.requeues(snapshot, error)

    def left_after(
        self, failed: Action, error: Exception, rest: Sequence[Action]
    ) -> Sequence[Action]:
        """See `carrying.GoesOn`."""
        return plans.left_after(failed, error, rest)

    def is_note(self, action: Action) -> bool:
        """See the protocol."""
        return isinstance(action, Await | StartBackoff | SettleMachine)

    def is_slow(self, action: Action) -> bool:
        """A cloud may answer a creation once all of it is checked: that takes time."""
        return isinstance(action, ApplyStep) and not action.object_id

    @property
    def reasons(self) -> tuple[ProblemReason, ...]:
        """Every reason that a problem may have with these machines."""
        return (*CommonReason, *Reason, *self._sources.machines().reasons)

    def problems(self) -> Mapping[ProblemReason, int]:
        """Count the machines that have a problem, by each possible reason."""
        counts = self._memory.problems()
        return {reason: counts.get(reason, 0) for reason in self.reasons}

    def forget(self, machine: MachineObject) -> None:
        """Drop what is kept for a machine that was deleted."""
        self._memory.forget(machine.metadata.uid)
        self._observer.forget(machine.key)


def watch(stores: Stores, flow: MachinesFlow, add: Enqueue) -> None:
    """Add machines to the queue when one of their objects changes."""

    def machine(key: str, old: MachineObject | None, new: MachineObject | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            flow.forget(old)
        if new is not None:
            add(key, Topic.SYNC)

    def owner(key: str, old: OwnerMachine | None, new: OwnerMachine | None) -> None:
        current = new or old
        if current is not None:
            _add_known(stores, add, _of_owner(current))

    def cluster(key: str, old: OwnerCluster | None, new: OwnerCluster | None) -> None:
        if old is None or new is None or _differs(old, new):
            namespace, _, name = key.rpartition("/")
            _add_known(stores, add, _of_cluster(stores, namespace, name))

    def secret(
        key: str, old: BootstrapSecret | None, new: BootstrapSecret | None
    ) -> None:
        _add_known(stores, add, _of_secret(stores, key))

    stores.machines.subscribe(machine)
    stores.owners.subscribe(owner)
    stores.clusters.subscribe(cluster)
    stores.secrets.subscribe(secret)
    if stores.infrastructure is not None:
        _watch_infrastructure(stores.infrastructure, stores, add)


def _watch_infrastructure(
    infrastructure: store.Store[ClusterObject], stores: Stores, add: Enqueue
) -> None:
    def changed(key: str, old: ClusterObject | None, new: ClusterObject | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            _add_known(stores, add, _of_infrastructure(stores, key))

    infrastructure.subscribe(changed)


def hints(machines: store.Store[MachineObject], add: Enqueue) -> Callable[[str], None]:
    """Return what adds the machine of a UID when the cloud reports a change of it."""
    keys: dict[str, str] = {}

    def follow(key: str, old: MachineObject | None, new: MachineObject | None) -> None:
        if new is not None:
            keys[new.metadata.uid] = key
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            keys.pop(old.metadata.uid, None)

    def hint(uid: str) -> None:
        key = keys.get(uid)
        if key is not None:
            add(key, Topic.DRIFT)

    machines.subscribe(follow)
    return hint


def _add_known(stores: Stores, add: Enqueue, keys: Iterable[str]) -> None:
    for key in keys:
        if stores.machines.get(key) is not None:
            add(key, Topic.SYNC)


def _differs(old: OwnerCluster, new: OwnerCluster) -> bool:
    return (old.spec, old.status) != (new.spec, new.status)


def _of_owner(owner: OwnerMachine) -> tuple[str, ...]:
    name = owner.spec.infrastructure_ref.name
    return (f"{owner.metadata.namespace}/{name}",) if name else ()


def _of_cluster(stores: Stores, namespace: str, name: str) -> tuple[str, ...]:
    return tuple(
        key
        for key, machine in stores.machines.items().items()
        if machine.metadata.namespace == namespace
        and machine.metadata.labels.get(CLUSTER_NAME) == name
    )


def _of_infrastructure(stores: Stores, key: str) -> tuple[str, ...]:
    """Return the machines of the Clusters that refer to an infrastructure cluster."""
    namespace, _, name = key.rpartition("/")
    return tuple(
        machine
        for cluster in stores.clusters.items().values()
        if cluster.metadata.namespace == namespace
        and cluster.spec.infrastructure_ref.name == name
        for machine in _of_cluster(stores, namespace, cluster.metadata.name)
    )


def _of_secret(stores: Stores, key: str) -> tuple[str, ...]:
    """Return the machines that wait for a Secret: they have no provider ID yet."""
    result: list[str] = []
    for machine_key, machine in stores.machines.items().items():
        reference = machine.owner
        if machine.provider_id or reference is None:
            continue
        namespace = machine.metadata.namespace
        owner = stores.owners.get(f"{namespace}/{reference.name}")
        if owner and f"{namespace}/{owner.spec.bootstrap.data_secret_name}" == key:
            result.append(machine_key)
    return tuple(result)
