"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
from collections.abc import Callable, Mapping

import msgspec

from lib.balancers import decide, model
from lib.balancers.memory import Memory
from lib.balancers.model import Open, Operation, Service, Snapshot, Source, Topic
from lib.cloud import errors
from lib.cloud.load_balancers import LoadBalancers, Results, Target
from lib.cloud.steps import CommonReason, NoticeType, Problem, StepResult
from lib.kube import client, events, resources, store
from lib.process import decoding

WRITE_TIMEOUT_S = 10.0
TAKEN_S = 1.0
"""When to look again at a load balancer that another Service's plan is changing."""
LOST_S = 0.5
"""When to look first for what was made by a request whose answer was lost."""
LOOK_S = 4.0
"""When to look again for it, until it can't appear any more."""
LATE_S = 120.0
"""When to look for what was made later still than anybody would think."""
LONG_S = 120.0
"""A write that is refused as too early for so long is reported."""
LASTING = (
    errors.InvalidRequest,
    errors.AlreadyExists,
    errors.Unsupported,
    errors.Forbidden,
    errors.QuotaExceeded,
    errors.LimitReached,
)
"""What a write fails with as long as nobody changes the Service or the cloud."""

Annotations = tuple[tuple[str, str | None], ...]
Retarget = Callable[[Service, Snapshot], Target | None]
Ended = Callable[[Operation, float, bool], None]
"""Told of what was done for a Service, how many seconds it took, whether it worked."""


def nobody(operation: Operation, seconds: float, has_worked: bool) -> None:
    """Be told, and do nothing of it."""
    del operation, seconds, has_worked


def at_once() -> float:
    """Let what can't be made twice be made now."""
    return 0.0


class Later(Exception):
    """Now is no time for a step; the message says why. retry_after_s: when is."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Doubtful(Exception):
    """Nobody knows whether a step was carried out that must not be made twice."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hands:
    """What an Actor works with.

    again: makes a key due for topics, in seconds. retarget: what a Service wants, as it
    is after our own writes. clock: monotonic seconds. create_in_s: seconds until what
    can't be made twice may be made. ended: see `Ended`.
    """

    api: client.Api
    services: store.Store[Service]
    load_balancers: LoadBalancers
    recorders: Mapping[Source, events.Recorder]
    again: model.Again
    retarget: Retarget
    clock: Callable[[], float]
    create_in_s: Callable[[], float] = at_once
    ended: Ended = nobody


