"""The load balancers of one cluster in its parent: entry point of this package."""

import datetime
import math
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import ParentService
from lib.cloud.dvp.load_balancers import (
    desired_service,
    differences_of_service,
    lb_names,
    observed_service,
    parent_changes,
    parent_reader,
    service_plan,
)
from lib.cloud.dvp.load_balancers.service_plan import LabelWrite, ServiceWrite
from lib.cloud.dvp.parent import TIMEOUT_S, Parent
from lib.cloud.load_balancers import (
    ROLES,
    Cluster,
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
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult, Verb
from lib.cloud.write_places import Places

GONE_POLL_S = 5.0
"""When to ask again for an object that is being deleted; that costs no call."""
UNKEPT_S = 60.0
"""When to write again what the parent accepts, but does not keep, or does not find."""


class DvpLoadBalancers:
    """Implements `LoadBalancers`, and `lib.cloud.protocol.Changes` of them."""

    uses_endpoints = True

    def __init__(
        self,
        parent: Parent,
        forwarding: desired_service.Forwarding = desired_service.ALL,
    ) -> None:
        self._parent = parent
        self._forwarding = forwarding
        self._changes = parent_changes.ParentChanges(parent)
        self._reader = parent_reader.ParentReader(parent, self._changes.follow)

    @property
    def places(self) -> Places | None:
        """See the protocol."""
        return None

    @property
    def reasons(self) -> tuple[desired_service.DvpReason, ...]:
        """See the protocol."""
        return tuple(desired_service.DvpReason)

    def refer(self, facts: Facts) -> Ref:
        """See the protocol."""
        return Ref(facts.cluster, facts.namespace, facts.name, facts.uid)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        return desired_service.parse(facts, self._forwarding)

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """See the protocol; the watched stores always show everything."""
        del depth
        for target in targets:
            desired = desired_service.of(target.spec)
            self._changes.expect(lb_names.object_name(target.ref.uid), desired)
        return self._reader.observe(targets)

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        return service_plan.plan(target, observed, now)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        write = service_plan.of(step)
        timeout_s = min(TIMEOUT_S, within_s)
        unkept, is_gone = "", False
        try:
            unkept = self._send(write, timeout_s)
        except errors.AlreadyExists as error:
            text = "it exists, and is read again"
            raise errors.Busy(
                text,
                operation=error.operation,
                resource=error.resource,
                was_rejected=True,
            ) from error
        except errors.NotFound:
            # A VM that was deleted needs no label, and a Service no deletion.
            if step.verb is not Verb.DELETE and not isinstance(write, LabelWrite):
                raise
            is_gone = True  # the watch shows it still
            self._note_label(write, is_final=True)
        except errors.CloudError as error:
            is_refused = isinstance(error, errors.Forbidden | errors.InvalidRequest)
            self._note_label(write, is_final=is_refused)
            raise
        balancer = write.name
        if isinstance(write, LabelWrite):
            balancer = lb_names.of_label(write.key)
        self._reader.note_unkept(balancer, step.path[0], unkept)
        return StepResult(
            write.name, opens_after_s=UNKEPT_S if unkept or is_gone else 0.0
        )

    def _note_label(self, write: ServiceWrite | LabelWrite, *, is_final: bool) -> None:
        """Note that a label was not removed, if the write was to do that."""
        if isinstance(write, LabelWrite) and write.value is None:
            self._reader.note_label_kept(write.name, write.key, is_final=is_final)

    def _send(self, write: ServiceWrite | LabelWrite, timeout_s: float) -> str:
        """Send one write; return what the answer to a patch lacks of it.

        Admission of the parent may change it, or its kind may not have the field.
        """
        parent, name = self._parent, write.name
        if isinstance(write, LabelWrite):
            self._reader.note_labelled(name)
            kind = kinds.VIRTUAL_MACHINES
            vm = parent.patch(kind, name, write.document, timeout_s)
            is_kept = vm.metadata.labels.get(write.key) == write.value
            return "" if is_kept else f"metadata.labels.{write.key}"
        if write.document is None:
            parent.delete(write.kind, name, write.uid, timeout_s)
        elif write.desired is None:
            parent.create(write.kind, write.document, timeout_s)
        else:
            service = parent.patch(write.kind, name, write.document, timeout_s)
            left = differences_of_service.of(
                write.desired, write.kind, service, parent.cluster_uuid
            )
            return ", ".join(f"{each.section}.{each.key}" for each in left)
        return ""

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol; no request is sent."""
        if not asked:
            return {}
        try:
            deadline = self._reader.deadline()
            return {plan.id: self._gate(plan.id, deadline) for plan in asked}
        except errors.CloudError as error:
            return {plan.id: Unknown(error) for plan in asked}

    def _gate(self, name: str, deadline: float) -> Gate:
        """Open: the object exists. Steps never wait for its address."""
        for service in self._reader.named(name, deadline):
            if service.metadata.deletion_timestamp is not None:
                return Gate(GateState.CLOSED, GONE_POLL_S)
            return Gate(GateState.OPEN)
        return Gate(GateState.LOST)

    def owned(
        self, cluster_id: str, roles: Collection[Role] = ROLES
    ) -> Iterator[Owned | NotOwned]:
        """See the protocol."""
        if Role.LOAD_BALANCER not in roles:
            return
        for kind, service in self._reader.balancers():
            labels = service.metadata.labels
            if ownership.is_owned(labels, cluster_id):
                yield from _owned(kind, service, cluster_id)
            elif ownership.CLUSTER not in labels and _resembles(service):
                yield _not_owned(kind, service)

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See `lib.cloud.protocol.Changes`: the UID of the Service concerned."""
        self._changes.subscribe(fn)


def _owned(kind: str, service: ParentService, cluster_id: str) -> Iterator[Owned]:
    """Return a load balancer, unless it is of another purpose in this cluster."""
    about = service.metadata
    uid = about.labels.get(ownership.OWNER_UID, "")
    if not uid or about.name != lb_names.object_name(uid):
        return
    key = about.annotations.get(lb_names.SERVICE_ANNOTATION, "")
    namespace, _, name = key.partition("/")
    shown = service.status.load_balancer.ingress or ()
    handles = {about.name, *(row.ip for row in shown), *(row.hostname for row in shown)}
    yield Owned(
        kind,
        about.name,
        about.name,
        uid,
        created=about.creation_timestamp,
        service=key,
        ref=Ref(Cluster(cluster_id, ""), namespace, name, uid),
        handles=frozenset(handles - {""}),
    )


def _resembles(service: ParentService) -> bool:
    """Report whether the reference may have created it: it selects VMs by its name."""
    key = lb_names.label_key(service.metadata.name)
    selector = dict(service.spec.selector or {})
    is_balancer = service.spec.type == observed_service.TYPE
    return is_balancer and selector == {key: lb_names.LABEL_VALUE}


def _not_owned(kind: str, service: ParentService) -> NotOwned:
    about = service.metadata
    return NotOwned(
        kind, about.name, about.name, Role.LOAD_BALANCER, about.creation_timestamp
    )
