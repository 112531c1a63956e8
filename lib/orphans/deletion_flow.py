"""Deletes findings: load balancers by plans and gates, volumes one by one.

Rules: what is deleted was listed, and is read again before each write. A load
balancer's plan is the daemon's own for a Service that is deleted, restricted to what
was listed. State is in the cloud alone: an interrupted deletion is simply run again.
"""

import abc
import dataclasses
import datetime
import itertools
import time
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Generic, TypeVar

from lib.cloud import errors, load_balancers
from lib.cloud import machines as machine_cloud
from lib.cloud import routes as cloud_routes
from lib.cloud import volumes as cloud_volumes
from lib.cloud.load_balancers import Depth, Facts, LoadBalancers, Target
from lib.cloud.machines import Machines
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import GateState, Plan, Step
from lib.cloud.volumes import ById, Volumes
from lib.orphans import model
from lib.orphans.model import Finding
from lib.plans import memory
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.writing import Applier
from lib.reconcile import failure, outcome, waiting

S = TypeVar("S")
"""Snapshot of a deletion."""
T = TypeVar("T", bound=plans.HasKey)
"""Target of a plan."""
POLL_S = 2.0
PATIENCE_S = 900.0
"""Time for one batch; resources that are not deleted by then are reported."""
ATTEMPTS = 5
"""Maximum number of rounds in which a write of a target was refused or failed."""


