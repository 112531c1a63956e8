"""The balancers flow, its drift detection, and the events that enqueue a Service."""

import bisect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from lib.balancers import act, decide, model, observe, translate
from lib.balancers.model import (
    Action,
    Memory,
    Service,
    Settle,
    Snapshot,
    Source,
    Topic,
)
from lib.cloud.load_balancers import LoadBalancers, Node, Reason, Results, Target
from lib.cloud.steps import CommonReason, ProblemReason
from lib.kube import client, events, store
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.model import ApplyStep, Await, StartBackoff
from lib.plans.writing import Writing
from lib.reconcile import failure as failures
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome, Requeue

DEEP_EVERY = 6
"""One in this number of drift checks is deep; more often where checks are rare, as
each Service is checked deeply once an hour at least."""
DEEP_S = 3600.0
CALLS_PER_CHECK = 300
"""Reads of single load balancers and pools per drift check, on average."""

Enqueue = Callable[[str, Topic], None]
EnqueueMany = Callable[[Iterable[str], Topic], None]


class BalancersFlow(runner.Flow[Snapshot, Action]):
    """Provides Services with load balancers; see lib/reconcile/runner.py.

    load_balancers: returns those in use. writing: refuses when the Lease is lost.
    clock: monotonic seconds. applying: when the cloud may be written. on_open: see
    `lib/plans/engine.Engine`. ended: see `act.Dependencies`.
    """

    name = "balancers"

    def __init__(  # noqa: PLR0913 # keyword only, the parts of a flow
        self,
        *,
        sources: observe.Sources,
        load_balancers: Callable[[], LoadBalancers],
        writing: client.Api,
        recorders: Mapping[Source, events.Recorder],
        clock: Callable[[], float] = time.monotonic,
        applying: Writing | None = None,
        on_open: Callable[[str, frozenset[str]], None] | None = None,
        ended: act.Ended | None = None,
    ) -> None:
        self._memory = Memory(clock)
        self._load_balancers = load_balancers
        self._sources = sources
        self._engine: Engine[Target, Results] = Engine(
            load_balancers, self._memory, clock, applying, on_open
        )
        self._observer = observe.ServiceObserver(
            sources, load_balancers, self._memory, self._engine, clock
        )
        dependencies = act.Dependencies(
            writing,
            sources.services,
            recorders,
            self._engine,
            self._desire,
            self._observer.contests,
            ended,
        )
        self._actor = act.ServiceActor(dependencies, self._memory)

    def _desire(
        self,
        service: Service,
        nodes: tuple[Node, ...],
        serving: frozenset[str] | None,
    ) -> Target | None:
        cluster, balancers = self._sources.cluster(), self._load_balancers()
        target, _ = translate.target(service, nodes, cluster, balancers, serving)
        return target

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read what needs no call of the cloud, once for all claims."""
        return self._observer.observe(
            [(claim.key, frozenset(map(Topic, claim.topics))) for claim in claims]
        )

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether the cloud's lists and trees have to be read for it."""
        return self._observer.needs_read(snapshot)

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud, once for all; open plans do not wait for that."""
        return self._observer.read(snapshots)

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/balancers/decide.py."""
        return decide.decide(snapshot, now, self._load_balancers().plan)

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        return runner.HELD_S if snapshot.held else 0.0

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; see the protocol."""
        return self._actor.act(snapshot, action)

    def left_after(
        self, failed: Action, error: Exception, rest: Sequence[Action]
    ) -> Sequence[Action]:
        """See `carrying.GoesOn`."""
        return plans.left_after(failed, error, rest)

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Count a failure; see the protocol."""
        self._actor.ended(snapshot, error)

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[Requeue]:
        """See the protocol."""
        return self._actor.requeues(snapshot, error)

    def is_note(self, action: Action) -> bool:
        """See the protocol."""
        return isinstance(action, Await | StartBackoff | Settle)

    def is_slow(self, action: Action) -> bool:
        """A cloud may answer a creation once all of it is checked: that takes time."""
        return isinstance(action, ApplyStep) and not action.object_id

    def failure(self, error: Exception) -> failures.Failure | None:
        """Return the kind of a failed reconciliation; None: an unexpected error."""
        if isinstance(error, model.TerminalError):
            return failures.Failure(str(error))
        return failures.explained(error)

    @property
    def reasons(self) -> tuple[ProblemReason, ...]:
        """Every reason that a problem may have with these load balancers."""
        return (*CommonReason, *Reason, *self._load_balancers().reasons)

    def problems(self) -> Mapping[ProblemReason, int]:
        """Count the Services that have a problem, by each possible reason."""
        counts = self._memory.problems()
        return {reason: counts.get(reason, 0) for reason in self.reasons}

    def forget(self, service: Service) -> None:
        """Drop what is kept for a Service that was deleted."""
        self._engine.forget(service.metadata.uid)
        self._observer.forget(service.key)