class Actor:
    """Writes load balancers, and what leads to them on Services.

    Annotations and addresses are written to the Service of that uid. The finalizers,
    which are one list, carry the resourceVersion they are made of.
    """

    def __init__(self, hands: Hands, memory: Memory) -> None:
        self._hands = hands
        self._memory = memory

    def act(self, seen: Snapshot, action: model.Action) -> Snapshot:
        """Carry one action out; return the snapshot with the own write in it.

        Raises:
            KubeError, CloudError: it was not carried out, or that is unknown.
            Later: nothing was done; the reconciliation has to end here.
        """
        try:
            return self._carry_out(seen, action)
        finally:
            self._let_go(seen.service)

    def ended(self, seen: Snapshot, error: Exception | None) -> None:
        """Count a reconciliation that failed for a reason of the cloud."""
        counted = errors.CloudError | Doubtful | model.Unserved
        if isinstance(error, counted) and not isinstance(error, errors.Busy):
            self._end(seen, has_worked=False)

    def _let_go(self, service: Service) -> None:
        """Keep nothing of a Service that has gone meanwhile: nobody asks for it again.

        A plan left behind would keep all others from its load balancer.
        """
        there = self._hands.services.get(service.key)
        if there is None or there.metadata.uid != service.metadata.uid:
            self._memory.forget(service.metadata.uid)

    def _carry_out(self, seen: Snapshot, action: model.Action) -> Snapshot:
        match action:
            case model.ApplyStep():
                return self._apply(seen, action)
            case model.RemoveFinalizer():
                uid = seen.service.metadata.uid
                self._be_sure(uid, self._memory.doubt_s(uid))
                seen = self._patch(seen, action)
                self._end(seen, has_worked=True)
                return seen
            case model.AddFinalizer() | model.SetAnnotations() | model.SetIngress():
                return self._patch(seen, action)
        self._note(seen, action)
        return seen

    def _note(self, seen: Snapshot, action: model.Action) -> None:
        """Carry out what writes neither the cloud nor the Service."""
        match action:
            case model.RecordEvent():
                self._record(seen.service, action)
            case model.TellProblems():
                self._tell(seen.service, action)
            case model.Await(lb_id, after_s):
                self._await(seen, lb_id, after_s)
            case model.Bar():
                uid, is_wanted = seen.service.metadata.uid, seen.service.is_wanted
                self._memory.bar(uid, is_wanted=is_wanted)
            case model.Settle(results):
                self._settle(seen, results)

    def _be_sure(self, uid: str, doubt_s: float) -> None:
        """End the pass if what was asked for before may still appear for so long."""
        early_s = max(self._hands.create_in_s(), doubt_s)
        if early_s > 0:
            self._memory.drop(uid)
            text = "what may have been made before is waited for"
            raise Later(text, min(early_s, LOOK_S))

    def _settle(self, seen: Snapshot, results: Results) -> None:
        target = self._hands.retarget(seen.as_left, seen)
        if target is None:
            return
        if seen.is_under_way:
            self._end(seen, has_worked=True)
        self._memory.settle(seen.service.metadata.uid, target, results)

    def _end(self, seen: Snapshot, *, has_worked: bool) -> None:
        took_s = self._memory.took_s(seen.service.metadata.uid)
        self._hands.ended(seen.operation, took_s, has_worked)

    def _patch(self, seen: Snapshot, action: model.Action) -> Snapshot:
        latest = seen.latest
        body, subresource = patch(latest, action)
        answer = self._hands.api.patch(
            resources.SERVICES,
            latest.metadata.name,
            msgspec.json.encode(body),
            latest.metadata.namespace,
            subresource=subresource,
            content_type=client.MERGE_PATCH,
            timeout_s=WRITE_TIMEOUT_S,
        )
        now = decoding.decode(answer, Service)
        self._hands.services.note_write(now.key, now.metadata.resource_version)
        left = written(seen.as_left, action)
        return dataclasses.replace(seen, written=now, left=left)

    def _apply(self, seen: Snapshot, action: model.ApplyStep) -> Snapshot:
        uid = seen.service.metadata.uid
        if action.step.is_gated and self._memory.is_taken(uid, action.load_balancer_id):
            self._memory.drop(uid)
            text = "another service's plan changes the same load balancer"
            raise Later(text, TAKEN_S)
        if not action.step.is_repeatable:
            self._be_sure(uid, self._memory.create_in_s(uid, action.step.path))
        self._memory.begin(uid)
        try:
            result = self._hands.load_balancers.apply(action.step)
        except errors.CloudError as error:
            self._memory.drop(uid)
            self._refused(seen, error)
            if action.step.is_repeatable or not _may_be_done(error):
                raise
            self._memory.doubt(uid, action.step.path)
            self._hands.again(seen.service.key, frozenset({Topic.DRIFT}), LATE_S)
            raise Doubtful(str(error)) from error
        self._memory.accept(uid)
        if result.annotations:
            seen = self._patch(seen, model.SetAnnotations(result.annotations))
        if action.is_last:
            self._wait(seen, action, result)
        return seen

    def _refused(self, seen: Snapshot, error: errors.CloudError) -> None:
        """Tell the owner why a write failed: once, if it will fail the same again."""
        uid = seen.service.metadata.uid
        summary, lasts = error.summary, isinstance(error, LASTING)
        if isinstance(error, errors.Busy):
            if self._memory.busy_s(uid) < LONG_S:
                return
            summary, lasts = f"{summary}, for minutes", True
        problem = Problem(CommonReason.REFUSED, summary)
        if not lasts or self._memory.refuse(uid, problem):
            self._record(seen.service, decide.failed(seen, summary))

    def _wait(
        self, seen: Snapshot, action: model.ApplyStep, result: StepResult
    ) -> None:
        """Keep what is left of the plan, and come back when its gate may be open."""
        lb_id = action.load_balancer_id or result.id
        wait_s = result.opens_after_s
        target = self._hands.retarget(seen.as_left, seen)
        # What is seen next is what we have changed ourselves: no look for drift. One
        # that came due while a plan went on is made at its end.
        keeps = seen.open is not None or seen.topics == {Topic.NODES}
        topics = seen.topics if keeps else frozenset({Topic.SYNC})
        if lb_id and target is not None and (action.rest or wait_s > 0):
            now = self._hands.clock()
            plan = Open(target, action.rest, lb_id, now, now + wait_s, topics)
            self._memory.keep(seen.service.metadata.uid, plan)
        else:
            self._memory.drop(seen.service.metadata.uid)
        self._hands.again(seen.service.key, topics, wait_s)

    def _await(self, seen: Snapshot, lb_id: str, after_s: float) -> None:
        """Keep an empty plan: its gate costs less than to look at everything."""
        target = self._hands.retarget(seen.as_left, seen)
        if target is not None:
            now = self._hands.clock()
            due_s = now + after_s
            plan = Open(target, (), lb_id, now, due_s, seen.topics, has_written=False)
            self._memory.keep(seen.service.metadata.uid, plan)

    def _tell(self, service: Service, told: model.TellProblems) -> None:
        uid = service.metadata.uid
        for notice in self._memory.tell_notices(uid, told.notices):
            is_warning = notice.type is NoticeType.WARNING
            event = model.RecordEvent(
                Source.PROVIDER, is_warning, notice.reason, notice.message
            )
            self._record(service, event)
        for one in self._memory.tell(uid, told.problems):
            reason = one.event or one.reason
            event = model.RecordEvent(Source.PROVIDER, True, reason, one.message)
            if one.is_fatal:
                event = decide.failed_to("ensure", one.message)
            self._record(service, event)

    def _record(self, service: Service, event: model.RecordEvent) -> None:
        about = service.metadata
        ref = events.ObjectRef("Service", about.name, about.namespace, about.uid, "v1")
        kind: events.Type = "Warning" if event.is_warning else "Normal"
        recorder = self._hands.recorders[event.source]
        recorder.emit(ref, kind, event.reason, event.message)


