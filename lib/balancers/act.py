"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lib.balancers import decide, model
from lib.balancers.model import Memory, Operation, Service, Snapshot, Source, Topic
from lib.cloud import errors
from lib.cloud.load_balancers import Node, Results, Target
from lib.cloud.steps import NoticeType, StepResult
from lib.kube import client, events, resources, store
from lib.plans import model as plans
from lib.plans.engine import Engine, UnknownOutcome
from lib.process import decoding
from lib.reconcile.outcome import Requeue

WRITE_TIMEOUT_S = 10.0
LATE_S = 120.0
"""When to check for what a request of unknown outcome created later than expected."""

Annotations = tuple[tuple[str, str | None], ...]
Desire = Callable[[Service, tuple[Node, ...]], Target | None]
"""Takes a Service and the Nodes that may receive traffic; None: it can't be served."""
Ended = Callable[[Operation, float, bool], None]
"""Told of what was done for a Service, how many seconds it took, whether it worked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hands:
    """What an Actor works with.

    desire: what a Service asks of the cloud: pure. ended: see `Ended`.
    """

    api: client.Api
    services: store.Store[Service]
    recorders: Mapping[Source, events.Recorder]
    engine: Engine[Target, Results]
    desire: Desire
    ended: Ended | None = None


class ServiceActor:
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
            Postponed: nothing was done; the reconciliation has to end here.
        """
        try:
            return self._carry_out(seen, action)
        finally:
            self._let_go(seen.service)

    def ended(self, seen: Snapshot, error: Exception | None) -> None:
        """Count a reconciliation that failed for a reason of the cloud."""
        counted = errors.CloudError | UnknownOutcome | model.Unserved
        if isinstance(error, counted) and not isinstance(error, errors.Busy):
            self._end(seen, has_worked=False)

    def requeues(self, seen: Snapshot, error: Exception | None) -> Sequence[Requeue]:
        """Return when else a Service is due again; see `runner.Flow`."""
        if isinstance(error, UnknownOutcome):
            return (*seen.requeues, Requeue(LATE_S, frozenset({Topic.DRIFT})))
        return seen.requeues

    def _let_go(self, service: Service) -> None:
        """Keep nothing of a Service that has gone meanwhile: nobody asks for it again.

        A plan left behind would keep all others from its load balancer.
        """
        there = self._hands.services.get(service.key)
        if there is None or there.metadata.uid != service.metadata.uid:
            self._memory.forget(service.metadata.uid)

    def _carry_out(self, seen: Snapshot, action: model.Action) -> Snapshot:
        match action:
            case plans.ApplyStep():
                return self._apply(seen, action)
            case model.RemoveFinalizer():
                self._hands.engine.require_known(seen.service.metadata.uid)
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
            case plans.TellProblems():
                self._report(seen.service, action)
            case plans.Await():
                self._await(seen, action)
            case plans.Bar():
                uid, is_desired = seen.service.metadata.uid, seen.service.is_wanted
                self._memory.back_off(uid, is_desired=is_desired)
            case model.Settle(results):
                self._settle(seen, results)

    def _settle(self, seen: Snapshot, results: Results) -> None:
        target = self._target(seen)
        if target is None:
            return
        if seen.is_in_progress:
            self._end(seen, has_worked=True)
        self._memory.settle(seen.service.metadata.uid, target, results)

    def _target(self, seen: Snapshot) -> Target | None:
        """Return what the Service asks for, with our own writes on it."""
        if seen.left is None:
            return seen.target
        return self._hands.desire(seen.left, seen.nodes)

    def _end(self, seen: Snapshot, *, has_worked: bool) -> None:
        if self._hands.ended is not None:
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

    def _apply(self, seen: Snapshot, action: plans.ApplyStep) -> Snapshot:
        uid = seen.service.metadata.uid
        try:
            result = self._hands.engine.apply(uid, action)
        except UnknownOutcome as error:
            self._refused(seen, error.error)
            raise
        except errors.CloudError as error:
            self._refused(seen, error)
            raise
        if result.annotations:
            seen = self._patch(seen, model.SetAnnotations(result.annotations))
        return self._go_on(seen, action, result) if action.is_last else seen

    def _refused(self, seen: Snapshot, error: errors.CloudError) -> None:
        """Report to the owner why a write failed: once, if it will fail the same."""
        summary = self._hands.engine.refusal(seen.service.metadata.uid, error)
        if summary:
            self._record(seen.service, decide.failed(seen, summary))

    def _go_on(
        self, seen: Snapshot, action: plans.ApplyStep, result: StepResult
    ) -> Snapshot:
        """Keep what is left of the plan, and come back when its gate may be open."""
        # What is seen next is what we have changed ourselves: no look for drift. One
        # that came due while a plan went on is made at its end.
        keeps = seen.resumed is not None or seen.topics == {Topic.NODES}
        topics = frozenset(seen.topics if keeps else {Topic.SYNC})
        requeue = self._hands.engine.go_on(
            seen.service.metadata.uid,
            self._target(seen),
            action,
            result,
            topics,
        )
        return dataclasses.replace(seen, requeues=(*seen.requeues, requeue))

    def _await(self, seen: Snapshot, action: plans.Await) -> None:
        target = self._target(seen)
        if target is not None:
            topics = frozenset[str](seen.topics)
            uid = seen.service.metadata.uid
            self._hands.engine.await_gate(uid, target, action, topics)

    def _report(self, service: Service, now: plans.TellProblems) -> None:
        problems, notices = self._memory.report(service.metadata.uid, now)
        for notice in notices:
            is_warning = notice.type is NoticeType.WARNING
            event = model.RecordEvent(
                Source.PROVIDER, is_warning, notice.reason, notice.message
            )
            self._record(service, event)
        for problem in problems:
            reason = problem.event or problem.reason
            event = model.RecordEvent(Source.PROVIDER, True, reason, problem.message)
            if problem.is_fatal:
                event = decide.failed_to("ensure", problem.message)
            self._record(service, event)

    def _record(self, service: Service, event: model.RecordEvent) -> None:
        about = service.metadata
        ref = events.ObjectRef("Service", about.name, about.namespace, about.uid, "v1")
        kind: events.Type = "Warning" if event.is_warning else "Normal"
        recorder = self._hands.recorders[event.source]
        recorder.emit(ref, kind, event.reason, event.message)


def patch(
    service: Service, action: model.Action
) -> tuple[Mapping[str, object], str | None]:
    """Return the merge patch that carries an action out, and its subresource.

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
    """Return a Service as it is after one of our writes: what parsing reads of it."""
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
