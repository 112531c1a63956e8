"""Load balancers of a cloud that lives in memory."""

import dataclasses
import datetime
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.load_balancers import (
    ROLES,
    Cluster,
    Depth,
    Facts,
    Ingress,
    IpMode,
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
from lib.process import config

ID_ANNOTATION = "fake.example/load-balancer-id"
ALGORITHM_ANNOTATION = "fake.example/algorithm"
ALGORITHMS = ("round-robin", "least-busy")
BUSY_S = 2.0
_POLL_S = 1.0

Sockets = frozenset[tuple[str, int, int]]
"""Protocol, port and node port."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The desired state of a load balancer."""

    sockets: Sockets
    members: frozenset[str]
    algorithm: str


@dataclasses.dataclass(slots=True)
class LoadBalancer:
    """A load balancer of this cloud.

    busy_until: on the cloud's clock. public: its address. cluster: whose ownership tag
    it carries.
    """

    id: str
    name: str
    uid: str
    request: Request
    busy_until: float
    public: str = ""
    is_failed: bool = False
    cluster: str = ""


@dataclasses.dataclass
class FakeLoadBalancers:
    """Implements `lib.cloud.load_balancers.LoadBalancers`.

    A new one takes a write; a public address, its sockets and its members one more
    each. After each of them but the address it is busy for a while, and refuses others.
    clock: monotonic seconds. load_balancers: by ID; tests change it. faults: errors for
    the next calls, None for one that succeeds; lost: the same, after the call was
    carried out. before_call, after_call: may raise, as if the process crashed there.
    uses_endpoints: only Nodes with ready endpoints become members, where they matter.
    busy_s: how long a load balancer is busy after each write. poll_s: after how many
    seconds a busy one is to be read again.
    """

    clock: Callable[[], float]
    load_balancers: dict[str, LoadBalancer] = dataclasses.field(default_factory=dict)
    faults: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    lost: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    calls: list[str] = dataclasses.field(default_factory=list)
    before_call: Callable[[str], None] = lambda operation: None
    after_call: Callable[[str], None] = lambda operation: None
    fails_to_start: int = 0
    uses_endpoints: bool = False
    busy_s: float = BUSY_S
    poll_s: float = _POLL_S
    places: Places | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._made = 0

    @property
    def reasons(self) -> tuple[ProblemReason, ...]:
        """See the protocol; it has no problems of its own kind."""
        return ()

    def refer(self, facts: Facts) -> Ref:
        """See the protocol."""
        stored = facts.annotations.get(ID_ANNOTATION, "")
        return Ref(facts.cluster, facts.namespace, facts.name, facts.uid, stored)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol; a wrong algorithm is fatal, no Nodes are worth a word."""
        algorithm = facts.annotations.get(ALGORITHM_ANNOTATION, ALGORITHMS[0])
        if algorithm not in ALGORITHMS:
            field = f"annotation {ALGORITHM_ANNOTATION}"
            allowed = "one of " + ", ".join(ALGORITHMS)
            text = str(config.FieldProblem(field, algorithm, allowed))
            return Problems((Problem(Reason.INVALID_ANNOTATION, text, True),))
        no_nodes = Problem(Reason.NO_NODES, "no Node may receive traffic")
        members = frozenset(node.name for node in facts.nodes)
        if facts.serving_nodes is not None:
            members &= facts.serving_nodes
        request = Request(
            frozenset((p.protocol.value, p.port, p.node_port) for p in facts.ports),
            members,
            algorithm,
        )
        return Spec(request, () if facts.nodes else (no_nodes,))

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """See the protocol; one call for all."""
        try:
            self._call(f"list load balancers ({depth.name})")
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        with self._lock:
            return {target.ref: Seen(self._find(target.ref)) for target in targets}

    def _find(self, ref: Ref) -> Observed:
        mine = [
            balancer
            for balancer in self.load_balancers.values()
            if balancer.uid == ref.uid
        ]
        copy = dataclasses.replace(mine[0]) if mine else None
        is_busy = copy is not None and self.clock() < copy.busy_until
        return Observed(copy is not None, copy.id if copy else "", (copy, is_busy))

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        del now
        balancer, is_busy = _opened(observed)
        only = target.only
        if balancer is not None and only is not None and balancer.id not in only:
            return Plan(settled=True)
        results = _results(balancer)
        problems = target.spec.problems if target.spec else ()
        if is_busy:
            return Plan(retry_after_s=self.poll_s, results=results, problems=problems)
        steps = tuple(_steps(target, balancer))
        return Plan(
            steps=steps,
            settled=not steps,
            backs_off=balancer is not None
            and balancer.is_failed
            and target.spec is not None,
            results=results,
            problems=problems,
        )

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        if within_s <= 0:
            raise errors.Unavailable("no time is left", operation=str(step))
        self._call(str(step))
        result = self._answer(step)
        self.after_call(str(step))
        lost = self.lost.pop(0) if self.lost else None
        if lost is not None:
            raise lost
        return result

    def _answer(self, step: Step) -> StepResult:
        kind, about, native = _parts(step)
        with self._lock:
            if kind == "create":
                return self._create(about, native)
            balancer = self.load_balancers.get(about)
            if balancer is None:
                raise errors.NotFound("gone", operation=str(step), resource=about)
            if step.is_gated and self.clock() < balancer.busy_until:
                raise errors.Busy("immutable", operation=str(step), resource=about)
            if kind == "delete":
                del self.load_balancers[about]
            elif kind == "address":
                balancer.public = f"192.0.2.{len(self.load_balancers)}"
            elif isinstance(native, Request):
                balancer.request = native
            if step.is_gated:
                balancer.busy_until = self.clock() + self.busy_s
            opens_after_s = self.poll_s if step.is_gated else 0.0
            return StepResult(about, opens_after_s=opens_after_s)

    def _create(self, name: str, native: object) -> StepResult:
        cluster, uid, request = native if isinstance(native, tuple) else ("", "", None)
        self._made += 1
        lb_id = f"lb-{self._made}"
        fails, self.fails_to_start = self.fails_to_start > 0, self.fails_to_start - 1
        self.load_balancers[lb_id] = LoadBalancer(
            lb_id,
            name,
            uid,
            request,
            self.clock() + self.busy_s,
            is_failed=fails,
            cluster=cluster,
        )
        return StepResult(lb_id, ((ID_ANNOTATION, lb_id),), self.poll_s)

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol."""
        try:
            self._call("read gates")
        except errors.CloudError as error:
            return {plan.id: Unknown(error) for plan in asked}
        with self._lock:
            return {plan.id: self._gate(plan.id) for plan in asked}

    def _gate(self, lb_id: str) -> Gate:
        balancer = self.load_balancers.get(lb_id)
        if balancer is None or balancer.is_failed:
            return Gate(GateState.LOST)
        if self.clock() < balancer.busy_until:
            return Gate(GateState.CLOSED, self.poll_s)
        return Gate(GateState.OPEN)

    def owned(
        self, cluster_id: str, roles: Collection[Role] = ROLES
    ) -> Iterator[Owned]:
        """See the protocol; it has nothing but load balancers."""
        self._call("list owned")
        some = self.load_balancers.values() if Role.LOAD_BALANCER in roles else ()
        for balancer in tuple(some):
            if balancer.cluster == cluster_id:
                namespace, _, name = balancer.name.partition("/")
                cluster = Cluster(cluster_id, cluster_id)
                yield Owned(
                    "load balancer",
                    balancer.id,
                    balancer.name,
                    balancer.uid,
                    service=balancer.name,
                    ref=Ref(cluster, namespace, name, balancer.uid, balancer.id),
                    handles=frozenset({balancer.id, balancer.public} - {""}),
                )

    def _call(self, operation: str) -> None:
        self.before_call(operation)
        self.calls.append(operation)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault


def _opened(observed: Observed) -> tuple[LoadBalancer | None, bool]:
    native = observed.native
    if isinstance(native, tuple):
        balancer, is_busy = native
        return balancer, is_busy
    raise TypeError(f"not of this cloud: {native!r}")


def _parts(step: Step) -> tuple[str, str, object]:
    if isinstance(step.native, tuple):
        kind, about, native = step.native
        return kind, about, native
    raise TypeError(f"not of this cloud: {step!r}")


def _results(balancer: LoadBalancer | None) -> Results:
    if balancer is None:
        return Results()
    shown = (
        (Ingress(ip=balancer.public, ip_mode=IpMode.VIP),) if balancer.public else None
    )
    return Results(shown, ((ID_ANNOTATION, balancer.id),))


def _steps(target: Target, balancer: LoadBalancer | None) -> Iterator[Step]:
    """Yield what is to be done, in order; pure."""
    name = f"{target.ref.namespace}/{target.ref.name}"
    path = (f"load balancer {name}",)
    request = target.spec.native if target.spec else None
    if balancer is None:
        if request is not None:
            owner = (target.ref.cluster.id, target.ref.uid, request)
            new = ("create", name, owner)
            yield Step(Verb.CREATE, path, "there is none", new, is_repeatable=False)
        return
    if request is None or balancer.is_failed:
        why = "it failed to start" if balancer.is_failed else "it has no Service"
        yield Step(Verb.DELETE, path, why, ("delete", balancer.id, None))
        return
    if not balancer.public:
        address = ("address", balancer.id, None)
        about = (*path, "address")
        yield Step(Verb.CREATE, about, "there is none", address, is_gated=False)
    yield from _changes(path, balancer, request)


def _changes(
    path: tuple[str, ...], balancer: LoadBalancer, desired: object
) -> Iterator[Step]:
    """Change sockets and algorithm first, and members with a write of their own."""
    if not isinstance(desired, Request):
        raise TypeError(f"not of this cloud: {desired!r}")
    first = dataclasses.replace(desired, members=balancer.request.members)
    if balancer.request != first:
        native = ("change", balancer.id, first)
        yield Step(
            Verb.CHANGE, (*path, "sockets"), "they differ from the desired ones", native
        )
    if first != desired:
        native = ("change", balancer.id, desired)
        yield Step(
            Verb.CHANGE, (*path, "members"), "they differ from the desired ones", native
        )
