"""Load balancers of Meadow: one relay for each Service, found by its name."""

import dataclasses
import datetime
import math
import threading
from collections.abc import Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.load_balancers import (
    ROLES,
    Cluster,
    Depth,
    Facts,
    Ingress,
    Observation,
    Observed,
    Owned,
    Plan,
    Problems,
    Reason,
    Ref,
    Results,
    Role,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import (
    Asked,
    Gate,
    GateState,
    Problem,
    ProblemReason,
    Step,
    StepResult,
    Verb,
)
from lib.cloud.write_places import Places

SPEED = "meadow.example/speed"
SPEEDS = ("walk", "run")


@dataclasses.dataclass(frozen=True)
class Relay:
    """A load balancer: whose it is, and what it forwards to which Nodes."""

    id: str
    cluster: str
    uid: str
    ports: tuple[tuple[int, int], ...]
    nodes: tuple[str, ...]
    speed: str


class MeadowLoadBalancers:
    """Implements `lib.cloud.load_balancers.LoadBalancers`.

    Every write names its relay, so that it may be repeated, and is complete at once:
    there are no gates, and nothing is to be remembered on the Service.
    """

    reasons: tuple[ProblemReason, ...] = ()
    uses_endpoints = False
    places: Places | None = None

    def __init__(self, relays: dict[str, Relay], lock: threading.RLock) -> None:
        self._relays = relays
        self._lock = lock

    def refer(self, facts: Facts) -> Ref:
        """See the protocol."""
        return Ref(facts.cluster, facts.namespace, facts.name, facts.uid)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        speed = facts.annotations.get(SPEED, SPEEDS[0])
        if speed not in SPEEDS:
            text = (
                f'annotation {SPEED}: unsupported value "{speed}": must be one of '
                + ", ".join(SPEEDS)
            )
            wrong = Problem(Reason.INVALID_ANNOTATION, text, is_fatal=True)
            return Problems((wrong,))
        relay = Relay(
            _id(facts.uid),
            facts.cluster.id,
            facts.uid,
            tuple((port.port, port.node_port) for port in facts.ports),
            tuple(node.name for node in facts.nodes),
            speed,
        )
        return Spec(relay)

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """See the protocol; what is in memory is always shown in full."""
        del depth
        with self._lock:
            return {target.ref: Seen(self._observed(target.ref)) for target in targets}

    def _observed(self, ref: Ref) -> Observed:
        relay = self._relays.get(_id(ref.uid))
        return Observed(relay is not None, relay.id if relay else "", relay)

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        del now
        relay = observed.native if isinstance(observed.native, Relay) else None
        desired = target.spec.native if target.spec else None
        results = Results(ingress=(_ingress(relay),)) if relay else Results()
        path = (f"relay {_id(target.ref.uid)}",)
        is_listed = target.only is None or observed.id in target.only
        if relay == desired or not is_listed:
            return Plan(settled=True, results=results)
        if desired is None:
            deletion = Step(Verb.DELETE, path, "no Service wants it", relay, False)
            return Plan((deletion,), results=results)
        verb = Verb.CREATE if relay is None else Verb.CHANGE
        return Plan((Step(verb, path, "it differs", desired, False),), results=results)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        if within_s <= 0 or not isinstance(step.native, Relay):
            raise errors.Unavailable("no time is left", operation=str(step))
        relay = step.native
        with self._lock:
            if step.verb is Verb.DELETE:
                self._relays.pop(relay.id, None)
            else:
                self._relays[relay.id] = relay
        return StepResult(relay.id)

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol: open for whatever exists."""
        states = {True: GateState.OPEN, False: GateState.LOST}
        return {plan.id: Gate(states[plan.id in self._relays]) for plan in asked}

    def owned(
        self, cluster_id: str, roles: Collection[Role] = ROLES
    ) -> Iterator[Owned]:
        """See the protocol; a relay does not tell the name of its Service."""
        relays = self._relays.values() if Role.LOAD_BALANCER in roles else ()
        for relay in tuple(relays):
            if relay.cluster == cluster_id:
                ref = Ref(Cluster(cluster_id, ""), "", "", relay.uid)
                yield Owned("relay", relay.id, relay.id, relay.uid, ref=ref)


def _id(uid: str) -> str:
    return f"relay-{uid}"


def _ingress(relay: Relay) -> Ingress:
    return Ingress(hostname=f"{relay.id}.meadow.example")
