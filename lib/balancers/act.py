"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lib.balancers import contests, decide, model
from lib.balancers.model import Memory, Operation, Service, Snapshot, Source, Topic
from lib.cloud import errors
from lib.cloud.load_balancers import Node, Results, Target
from lib.cloud.steps import CommonReason, NoticeType, Problem, StepResult
from lib.kube import client, events, resources, store
from lib.kube import errors as kube_errors
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.writing import UnknownOutcome
from lib.process import decoding
from lib.reconcile.outcome import Requeue

WRITE_TIMEOUT_S = 10.0
LATE_S = 120.0
"""When to check for what a request of unknown outcome created later than expected."""

Annotations = tuple[tuple[str, str | None], ...]
Desire = Callable[[Service, tuple[Node, ...], frozenset[str] | None], Target | None]
"""Takes a Service, the Nodes that may receive traffic, and the names of those with
ready endpoints; None: it can't be served."""
Ended = Callable[[Operation, float, bool], None]
"""Called with the operation on a Service, its duration in seconds and its success."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dependencies:
    """What a ServiceActor works with.

    desire: what a Service asks of the cloud: pure. contests: receives the writes of
    Services. ended: see `Ended`.
    """

    api: client.Api
    services: store.Store[Service]
    recorders: Mapping[Source, events.Recorder]
    engine: Engine[Target, Results]
    desire: Desire
    contests: contests.Contests
    ended: Ended | None = None


class ServiceActor:
    """Writes load balancers, and the Services' references to them.

    Annotations and addresses are written to the Service of that uid. The finalizers,
    which are one list, carry the resourceVersion they are made of.
    """

    def __init__(self, dependencies: Dependencies, memory: Memory) -> None:
        self._dependencies = dependencies
        self._memory = memory

    def act(self, snapshot: Snapshot, action: model.Action) -> Snapshot:
        """Carry one action out; return the snapshot with our write in it.

        Raises:
            KubeError, CloudError: it was not carried out, or that is unknown.
            Postponed: nothing was done; the reconciliation has to end here.
        """
        try:
            return self._carry_out(snapshot, action)
        finally:
            self._forget_deleted(snapshot.service)

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Count a reconciliation that failed for a reason of the cloud.

        Releases the place of a Service for which nothing is in progress any more.
        """
        counted = errors.CloudError | UnknownOutcome | model.TerminalError
        if isinstance(error, counted) and not isinstance(error, errors.Busy):
            self._end(snapshot, has_worked=False)
        # What a request of unknown outcome has begun still keeps the cloud busy.
        if not snapshot.held and not isinstance(error, UnknownOutcome):
            self._dependencies.engine.release(snapshot.service.metadata.uid)

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[Requeue]:
        """Return when else a Service is due again; see `runner.Flow`."""
        if isinstance(error, UnknownOutcome):
            return (*snapshot.requeues, Requeue(LATE_S, frozenset({Topic.DRIFT})))
        again = (
            Requeue(contested.left_s, frozenset({Topic.SYNC}))
            for contested in snapshot.contested
        )
        return (*snapshot.requeues, *again)

    def _forget_deleted(self, service: Service) -> None:
        """Drop what is kept of a Service that was deleted in the meantime.

        A plan that remains would block the load balancer for all other Services.
        """
        current = self._dependencies.services.get(service.key)
        if current is None or current.metadata.uid != service.metadata.uid:
            self._dependencies.engine.forget(service.metadata.uid)

    def _carry_out(self, snapshot: Snapshot, action: model.Action) -> Snapshot:
        match action:
            case plans.ApplyStep():
                return self._apply(snapshot, action)
            case model.RemoveFinalizer():
                service = snapshot.service
                self._dependencies.engine.require_known(
                    service.metadata.uid,
                    is_recorded=bool(service.status.load_balancer.ingress),
                )
                snapshot = self._patch(snapshot, action)
                self._end(snapshot, has_worked=True)
                return snapshot
            case model.AddFinalizer() | model.SetAnnotations() | model.SetIngress():
                return self._patch(snapshot, action)
        self._note(snapshot, action)
        return snapshot

    def _note(self, snapshot: Snapshot, action: model.Action) -> None:
        """Carry out what writes neither the cloud nor the Service."""
        match action:
            case model.RecordEvent():
                self._record(snapshot.service, action)
            case plans.TellProblems():
                self._report(snapshot.service, action)
            case plans.Await():
                self._await(snapshot, action)
            case plans.StartBackoff():
                uid, is_desired = (
                    snapshot.service.metadata.uid,
                    snapshot.service.is_desired,
                )
                self._memory.back_off(uid, is_desired=is_desired)
            case model.Settle(results):
                self._settle(snapshot, results)

    def _settle(self, snapshot: Snapshot, results: Results) -> None:
        target = self._target(snapshot)
        if target is None:
            return
        if snapshot.is_in_progress:
            self._end(snapshot, has_worked=True)
        self._memory.settle(snapshot.service.metadata.uid, target, results)

    def _target(self, snapshot: Snapshot) -> Target | None:
        """Return what the Service asks for, with our own writes on it."""
        if snapshot.left is None:
            return snapshot.target
        return self._dependencies.desire(
            snapshot.left, snapshot.nodes, snapshot.serving
        )

    def _end(self, snapshot: Snapshot, *, has_worked: bool) -> None:
        if self._dependencies.ended is not None:
            took_s = self._memory.took_s(snapshot.service.metadata.uid)
            self._dependencies.ended(snapshot.operation, took_s, has_worked)

    def _patch(self, snapshot: Snapshot, action: model.Write) -> Snapshot:
        latest = snapshot.latest
        try:
            answer = self._send(latest, action)
        except kube_errors.KubeError as error:
            self._denied(snapshot, action, error)
            raise
        self._memory.allow(latest.metadata.uid)
        self._dependencies.contests.note(latest.metadata.uid, action)
        now = decoding.decode(answer, Service)
        self._dependencies.services.note_write(now.key, now.metadata.resource_version)
        left = written(snapshot.as_left, action)
        return dataclasses.replace(snapshot, written=now, left=left)

    def _send(self, service: Service, action: model.Action) -> bytes:
        body, subresource = patch(service, action)
        return self._dependencies.api.patch(
            resources.SERVICES,
            service.metadata.name,
            msgspec.json.encode(body),
            service.metadata.namespace,
            subresource=subresource,
            content_type=client.MERGE_PATCH,
            timeout_s=WRITE_TIMEOUT_S,
        )

    def _denied(
        self, snapshot: Snapshot, action: model.Action, error: kube_errors.KubeError
    ) -> None:
        """Report to the owner that the API server denies a write of the Service."""
        if not kube_errors.is_denied(error):
            return
        why = f"failed to {_INTENTS[type(action)]}: {error.message}"
        problem = Problem(CommonReason.DENIED, why)
        if self._memory.deny(snapshot.service.metadata.uid, problem):
            self._record(snapshot.service, decide.failed(snapshot, why))

    def _apply(self, snapshot: Snapshot, action: plans.ApplyStep) -> Snapshot:
        uid = snapshot.service.metadata.uid
        try:
            result = self._dependencies.engine.apply(
                uid, action, self._target(snapshot), self._topics(snapshot)
            )
        except UnknownOutcome as error:
            self._refused(snapshot, action, error.error)
            raise
        except errors.CloudError as error:
            self._refused(snapshot, action, error)
            raise
        if result.annotations:
            snapshot = self._patch(snapshot, model.SetAnnotations(result.annotations))
        return self._go_on(snapshot, action, result) if action.is_last else snapshot

    def _refused(
        self, snapshot: Snapshot, action: plans.ApplyStep, error: errors.CloudError
    ) -> None:
        """Report to the owner why a write failed: once, if it will fail the same."""
        summary = self._dependencies.engine.refusal(
            snapshot.service.metadata.uid, error, path=action.step.path
        )
        if summary:
            self._record(snapshot.service, decide.failed(snapshot, summary))

    def _go_on(
        self, snapshot: Snapshot, action: plans.ApplyStep, result: StepResult
    ) -> Snapshot:
        """Keep what is left of the plan, and come back when its gate may be open."""
        requeue = self._dependencies.engine.go_on(
            snapshot.service.metadata.uid,
            self._target(snapshot),
            action,
            result,
            self._topics(snapshot),
        )
        return dataclasses.replace(snapshot, requeues=(*snapshot.requeues, requeue))

    def _topics(self, snapshot: Snapshot) -> frozenset[str]:
        """Return the topics for which a plan continues.

        The next reads show our own changes: drift detection is not needed. If it
        became due while a plan was open, it follows at the end of the plan.
        """
        keeps = snapshot.resumed is not None or snapshot.topics == {Topic.NODES}
        return frozenset(snapshot.topics if keeps else {Topic.SYNC})

    def _await(self, snapshot: Snapshot, action: plans.Await) -> None:
        target = self._target(snapshot)
        if target is not None:
            topics = frozenset[str](snapshot.topics)
            uid = snapshot.service.metadata.uid
            self._dependencies.engine.await_gate(uid, target, action, topics)

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
        recorder = self._dependencies.recorders[event.source]
        recorder.emit(ref, kind, event.reason, event.message)


