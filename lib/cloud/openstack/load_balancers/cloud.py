"""The load balancers of one OpenStack project: entry point of this package."""

import datetime
import math
from collections.abc import Collection, Iterator, Mapping

import msgspec

from lib.cloud import errors
from lib.cloud.load_balancers import (
    ROLES,
    Adoption,
    Depth,
    Facts,
    NotOwned,
    Observation,
    Observed,
    Owned,
    Plan,
    Problems,
    Ref,
    Role,
    Spec,
    Target,
)
from lib.cloud.model import Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers import adoption, pace
from lib.cloud.openstack.load_balancers.plan import actions, report, requests
from lib.cloud.openstack.load_balancers.plan import plan as plans
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.read import identity, lists, native, owned
from lib.cloud.openstack.load_balancers.read.observe import TIMEOUT_S, OctaviaObserver
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import backends, parse
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult, Verb
from lib.cloud.support import absence_scope
from lib.cloud.write_places import Places
from lib.process import decoding

WRITE_TIMEOUT_S = 60.0
GOING_POLL_S = 4.0
"""No Service waits for a deletion."""
_TRY_NEXT = (errors.LimitReached, errors.InvalidRequest)


class _Id(msgspec.Struct, frozen=True):
    id: str = ""


class OctaviaLoadBalancers:
    """Implements `lib.cloud.load_balancers.LoadBalancers`."""

    uses_endpoints = False

    def __init__(
        self,
        api: client.Client,
        config: settings.LoadBalancer,
        guard: absence_scope.Guard | None = None,
    ) -> None:
        """guard: where absence counts; None: nothing was observed yet."""
        self._api = api
        self._config = config
        guard = guard or absence_scope.Guard(api.project_id, "")
        self._observer = OctaviaObserver(api, config, guard)
        self._choose = backends.Chooser()
        self._pace = pace.Pace()

    @property
    def places(self) -> Places:
        """See the protocol."""
        return self._api.places(client.Service.LOAD_BALANCER)

    @property
    def reasons(self) -> tuple[OctaviaReason, ...]:
        """See the protocol."""
        return tuple(OctaviaReason)

    def refer(self, facts: Facts) -> Ref:
        """See the protocol."""
        self._observer.note_nodes(facts.nodes)
        return parse.refer(facts, self._config)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        return parse.parse(facts, self._config, self._choose)

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """See the protocol."""
        return self._observer.observe(targets, depth)

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        del now
        return plans.plan(target, observed, self._config)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        action = actions.of(step)
        try:
            body = self._sent(step, within_s)
        finally:
            # Also when the answer is lost: what was read before may be true no more.
            is_of_members = action.kind is Kind.MEMBERS
            self._observer.forget(action.balancer_id, only_members=is_of_members)
        is_balancer = action.kind is Kind.LOAD_BALANCER
        if is_balancer and step.verb is Verb.DELETE:
            self._observer.note_deleting(action.balancer_id)
        created_id = _made_id(body)
        if is_balancer and step.verb is Verb.CREATE:
            ids = ((keys.LOAD_BALANCER_ID, created_id), (keys.OWNED_ID, created_id))
            return StepResult(created_id, ids, self._pace.created(created_id))
        opens_after_s = self._opens_after_s(step, action)
        if action.forgets:  # else it would appear to be deleted by another client
            nothing = ((keys.LOAD_BALANCER_ID, None), (keys.OWNED_ID, None))
            return StepResult(created_id, nothing, opens_after_s)
        return StepResult(created_id, opens_after_s=opens_after_s)

    def _opens_after_s(self, step: Step, action: Action) -> float:
        """Return the seconds until the first poll of a load balancer after a write.

        The pace is measured by changes of what is under it: neither a failover nor a
        replacement is one.
        """
        id_ = action.balancer_id
        if not id_:
            return 0.0
        is_deleted = action.kind is Kind.LOAD_BALANCER and step.verb is Verb.DELETE
        if step.is_gated and not is_deleted:
            return self._pace.began(id_)
        self._pace.forget(id_)
        return pace.FIRST_POLL_S

    def _sent(self, step: Step, within_s: float) -> bytes:
        """Send the first write that is not refused as impossible.

        Nothing is sent after within_s. What was sent in time may take longer to be
        answered: a leader that loses its Lease exits, and a creation that is given up
        early would be an unknown outcome for nothing.
        """
        began = self._api.now()
        deadline, send_by = began + WRITE_TIMEOUT_S, began + within_s
        *others, last = requests.writes(step)
        for write in others:
            try:
                return self._api.write(write, deadline, send_by)
            except _TRY_NEXT:
                continue
        try:
            return self._api.write(last, deadline, send_by)
        except errors.NotFound:
            if step.verb is Verb.DELETE:
                return b""
            raise

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol."""
        if not asked:
            return {}
        deadline = self._api.now() + TIMEOUT_S
        try:
            if len(asked) == 1:
                id_ = next(iter(asked)).id
                answer = lists.LOAD_BALANCER.find(self._api, id_, deadline)
                balancers = (
                    {}
                    if answer is None
                    else {answer.loadbalancer.id: answer.loadbalancer}
                )
            else:
                all_ = lists.STATES.of_project(self._api, deadline)
                balancers = {each.id: each for each in all_}
        except errors.CloudError as error:
            return {each.id: Unknown(error) for each in asked}
        return {each.id: self._gate(balancers.get(each.id), each) for each in asked}

    def _gate(self, balancer: native.LoadBalancer | None, asked: Asked) -> Gate:
        """Return whether a load balancer takes the next write."""
        if balancer is not None and balancer.provisioning_status == native.ACTIVE:
            self._pace.ended(balancer.id, asked.waited_s)
            return Gate(GateState.OPEN)
        if balancer is not None and identity.is_pending(balancer):
            is_going = balancer.provisioning_status == native.PENDING_DELETE
            wait_s = (
                GOING_POLL_S
                if is_going
                else self._pace.closed(balancer.id, asked.waited_s)
            )
            return Gate(GateState.CLOSED, wait_s, report.pending(balancer))
        self._pace.forget(asked.id)
        return Gate(GateState.LOST)

    def adoption(self, ref: Ref, id_: str) -> Adoption:
        """See `lib.cloud.load_balancers.Adopting`."""
        return adoption.read(self._api, ref, id_, self._api.now() + TIMEOUT_S)

    def owned(
        self, cluster_id: str, roles: Collection[Role] = ROLES
    ) -> Iterator[Owned | NotOwned]:
        """See the protocol."""
        deadline = self._api.now() + TIMEOUT_S
        return owned.read(self._api, cluster_id, roles, deadline)


def _made_id(body: bytes) -> str:
    """Read the id of what a write made; empty where it says none."""
    if not body:
        return ""
    try:
        objects = decoding.decode(body, dict[str, _Id])
    except msgspec.DecodeError:
        return ""  # several objects, or none: their IDs are not used
    return next((created.id for created in objects.values()), "")