def _may_be_done(error: errors.CloudError) -> bool:
    """Report whether a request may have been carried out, or may be soon.

    A proxy that gives up waiting may name a time for a retry as well.
    """
    return isinstance(error, errors.Unavailable) and not error.was_rejected


def patch(
    service: Service, action: model.Action
) -> tuple[Mapping[str, object], str | None]:
    """Give the merge patch that carries an action out, and its subresource.

    Finalizers go by the status, for which alone the reference's rights suffice.

    Source: k8s.io/cloud-provider service/helpers, PatchService.
    """
    about = service.metadata
    version = {"uid": about.uid, "resourceVersion": about.resource_version}
    match action:
        case model.AddFinalizer():
            finalizers = [*about.finalizers, model.FINALIZER]
            return {"metadata": {**version, "finalizers": finalizers}}, "status"
        case model.RemoveFinalizer():
            left = [one for one in about.finalizers if one != model.FINALIZER]
            meta = {**version, "finalizers": left}
            return {"metadata": meta, "status": {"loadBalancer": None}}, "status"
        case model.SetAnnotations(annotations):
            wanted = {"uid": about.uid, "annotations": dict(annotations)}
            return {"metadata": wanted}, None
        case model.SetIngress(ingress):
            shown = [_shown(one.ip, one.hostname, one.ip_mode) for one in ingress]
            status = {"loadBalancer": {"ingress": shown or None}}
            return {"metadata": {"uid": about.uid}, "status": status}, "status"
    raise TypeError(f"no patch for {action!r}")


def written(service: Service, action: model.Action) -> Service:
    """Give a Service as it is after one of our writes: what parsing reads of it."""
    match action:
        case model.SetAnnotations(annotations):
            both = {**service.metadata.annotations, **dict(annotations)}
            kept = {key: value for key, value in both.items() if value is not None}
            about = msgspec.structs.replace(service.metadata, annotations=kept)
            return msgspec.structs.replace(service, metadata=about)
        case model.SetIngress(ingress):
            rows = tuple(
                model.ServiceIngress(one.ip, one.hostname, one.ip_mode)
                for one in ingress
            )
            status = model.ServiceStatus(model.ServiceLoadBalancer(rows))
            return msgspec.structs.replace(service, status=status)
    return service


def _shown(ip: str, hostname: str, ip_mode: str | None) -> Mapping[str, str]:
    found = {"ip": ip, "hostname": hostname, "ipMode": ip_mode or ""}
    return {key: value for key, value in found.items() if value}
