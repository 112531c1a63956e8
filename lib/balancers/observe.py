"""All reads of one pass: Services from the watched store, the rest from the cloud."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from lib.balancers import decide, facts
from lib.balancers.memory import Memory
from lib.balancers.model import Again, Open, Service, Snapshot, Topic
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    LoadBalancers,
    Node,
    Problems,
    Target,
)
from lib.cloud.model import Unknown
from lib.cloud.steps import Asked, Gate, GateState, Problem
from lib.kube import client, fresh, resources, store
from lib.kube import errors as kube_errors

Claim = tuple[str, frozenset[Topic]]


def never(key: str, topics: frozenset[Topic], delay_s: float) -> None:
    """Be told what is due, and do nothing: nothing is under way."""
    del key, topics, delay_s


def depth(topics: Iterable[Topic]) -> Depth:
    """Say how much is to be read for these topics."""
    found = set(topics)
    if Topic.DEEP_DRIFT in found:
        return Depth.FULL
    return Depth.TREE if Topic.DRIFT in found else Depth.CHANGED


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where the flow reads from.

    nodes: gives those that may receive traffic now. cluster: asked once the API server
    answers.
    """

    services: store.Store[Service]
    api: client.Api
    nodes: Callable[[], tuple[Node, ...]]
    cluster: Callable[[], Cluster]


