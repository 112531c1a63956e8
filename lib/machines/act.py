"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from lib.cloud import errors
from lib.cloud.machines import Results, Target
from lib.cloud.steps import CommonReason, NoticeType, ProblemReason, StepResult
from lib.kube import client, events
from lib.machines import model, writer
from lib.machines.kinds import Kinds, MachineObject, merged, nested
from lib.machines.model import MachineMemory, Related, Snapshot, Topic
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.writing import UnknownOutcome
from lib.reconcile.outcome import Requeue

LATE_S = 120.0
"""When to check for what a request of unknown outcome created later than expected."""
Desire = Callable[[MachineObject, Related], tuple[Snapshot, Target | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Dependencies:
    """What a MachineActor works with.

    desire: see `observe.MachineObserver`. reasons: the provider's own; a rejected write
    is shown by the one that has the name of the error's reason.
    """

    api: client.Api
    stores: model.Stores
    kinds: Kinds
    recorder: events.Recorder
    engine: Engine[Target, Results]
    desire: Desire
    reasons: Callable[[], Collection[ProblemReason]]


class MachineActor:
    """Writes machines of the cloud, and the objects of Cluster API that show them."""

    def __init__(self, dependencies: Dependencies, memory: MachineMemory) -> None:
        self._dependencies = dependencies
        self._memory = memory
        self._writer = writer.ObjectWriter(
            dependencies.api,
            dependencies.stores.machines,
            dependencies.kinds.machine,
            dependencies.kinds.field_manager,
            MachineObject,
        )

    def act(self, snapshot: Snapshot, action: model.Action) -> Snapshot:
        """Carry one action out; return the snapshot with our write in it.

        Raises:
            KubeError, CloudError: it was not carried out, or that is unknown.
            Postponed: nothing was done; the reconciliation has to end here.
        """
        match action:
            case plans.ApplyStep():
                return self._apply(snapshot, action)
            case model.RemoveMachineFinalizer(is_complete):
                if is_complete:
                    is_recorded = bool(snapshot.machine.provider_id)
                    self._dependencies.engine.require_known(
                        snapshot.uid, is_recorded=is_recorded
                    )
                snapshot = self._patch(snapshot, action)
                self._memory.forget(snapshot.uid)
                return snapshot
            case model.WriteMachineStatus():
                return self._write_status(snapshot, action)
            case (
                model.AddMachineFinalizer()
                | model.SetProviderId()
                | model.AnnotateMachine()
            ):
                return self._patch(snapshot, action)
        self._note(snapshot, action)
        return snapshot

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[Requeue]:
        """Return when else a machine is due again; see `runner.Flow`."""
        if isinstance(error, UnknownOutcome):
            return (*snapshot.requeues, Requeue(LATE_S, frozenset({Topic.DRIFT})))
        return snapshot.requeues

    def _note(self, snapshot: Snapshot, action: model.Action) -> None:
        """Carry out what writes neither the cloud nor the object."""
        match action:
            case model.RecordEvent():
                self._record(snapshot.machine, action)
            case plans.TellProblems():
                self._report(snapshot, action)
            case plans.Await():
                target = self._target(snapshot)
                if target is not None:
                    self._dependencies.engine.await_gate(
                        snapshot.uid, target, action, frozenset[str](snapshot.topics)
                    )
            case plans.StartBackoff():
                self._memory.back_off(snapshot.uid, is_desired=snapshot.is_desired)
            case model.SettleMachine(results):
                target = self._target(snapshot)
                if target is not None:
                    self._memory.settle(snapshot.uid, target, results)

    def _target(self, snapshot: Snapshot) -> Target | None:
        """Return what is desired, with nothing but our own writes on the object."""
        written, machine = snapshot.written, snapshot.machine
        if written is None:
            return snapshot.target
        about, spec = machine.metadata, machine.spec
        if written.provider_id != machine.provider_id:
            ids = _ids(written.provider_id, self._dependencies.kinds)
            spec = merged(spec, ids)
        annotations = written.metadata.annotations
        if spec is machine.spec and annotations == about.annotations:
            return snapshot.target
        about = msgspec.structs.replace(about, annotations=annotations)
        machine = msgspec.structs.replace(machine, metadata=about, spec=spec)
        _, target = self._dependencies.desire(machine, snapshot.related)
        return target

    def _patch(
        self,
        snapshot: Snapshot,
        action: (
            model.AddMachineFinalizer
            | model.RemoveMachineFinalizer
            | model.SetProviderId
            | model.AnnotateMachine
        ),
    ) -> Snapshot:
        kinds = self._dependencies.kinds
        body = patch(snapshot.latest, action, kinds)
        answer = self._writer.merge(snapshot.machine.metadata, body)
        count = snapshot.spec_writes + isinstance(action, model.SetProviderId)
        return dataclasses.replace(snapshot, written=answer, spec_writes=count)

    def _write_status(
        self, snapshot: Snapshot, action: model.WriteMachineStatus
    ) -> Snapshot:
        """Apply our fields; what others have left is removed first."""
        about = snapshot.machine.metadata
        generation = writer.observed_generation(
            about, snapshot.latest.metadata, snapshot.spec_writes
        )
        now = self._writer.apply_status(
            about, action.document, generation, action.removed
        )
        return dataclasses.replace(snapshot, written=now)

    def _apply(self, snapshot: Snapshot, action: plans.ApplyStep) -> Snapshot:
        try:
            result = self._dependencies.engine.apply(snapshot.uid, action)
        except UnknownOutcome as error:
            self._refused(snapshot, action, error.error)
            raise
        except errors.CloudError as error:
            self._refused(snapshot, action, error)
            raise
        if result.annotations:
            note = model.AnnotateMachine(result.annotations)
            snapshot = self._patch(snapshot, note)
        return self._go_on(snapshot, action, result) if action.is_last else snapshot

    def _refused(
        self, snapshot: Snapshot, action: plans.ApplyStep, error: errors.CloudError
    ) -> None:
        """Report why a write failed: once, if it will fail the same."""
        known = (own for own in self._dependencies.reasons() if own == error.reason)
        reason = next(known, CommonReason.REFUSED)
        summary = self._dependencies.engine.refusal(
            snapshot.uid, error, reason, action.step.path
        )
        if summary:
            event = model.RecordEvent(True, error.reason, summary)
            self._record(snapshot.machine, event)

    def _go_on(
        self, snapshot: Snapshot, action: plans.ApplyStep, result: StepResult
    ) -> Snapshot:
        """Keep what is left of the plan, and come back when its gate may be open."""
        topics = frozenset[str](
            snapshot.topics if snapshot.resumed is not None else {Topic.SYNC}
        )
        requeue = self._dependencies.engine.go_on(
            snapshot.uid, self._target(snapshot), action, result, topics
        )
        return dataclasses.replace(snapshot, requeues=(*snapshot.requeues, requeue))

    def _report(self, snapshot: Snapshot, now: plans.TellProblems) -> None:
        problems, notices = self._memory.report(snapshot.uid, now)
        for notice in notices:
            is_warning = notice.type is NoticeType.WARNING
            event = model.RecordEvent(is_warning, notice.reason, notice.message)
            self._record(snapshot.machine, event)
        for problem in problems:
            reason = problem.event or str(problem.reason)
            event = model.RecordEvent(True, reason, problem.message)
            self._record(snapshot.machine, event)

    def _record(self, machine: MachineObject, event: model.RecordEvent) -> None:
        about, kind = machine.metadata, self._dependencies.kinds.machine
        ref = events.ObjectRef(
            kind.kind, about.name, about.namespace, about.uid, kind.api_version
        )
        type_: events.Type = "Warning" if event.is_warning else "Normal"
        self._dependencies.recorder.emit(ref, type_, event.reason, event.message)


def patch(
    machine: MachineObject,
    action: (
        model.AddMachineFinalizer
        | model.RemoveMachineFinalizer
        | model.SetProviderId
        | model.AnnotateMachine
    ),
    kinds: Kinds,
) -> Mapping[str, object]:
    """Return the merge patch that carries an action out, for the object of that uid."""
    about = machine.metadata
    match action:
        case model.SetProviderId(provider_id):
            ids = _ids(provider_id, kinds)
            return {"metadata": {"uid": about.uid}, "spec": ids}
        case model.AnnotateMachine(annotations):
            return {"metadata": {"uid": about.uid, "annotations": dict(annotations)}}
        case model.AddMachineFinalizer():
            return writer.with_finalizer(about, kinds.finalizer)
        case model.RemoveMachineFinalizer():
            return writer.without_finalizer(about, kinds.finalizer)


def _ids(provider_id: str, kinds: Kinds) -> dict[str, object]:
    """Return the fields of a spec that record an ID; the provider's has no scheme."""
    fields: dict[str, object] = {"providerID": provider_id}
    if not kinds.id_path:
        return fields
    _, _, bare = provider_id.partition("://")
    return merged(fields, nested(kinds.id_path, bare))