@dataclasses.dataclass(frozen=True, slots=True)
class PollClocks:
    """Sources of time. monotonic: seconds. sleep: waits for seconds."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


Finished = Callable[[str, str], None]
"""Called with the key of a target and why it was not deleted; empty if it was."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finish:
    """Note the end of a target. why: it was not deleted; empty if it was."""

    key: str
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Apply:
    """Apply one step of a target's plan."""

    key: str
    step: plans.ApplyStep

    def __str__(self) -> str:
        return str(self.step)


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Begin to delete a volume."""

    key: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseStep:
    """Remove entries of one object. keys: all entries that are being removed."""

    keys: frozenset[str]
    step: Step

    def __str__(self) -> str:
        return str(self.step)


Action = Finish | Apply | DeleteVolume | ReleaseStep


@dataclasses.dataclass(frozen=True, slots=True)
class Routed:
    """Recorded routes that exist. why: they could not be read; empty: they were."""

    owned: tuple[cloud_routes.Owned, ...]
    why: str = ""


def targets(
    findings: Sequence[Finding],
    services: Collection[model.Service],
    balancers: LoadBalancers,
) -> Mapping[str, Target]:
    """Return the resources to delete for each Service, by a unique key.

    A Service that exists is referred to as its controller does, so that the load
    balancer in use is the same.
    """
    living = {service.metadata.uid: service for service in services}
    groups: dict[tuple[str, Hashable], list[load_balancers.Owned]] = {}
    for finding in findings:
        owned = finding.source
        if isinstance(owned, load_balancers.Owned) and owned.ref is not None:
            groups.setdefault((owned.uid, owned.ref.native), []).append(owned)
    named = {
        owned.uid: owned.ref
        for owned in itertools.chain.from_iterable(groups.values())
        if owned.ref is not None and owned.ref.name
    }
    target_by_key: dict[str, Target] = {}
    for (uid, native), some in groups.items():
        (ref, *_) = (owned.ref for owned in some if owned.ref is not None)
        ref = dataclasses.replace(named.get(uid, ref), native=native)
        if uid in living:
            ref = balancers.refer(_facts(living[uid], ref.cluster))
        only = frozenset(owned.id for owned in some)
        target_by_key[f"{uid}/{min(only)}"] = Target(ref, None, only)
    return target_by_key


def _facts(service: model.Service, cluster: load_balancers.Cluster) -> Facts:
    about = service.metadata
    shown = service.status.load_balancer.ingress
    return Facts(
        cluster,
        about.namespace,
        about.name,
        about.uid,
        annotations=about.annotations,
        ingress=tuple(
            load_balancers.Ingress(ingress.ip, ingress.hostname) for ingress in shown
        ),
    )


# No slots: Python 3.11 then could not make it as CleanupCase[...](...).
@dataclasses.dataclass(frozen=True)
class CleanupCase(Generic[T]):
    """One target as it is now. observed: None where an open plan continues."""

    key: str
    target: T
    observed: Seen[Any] | Unknown | None = None
    resumed: plans.Resumed[T] | None = None


@dataclasses.dataclass(frozen=True)
class Planning(Generic[T]):
    """What a deletion by plans needs of a protocol.

    cloud: applies steps. observe: returns what exists, by the key of the target. plan:
    see the protocol.
    """

    cloud: Applier
    observe: Callable[[Mapping[str, T]], Mapping[str, Seen[Any] | Unknown]]
    plan: Callable[[T, Any, datetime.datetime], Plan]


def of_balancers(balancers: LoadBalancers) -> Planning[Target]:
    """Return how what is left of Services is deleted."""

    def observe(targets: Mapping[str, Target]) -> Mapping[str, Seen[Any] | Unknown]:
        observed = balancers.observe(list(targets.values()), Depth.TREE)
        return {key: observed[target.ref] for key, target in targets.items()}

    return Planning(balancers, observe, balancers.plan)


def of_machines(machines: Machines) -> Planning[machine_cloud.Target]:
    """Return how what is left of machines is deleted."""

    def observe(
        targets: Mapping[str, machine_cloud.Target],
    ) -> Mapping[str, Seen[Any] | Unknown]:
        observed = machines.observe(list(targets.values()))
        return {key: observed[target.ref] for key, target in targets.items()}

    return Planning(machines, observe, machines.plan)


def machine_targets(
    findings: Sequence[Finding],
) -> Mapping[str, machine_cloud.Target]:
    """Return the resources to delete for each machine, by a unique key."""
    groups: dict[machine_cloud.Ref, list[str]] = {}
    for finding in findings:
        owned = finding.source
        if isinstance(owned, machine_cloud.Owned) and owned.ref is not None:
            groups.setdefault(owned.ref, []).append(owned.id)
    return {
        f"{ref.uid}/{ref.key}": machine_cloud.Target(ref, None, frozenset(ids))
        for ref, ids in groups.items()
    }


class _Waiting:
    """The end of every target, and the waiting in between."""

    def __init__(
        self, keys: Collection[str], clocks: PollClocks, on_finish: Finished
    ) -> None:
        self._clocks = clocks
        self._on_finish = on_finish
        self._open = set(keys)
        self._until = clocks.monotonic() + PATIENCE_S
        self._failures: dict[str, int] = {}
        self._last: dict[str, str] = {}

    @property
    def open(self) -> frozenset[str]:
        """The keys that have not ended."""
        return frozenset(self._open)

    def wait(self, due: float) -> None:
        """Wait until a time of the clock."""
        wait_s = due - self._clocks.monotonic()
        if wait_s > 0:
            self._clocks.sleep(wait_s)

    def finish(self, action: Finish) -> None:
        """Note the end of a target."""
        self._open.discard(action.key)
        self._on_finish(action.key, action.why)

    def note_failure(self, key: str, error: errors.CloudError) -> None:
        """Note a failed write, or read; it is made again in the next round.

        An object that is busy, or that another client has changed, is no attempt:
        only the time is limited.
        """
        self._last[key] = error.summary
        count = self._failures.get(key, 0) + 1
        if error.retry is errors.Retry.NEVER:
            count = ATTEMPTS
        if error.retry is not errors.Retry.SHORT:
            self._failures[key] = count

    def given_up(self, key: str) -> str:
        """Return why a target is given up; empty: it is not."""
        if self._failures.get(key, 0) >= ATTEMPTS:
            return self._last[key]
        if self._clocks.monotonic() < self._until:
            return ""
        return self._last.get(key, f"it was not deleted within {PATIENCE_S:.0f} s")


class _Deletion(waiting.WaitingFlow[S, Action]):
    """What all deletions share: a failure concerns one target, and so does its end.

    Implements lib/reconcile/waiting.py, WaitingFlow, but for reads and decisions.
    """

    name = "orphans"

    def __init__(
        self, keys: Collection[str], on_finish: Finished, clocks: PollClocks
    ) -> None:
        self._waiting = _Waiting(keys, clocks, on_finish)

    @abc.abstractmethod
    def _write(self, action: Action) -> None:
        """Carry out an action that writes; note its failure."""

    def act(self, snapshot: S, action: Action) -> S:
        """Carry one action out."""
        if isinstance(action, Finish):
            self._waiting.finish(action)
        else:
            self._write(action)
        return snapshot

    def is_note(self, action: Action) -> bool:
        """Report whether an action only notes the end of a target."""
        return isinstance(action, Finish)

    def failure(self, error: Exception) -> failure.Failure | None:
        """Explain no error: those of the cloud are noted for their targets."""
        return failure.none_expected(error)


class PlannedDeletion(_Deletion[tuple[CleanupCase[T], ...]], Generic[T]):
    """Deletes the remaining resources of some Services or machines, in parallel."""

    def __init__(
        self,
        planning: Planning[T],
        targets: Mapping[str, T],
        on_finish: Finished,
        clocks: PollClocks,
    ) -> None:
        super().__init__(targets.keys(), on_finish, clocks)
        self._planning = planning
        self._targets = targets
        kept = memory.Memory[T, object](clocks.monotonic)
        self._engine = Engine(lambda: planning.cloud, kept, clocks.monotonic)
        self._postponed: set[str] = set()
        self._writers: dict[str, str] = {}
        self.written: set[str] = set()
        """Keys of the targets for which something was deleted."""

    def observe(self, due: float) -> tuple[CleanupCase[T], ...]:
        """Read the gates of open plans, and observe all others again."""
        self._waiting.wait(due)
        self._postponed.clear()
        self._writers.clear()
        some = {key: self._targets[key] for key in sorted(self._waiting.open)}
        resumed = self._engine.resume(some)
        rest = {key: target for key, target in some.items() if key not in resumed}
        observed = self._planning.observe(rest) if rest else {}
        return (
            *(
                CleanupCase(key, some[key], resumed=plan)
                for key, plan in resumed.items()
            ),
            *(CleanupCase(key, target, observed[key]) for key, target in rest.items()),
        )

    def decide(
        self, snapshot: tuple[CleanupCase[T], ...], now: datetime.datetime
    ) -> outcome.Outcome[Action]:
        """Return the next steps of all plans; no time when every target has ended."""
        actions: list[Action] = []
        waits: list[float] = []
        for case in snapshot:
            for action, wait_s in self._next(case, now):
                if action is not None:
                    actions.append(action)
                if wait_s is not None:
                    waits.append(wait_s)
        return outcome.Outcome(tuple(actions), min(waits, default=None))

    def _next(
        self, case: CleanupCase[T], now: datetime.datetime
    ) -> Iterator[tuple[Action | None, float | None]]:
        """Return actions, each with the seconds until the target is due again."""
        if why := self._waiting.given_up(case.key):
            yield Finish(case.key, why), None
        elif case.resumed is not None:
            plan, gate = case.resumed.plan, case.resumed.gate
            if isinstance(gate, Unknown) or gate.state is not GateState.OPEN:
                wait_s = POLL_S if isinstance(gate, Unknown) else gate.retry_after_s
                yield None, wait_s
                return
            for step in plans.next_steps(plan.steps, plan.object_id):
                yield Apply(case.key, step), POLL_S
        elif isinstance(case.observed, Seen):
            yield from self._planned(case, case.observed.value, now)
        elif isinstance(case.observed, Unknown):
            self._waiting.note_failure(case.key, case.observed.error)
            yield None, POLL_S

    def _planned(
        self, case: CleanupCase[T], observed: Any, now: datetime.datetime
    ) -> Iterator[tuple[Action | None, float | None]]:
        plan = self._planning.plan(case.target, observed, now)
        object_id = plan.object_id or observed.id
        for step in plans.next_steps(plan.steps, object_id):
            yield Apply(case.key, step), POLL_S
        is_stuck = bool(plan.problems) and not (plan.steps or plan.object_id)
        if plan.settled or is_stuck:
            why = "; ".join(problem.message for problem in plan.problems)
            yield Finish(case.key, why), None
        elif not plan.steps:
            yield None, POLL_S if plan.retry_after_s is None else plan.retry_after_s

    def _write(self, action: Action) -> None:
        if not isinstance(action, Apply) or action.key in self._postponed:
            return
        key, step = action.key, action.step
        if not self._may_write(key, step.step):
            self._postponed.add(key)
            return
        try:
            result = self._engine.apply(key, step)
        except failure.Postponed:
            self._postponed.add(key)
        except errors.CloudError as error:
            self._postponed.add(key)
            self._waiting.note_failure(key, error)
        else:
            self.written.add(key)
            if step.is_last:
                target = self._targets[key]
                self._engine.go_on(key, target, step, result, frozenset())

    def _may_write(self, key: str, step: Step) -> bool:
        """Report whether no other target has written the step's object in this round.

        A port carries groups of many Services: a second write of what was observed
        before the first one would be refused, or would undo it.
        """
        return self._writers.setdefault(step.path[0], key) == key


class RouteDeletion(_Deletion[Routed]):
    """Removes recorded routes and address pairs, and nothing else of their objects."""

    def __init__(
        self,
        tables: cloud_routes.Routes,
        read: Callable[[], Routed],
        entries: Collection[cloud_routes.Entry],
        on_finish: Finished,
        clocks: PollClocks,
    ) -> None:
        """read: returns the recorded routes that exist now."""
        super().__init__([str(entry) for entry in entries], on_finish, clocks)
        self._tables = tables
        self._read = read

    def observe(self, due: float) -> Routed:
        """Read the tables with their records again."""
        self._waiting.wait(due)
        return self._read()

    def decide(
        self, snapshot: Routed, now: datetime.datetime
    ) -> outcome.Outcome[Action]:
        """Return the steps that remove the remaining entries."""
        del now
        open_ = self._waiting.open
        present = {
            str(route.recorded.entry): route
            for route in snapshot.owned
            if str(route.recorded.entry) in open_
        }
        actions: list[Action] = []
        for key in sorted(open_):
            if why := self._waiting.given_up(key):
                actions.append(Finish(key, why))
                present.pop(key, None)
            elif not snapshot.why and key not in present:
                actions.append(Finish(key))
        for step in self._tables.release(list(present.values())):
            actions.append(ReleaseStep(frozenset(present), step))
        ended = {action.key for action in actions if isinstance(action, Finish)}
        return outcome.Outcome(tuple(actions), None if open_ <= ended else POLL_S)

    def _write(self, action: Action) -> None:
        if not isinstance(action, ReleaseStep):
            return
        try:
            self._tables.apply(action.step)
        except errors.CloudError as error:
            for key in action.keys:
                self._waiting.note_failure(key, error)


class VolumeDeletion(_Deletion[cloud_volumes.VolumesReading]):
    """Deletes volumes that are attached to nothing."""

    def __init__(
        self,
        volumes: Volumes,
        ids: Collection[str],
        cluster: str,
        on_finish: Finished,
        clocks: PollClocks,
    ) -> None:
        """cluster: ID in the ownership metadata; without it nothing is deleted."""
        super().__init__(ids, on_finish, clocks)
        self._volumes = volumes
        self._cluster = cluster

    def observe(self, due: float) -> cloud_volumes.VolumesReading:
        """Read the remaining volumes, with unfinished attachments."""
        self._waiting.wait(due)
        ids = sorted(self._waiting.open)
        refs = [ById(cloud_volumes.VolumeId(id_), in_full=True) for id_ in ids]
        return self._volumes.observe(refs) if refs else cloud_volumes.VolumesReading({})

    def decide(
        self, snapshot: cloud_volumes.VolumesReading, now: datetime.datetime
    ) -> outcome.Outcome[Action]:
        """Return the actions for each volume."""
        del now
        actions: list[Action] = []
        for ref, observed in snapshot.by_ref.items():
            if not isinstance(ref, ById):
                continue
            if why := self._waiting.given_up(ref.id):
                actions.append(Finish(ref.id, why))
            elif isinstance(observed, Unknown):
                self._waiting.note_failure(ref.id, observed.error)
            elif not observed:
                actions.append(Finish(ref.id))
            else:
                actions += _of_volume(observed[0], self._cluster)
        ended = {action.key for action in actions if isinstance(action, Finish)}
        is_over = self._waiting.open <= ended
        return outcome.Outcome(tuple(actions), None if is_over else POLL_S)

    def _write(self, action: Action) -> None:
        if not isinstance(action, DeleteVolume):
            return
        try:
            self._volumes.delete(cloud_volumes.VolumeId(action.key))
        except errors.CloudError as error:
            self._waiting.note_failure(action.key, error)


_DELETABLE = (cloud_volumes.VolumePhase.AVAILABLE, cloud_volumes.VolumePhase.FAILED)


def _of_volume(volume: cloud_volumes.Volume, cluster: str) -> Iterator[Action]:
    """Return the actions for a volume as it is now: pure."""
    holders = ", ".join(attachment.holder for attachment in volume.attachments)
    if volume.cluster != cluster:
        yield Finish(volume.id, "it is not owned by this cluster any more")
    elif holders:
        yield Finish(volume.id, f"it is attached to {holders}")
    elif volume.phase in _DELETABLE:
        yield DeleteVolume(volume.id)
    elif volume.phase is not cloud_volumes.VolumePhase.DELETING:
        yield Finish(volume.id, f"its status is {volume.native_phase}")