class Observer:
    """Reads for a batch of Services at once."""

    def __init__(
        self,
        sources: Sources,
        load_balancers: LoadBalancers,
        memory: Memory,
        clock: Callable[[], float],
        again: Again = never,
    ) -> None:
        """again: makes a key due for topics, in seconds."""
        self._sources = sources
        self._load_balancers = load_balancers
        self._memory = memory
        self._clock = clock
        self._again = again
        self._fresh = fresh.Fresh(
            sources.services, sources.api, resources.SERVICES, Service, clock
        )

    def observe(self, claims: Sequence[Claim]) -> Mapping[str, Snapshot]:
        """Give one snapshot per Service that concerns us; one call serves all.

        Those that `needs_read` names have nothing of the cloud in them yet.
        """
        nodes = self._sources.nodes()
        seen: dict[str, Snapshot] = {}
        for key, topics in claims:
            snapshot = self._service(key, topics)
            if snapshot is not None and snapshot.service.concerns_us:
                seen[key] = self._isolated(snapshot, nodes)
        self._ask(seen)
        return seen

    def _isolated(self, snapshot: Snapshot, nodes: tuple[Node, ...]) -> Snapshot:
        """Parse one Service; an unexpected error concerns no other of the batch.

        Raises:
            KubeError: the API server does not answer, which concerns all.
        """
        try:
            return self._wanted(snapshot, nodes)
        except kube_errors.KubeError:
            raise
        except Exception as error:
            self._memory.drop(snapshot.service.metadata.uid)
            return dataclasses.replace(snapshot, error=error)

    def _service(self, key: str, topics: frozenset[Topic]) -> Snapshot | None:
        reading = self._fresh.read(key)
        if reading.value is None:
            return None
        return Snapshot(reading.value, topics, held=reading.held)

    def target(
        self, service: Service, nodes: tuple[Node, ...]
    ) -> tuple[Target | None, tuple[Problem, ...]]:
        """Say what a Service wants of the cloud, or why that can't be served."""
        asked = facts.of(service, nodes, self._sources.cluster())
        ref = self._load_balancers.refer(asked)
        if not service.is_wanted:
            return Target(ref, None), ()
        parsed = self._load_balancers.parse(asked)
        if isinstance(parsed, Problems):
            return None, parsed.problems
        return Target(ref, parsed), ()

    def _wanted(self, snapshot: Snapshot, nodes: tuple[Node, ...]) -> Snapshot:
        if snapshot.held:
            return snapshot
        uid = snapshot.service.metadata.uid
        target, problems = self.target(snapshot.service, nodes)
        return dataclasses.replace(
            snapshot,
            target=target,
            problems=problems,
            nodes=nodes,
            is_under_way=self._memory.is_under_way(uid),
            barred_s=self._memory.barred_s(uid, is_wanted=snapshot.service.is_wanted),
            told=self._memory.told(uid),
        )

    def _ask(self, seen: dict[str, Snapshot]) -> None:
        """Ask for the gates of all open plans that still fit, with one call."""
        plans: dict[str, Open] = {}
        now = self._clock()
        for key, snapshot in seen.items():
            plan = self._plan(snapshot)
            if plan is None:
                continue
            if plan.gate is not None:
                seen[key] = self._answered(snapshot, plan, plan.gate)
            elif now < plan.due_s:
                # The watch has brought our own writes back, or a change of no account.
                gate = Gate(GateState.CLOSED, plan.due_s - now)
                seen[key] = dataclasses.replace(snapshot, open=plan, gate=gate)
            else:
                plans[key] = plan
        if not plans:
            return
        uids = {seen[key].service.metadata.uid for key in plans}
        others = {u: p for u, p in self._memory.opens().items() if u not in uids}
        waiting = (*plans.values(), *others.values())
        asked = {Asked(p.load_balancer_id, now - p.since_s) for p in waiting}
        gates = self._load_balancers.gates(asked)
        for key, plan in plans.items():
            answer = gates[plan.load_balancer_id]
            seen[key] = self._answered(seen[key], plan, answer)
        for uid, plan in others.items():
            self._overheard(uid, plan, gates[plan.load_balancer_id])

    def _overheard(self, uid: str, plan: Open, gate: Gate | Unknown) -> None:
        """Let a plan that was not due know what its gate is, since it costs nothing.

        So many that wait at one time need no more calls than one.
        """
        if isinstance(gate, Unknown) or plan.gate is not None:
            return
        if gate.state is GateState.CLOSED:
            due_s = self._clock() + gate.retry_after_s
            self._memory.note(uid, plan, dataclasses.replace(plan, due_s=due_s))
        elif self._memory.note(uid, plan, dataclasses.replace(plan, gate=gate)):
            self._again(plan.target.ref.key, plan.topics, 0.0)

    def _plan(self, snapshot: Snapshot) -> Open | None:
        """Give the plan that is under way, if it is for what is wanted now."""
        uid = snapshot.service.metadata.uid
        plan = self._memory.open(uid)
        if plan is None or snapshot.held or snapshot.error is not None:
            return None
        if plan.target != snapshot.target:
            self._memory.drop(uid)
            return None
        return plan

    def _answered(self, seen: Snapshot, plan: Open, gate: Gate | Unknown) -> Snapshot:
        """Go on with a plan, or leave it for a new look."""
        uid = seen.service.metadata.uid
        if isinstance(gate, Gate):
            if gate.state is GateState.LOST:
                self._memory.drop(uid)
                return seen
            if gate.state is GateState.OPEN and not plan.steps:
                self._memory.drop(uid)
                return seen
            due_s = self._clock() + gate.retry_after_s
            self._memory.keep(uid, dataclasses.replace(plan, due_s=due_s, gate=None))
        return dataclasses.replace(seen, open=plan, gate=gate)

    def read(self, seen: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud for those that need it, those of one depth together."""
        found = dict(seen)
        by_depth: dict[Depth, dict[str, Target]] = {}
        for key, snapshot in seen.items():
            if snapshot.target is not None and self.needs_read(snapshot):
                wanted = by_depth.setdefault(depth(snapshot.topics), {})
                wanted[key] = snapshot.target
        for level, targets in by_depth.items():
            there = self._load_balancers.observe(tuple(targets.values()), level)
            for key, target in targets.items():
                observed = there[target.ref]
                found[key] = dataclasses.replace(found[key], observed=observed)
        return found

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Say whether it must be looked at: not so when all that counts was well."""
        if snapshot.held or snapshot.open is not None or snapshot.target is None:
            return False
        settled = self._memory.settled(snapshot.service.metadata.uid)
        is_compared = Topic.LISTED_DRIFT in snapshot.topics
        if settled is None or is_compared or depth(snapshot.topics) > Depth.CHANGED:
            return True
        target, results = settled
        is_same = target == snapshot.target
        return not is_same or bool(decide.missing(snapshot.service, results))

    def forget(self, key: str) -> None:
        """Drop what is kept for a Service that was deleted."""
        self._fresh.forget(key)