_INTENTS: Mapping[type[model.Action], str] = {
    model.AddFinalizer: "add load balancer cleanup finalizer",
    model.RemoveFinalizer: "remove load balancer cleanup finalizer",
    model.SetAnnotations: "write the annotations of the load balancer",
    model.SetIngress: "update load balancer status",
}
"""Source: k8s.io/cloud-provider service controller, as far as it has them."""


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
            left = [
                finalizer
                for finalizer in about.finalizers
                if finalizer != model.FINALIZER
            ]
            meta = {**version, "finalizers": left}
            if service.is_of_other_class:  # the status is that of its controller
                return {"metadata": meta}, "status"
            return {"metadata": meta, "status": {"loadBalancer": None}}, "status"
        case model.SetAnnotations(annotations):
            metadata = {"uid": about.uid, "annotations": dict(annotations)}
            return {"metadata": metadata}, None
        case model.SetIngress(ingress):
            shown = [
                _shown(address.ip, address.hostname, address.ip_mode)
                for address in ingress
            ]
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
                model.ServiceIngress(address.ip, address.hostname, address.ip_mode)
                for address in ingress
            )
            status = model.ServiceStatus(model.ServiceLoadBalancer(rows))
            return msgspec.structs.replace(service, status=status)
    return service


def _shown(ip: str, hostname: str, ip_mode: str | None) -> Mapping[str, str]:
    fields = {"ip": ip, "hostname": hostname, "ipMode": ip_mode or ""}
    return {key: value for key, value in fields.items() if value}