def is_changed(old: Service | None, new: Service) -> bool:
    """Report whether a change of a Service requires a reconciliation."""
    if old is None or not (old.concerns_us or new.concerns_us):
        return new.concerns_us
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
        or before.deletion_timestamp != after.deletion_timestamp
        or (old.spec, old.status) != (new.spec, new.status)
    )


def watch(services: store.Store[Service], flow: BalancersFlow, add: Enqueue) -> None:
    """Add a Service to the queue at each of its changes."""

    def changed(key: str, old: Service | None, new: Service | None) -> None:
        if old is not None and not _goes_on(old, new):
            flow.forget(old)
        if new is not None and is_changed(old, new):
            add(key, Topic.SYNC)

    services.subscribe(changed)


def _goes_on(old: Service, new: Service | None) -> bool:
    is_same = new is not None and new.metadata.uid == old.metadata.uid
    return is_same and new is not None and new.concerns_us


def hints(services: store.Store[Service], add: Enqueue) -> Callable[[str], None]:
    """Return what adds the Service of a UID when the cloud reports a change of it."""

    def hint(uid: str) -> None:
        for key, service in services.items().items():
            if service.metadata.uid == uid and service.concerns_us:
                add(key, Topic.DRIFT)

    return hint


def concerned(services: store.Store[Service]) -> tuple[str, ...]:
    """Return the keys of all Services that have, or are to have, a load balancer."""
    return tuple(
        key for key, service in services.items().items() if service.concerns_us
    )


class Drift:
    """Enqueues all Services for drift detection.

    A small number of Services is read whole each time, and deeply once an hour. Where
    would take more than CALLS_PER_CHECK calls on average, each check compares all
    Services by lists, which show what has changed, and reads the next few deeply.
    """

    def __init__(
        self,
        services: store.Store[Service],
        add_many: EnqueueMany,
        period_s: float = DEEP_S / DEEP_EVERY,
    ) -> None:
        """period_s: interval of the drift checks, in seconds."""
        self._services = services
        self._add_many = add_many
        self._deep_every = min(DEEP_EVERY, max(1, int(DEEP_S / period_s)))
        self._checks = 0
        self._last = ""

    def check(self) -> None:
        """Enqueue all Services; at intervals for a deep check."""
        self._checks += 1
        calls = {
            key: max(1, len(service.spec.ports))
            for key, service in self._services.items().items()
            if service.concerns_us
        }
        shallow = (self._deep_every - 1) * len(calls)
        if shallow + sum(calls.values()) > self._deep_every * CALLS_PER_CHECK:
            self._take_turns(calls)
            return
        is_deep = self._checks % self._deep_every == 0
        self._add_many(calls, Topic.DEEP_DRIFT if is_deep else Topic.DRIFT)

    def _take_turns(self, calls: Mapping[str, int]) -> None:
        """Enqueue all to be compared by lists, and the next ones for a deep check."""
        keys = sorted(calls)
        first = bisect.bisect_right(keys, self._last)
        deep: list[str] = []
        left = CALLS_PER_CHECK
        for key in (*keys[first:], *keys[:first]):
            if deep and calls[key] > left:
                break
            left -= calls[key]
            deep.append(key)
        self._last = deep[-1]
        self._add_many(deep, Topic.DEEP_DRIFT)
        self._add_many(sorted(calls.keys() - deep), Topic.LISTED_DRIFT)
