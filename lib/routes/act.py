"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
import datetime
from collections.abc import Callable, Iterable

import msgspec

from lib.cloud import errors, route_records
from lib.cloud.routes import Target
from lib.cloud.steps import CommonReason, Problem
from lib.kube import client, events, resources, store
from lib.kube import errors as kube_errors
from lib.kube.nodes import Node
from lib.plans.engine import Engine
from lib.plans.model import ApplyStep, TellProblems
from lib.process import decoding
from lib.reconcile import failure as failures
from lib.routes import decide, model
from lib.routes.board import Board
from lib.routes.model import ENTRY, NODE, TABLE, Memory, Stored, Topic
from lib.routes.records import Records

WRITE_TIMEOUT_S = 10.0

Due = Callable[[Iterable[str], Topic, float], None]
"""Makes keys due for a topic after some seconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dependencies:
    """What an Actor works with.

    table_ref: what Events about the table are recorded about. now: UTC. on_disabled:
    called when the cloud turns out to have no route tables.
    """

    api: client.Api
    nodes: store.Store[Node]
    records: Records
    recorder: events.Recorder
    engine: Engine[Target, None]
    table_ref: events.ObjectRef
    on_due: Due
    now: Callable[[], datetime.datetime]
    on_disabled: Callable[[str], None]


class Actor:
    """Writes the record, routes, address pairs and the Nodes' condition."""

    def __init__(self, tools: Dependencies, memory: Memory, board: Board) -> None:
        self._tools = tools
        self._memory = memory
        self._board = board
        self._refused: set[str] = set()

    def act(self, snapshot: model.Snapshot, action: model.Action) -> model.Snapshot:
        """Carry one action out.

        Raises:
            KubeError, CloudError: it was not carried out, or that is unknown.
            Postponed: nothing was done; the reconciliation has to end here.
        """
        match snapshot, action:
            case model.TableSnapshot(stored=stored), model.WriteRecord(changes, part):
                now = self._write_record(stored, part, changes)
                return dataclasses.replace(snapshot, stored=now)
            case model.EntrySnapshot(key), ApplyStep():
                self._write_entries(key, action)
            case _, ApplyStep():
                self._write_table(action)
            case model.TableSnapshot(), model.Publish():
                self._publish(action)
            case model.NodeSnapshot(node), model.SetCondition():
                self._set_condition(node, action)
            case _:
                self._note(action)
        return snapshot

    def _note(self, action: model.Action) -> None:
        """Carry out what writes neither the cloud nor an object."""
        match action:
            case model.ReportProblems():
                self._report(action)
            case model.RecordEvent(reason, message):
                self._tools.recorder.emit(
                    self._tools.table_ref, "Warning", reason, message
                )
            case model.Disable(why):
                self._tools.on_disabled(why)

    # ------------------------------------------------------------ the cloud

    def _write_table(self, action: ApplyStep) -> None:
        self._require_due()
        try:
            self._tools.engine.apply(TABLE, action)
        except errors.CloudError as error:
            wait_s = error.retry_after_s
            self._board.pause(wait_s or 0.0)
            if isinstance(error, errors.Busy) and wait_s is not None:
                raise failures.Postponed(error.summary, wait_s) from error
            if summary := self._tools.engine.refusal(
                TABLE, error, path=action.step.path
            ):
                self._tools.recorder.emit(
                    self._tools.table_ref, "Warning", model.FAILED, summary
                )
            raise

    def _require_due(self) -> None:
        """Check that a pause that the cloud asked for is over.

        A check for drift comes earlier, and finds the same write to be due.

        Raises:
            Postponed: it is not over.
        """
        left_s = self._board.pause_s()
        if left_s > 0:
            raise failures.Postponed("the cloud asked for a pause", left_s)

    def _write_entries(self, key: str, action: ApplyStep) -> None:
        """Write the entries of one object; one that others changed is planned again."""
        id_ = key.removeprefix(ENTRY)
        try:
            self._tools.engine.apply(key, action)
        except errors.Busy:
            wait_s = self._board.postpone(id_)
            self._tools.on_due([TABLE], Topic.SYNC, wait_s)
            return
        except errors.CloudError as error:
            self._refuse_entries(id_, action, error)
            raise
        ready = self._board.done(id_)
        self._tell_nodes(ready)
        self._memory.forget(key)

    def _refuse_entries(
        self, id_: str, action: ApplyStep, error: errors.CloudError
    ) -> None:
        """Report to the Nodes that wait for it that the cloud rejects a write.

        No Node waits for the removal of an entry.
        """
        key = f"{ENTRY}{id_}"
        self._refused.add(id_)
        summary = self._tools.engine.refusal(key, error, path=action.step.path)
        waiting = [_about(name) for name in self._board.waiting(id_)]
        for about in (waiting or [self._tools.table_ref]) if summary else ():
            self._tools.recorder.emit(about, "Warning", model.FAILED, summary)

    def _publish(self, action: model.Publish) -> None:
        for id_ in self._refused - action.plan.entry_steps.keys():
            self._refused.discard(id_)
            self._memory.forget(f"{ENTRY}{id_}")
        due = self._board.publish(action.plan, action.desired)
        self._tools.on_due([f"{ENTRY}{id_}" for id_ in due], Topic.SYNC, 0.0)
        self._tell_nodes(self._board.nodes())

    # ------------------------------------------------------------ Kubernetes

    def _write_record(
        self, stored: Stored, part: int, changes: tuple[tuple[str, str | None], ...]
    ) -> Stored:
        try:
            now = self._tools.records.write(stored, part, changes)
        except kube_errors.KubeError as error:
            name = f"{route_records.NAMESPACE}/{route_records.name(part)}"
            what = f"ConfigMap {name}, the record of routes"
            self._denied(TABLE, self._tools.table_ref, what, error)
            raise
        self._memory.allow(TABLE)
        return now

    def _denied(
        self,
        subject: str,
        about: events.ObjectRef,
        what: str,
        error: kube_errors.KubeError,
    ) -> None:
        """Report that the API server denies a write; subject: as in the memory."""
        if not kube_errors.is_denied(error):
            return
        message = f"failed to write {what}: {error.message}"
        problem = Problem(CommonReason.DENIED, message)
        if self._memory.deny(subject, problem):
            self._tools.recorder.emit(about, "Warning", str(problem.reason), message)

    def _tell_nodes(self, names: Iterable[str]) -> None:
        """Have the condition of these Nodes written where it is another."""
        stored = self._tools.nodes.items()
        due = [
            f"{NODE}{name}"
            for name in names
            if (node := stored.get(name)) is not None
            and (is_served := self._board.is_served(name)) is not None
            and decide.differs(node, model.SetCondition(is_served))
        ]
        self._tools.on_due(due, Topic.SYNC, 0.0)

    def _set_condition(self, node: Node, action: model.SetCondition) -> None:
        """Write one condition; the others are the kubelet's.

        Source: Kubernetes core/v1 NodeStatus: conditions merge by type.
        """
        at = self._tools.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": model.CONDITION,
            "status": action.status,
            "reason": action.reason,
            "message": action.message,
            "lastHeartbeatTime": at,
            "lastTransitionTime": at,
        }
        body = {
            "metadata": {"uid": node.metadata.uid},
            "status": {"conditions": [condition]},
        }
        try:
            answer = self._tools.api.patch(
                resources.NODES,
                node.name,
                msgspec.json.encode(body),
                subresource="status",
                content_type=client.STRATEGIC_PATCH,
                timeout_s=WRITE_TIMEOUT_S,
            )
        except kube_errors.NotFound:
            return
        except kube_errors.KubeError as error:
            what = f"condition {model.CONDITION}"
            self._denied(f"{NODE}{node.name}", _about(node.name), what, error)
            raise
        self._memory.allow(f"{NODE}{node.name}")
        written = decoding.decode(answer, Node)
        self._tools.nodes.note_write(node.name, written.metadata.resource_version)

    def _report(self, action: model.ReportProblems) -> None:
        tell = TellProblems(action.problems)
        new, _ = self._memory.report(action.subject, tell)
        about = self._tools.table_ref
        if action.subject != TABLE:
            about = _about(action.subject.removeprefix(NODE))
        for problem in new:
            reason = _reason(problem, is_unserved=action.is_unserved)
            self._tools.recorder.emit(about, "Warning", reason, problem.message)


def _about(node: str) -> events.ObjectRef:
    """Return a Node as the reference and `kubectl describe node` refer to it."""
    return events.ObjectRef("Node", node, "", node, "v1")


def _reason(problem: Problem, *, is_unserved: bool) -> str:
    """Return the reason of an Event: the reference's, where a route could not be."""
    return model.FAILED if is_unserved else str(problem.event or problem.reason)
