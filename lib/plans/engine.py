"""Carries plans out over several reconciliations, one step after the other.

Rules: a step that is gated is applied only when the gate of its object is open, and
when no other plan is in progress on that object. A step that must not be repeated is
not applied as long as an earlier request for it may still be carried out. Nothing waits
here: what has to wait is an answer with a time, which the runner puts into the queue.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Generic

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.steps import (
    Asked,
    CommonReason,
    Gate,
    GateState,
    Problem,
    ProblemReason,
    Step,
    StepResult,
    Verb,
)
from lib.cloud.write_places import Work
from lib.plans.memory import Memory, Written
from lib.plans.model import (
    LASTING,
    REFUSED,
    ApplyStep,
    Await,
    OpenPlan,
    Resumed,
    Target,
)
from lib.plans.writing import Applier, NoPlace, UnknownOutcome, Writing
from lib.reconcile import failure, outcome

TAKEN_S = 1.0
"""When to check again an object that another plan is changing."""
CREATE_AFTER_S = 10.0
"""After a takeover: when an object may be created that the previous leader may have
begun to create. Of two the younger is found and deleted later."""
FORGET_AFTER_S = 60.0
"""After a takeover: when such an object is not searched any more. The usual time
limit of proxies in front of cloud services."""
UNKNOWN_POLL_S = 4.0
"""When to check again, as long as it may still appear."""
FRESH_S = 60.0
"""A plan that has waited longer for its place is made again, of a new read."""
PROBE_S = 0.05
"""When to read first what was just written, if that shows how busy the cloud is."""
LONG_S = 120.0
"""A write that is rejected as too early for this long is reported."""


class Engine(Generic[Target, Written]):
    """The open plans of one flow, by the uid of the Kubernetes object.

    Safe for many threads; never called for one uid from two at a time.
    """

    def __init__(
        self,
        cloud: Callable[[], Applier],
        memory: Memory[Target, Written],
        clock: Callable[[], float],
        writing: Writing | None = None,
        on_open: Callable[[str, frozenset[str]], None] | None = None,
    ) -> None:
        """cloud: returns the cloud in use. clock: monotonic seconds.

        on_open: called with the key and the topics of a plan when a call for others
        has shown that its gate is open.
        """
        self._cloud = cloud
        self._memory = memory
        self._clock = clock
        self._writing = writing or Writing()
        self._on_open = on_open
        self._places = self._writing.places

    # ------------------------------------------------------------ observe

    def resume(
        self, targets: Mapping[str, Target | None]
    ) -> Mapping[str, Resumed[Target]]:
        """Return the plans that continue, by uid, each with the answer of its gate.

        One call asks for the gates of all plans that are due, and of all others too.
        A plan is dropped when its target has changed, or when its gate shows that it
        cannot continue; the object has to be observed then. targets: what is desired
        now, by uid; None: invalid.
        """
        now = self._clock()
        resumed: dict[str, Resumed[Target]] = {}
        due: dict[str, OpenPlan[Target]] = {}
        for uid, target in targets.items():
            plan = self._fitting(uid, target)
            if plan is None:
                continue
            if plan.waits_for_place:
                self._resume_waiting(uid, plan, resumed)
            elif plan.gate is not None:
                self._answer(uid, plan, plan.gate, resumed)
            elif now < plan.due_s:
                # The watch has shown our own writes, or a change of no consequence.
                # Or the call of another plan has put this one off: it may be stuck too.
                gate = Gate(GateState.CLOSED, plan.due_s - now, plan.why)
                closed_s = 0.0
                if plan.why:
                    closed_s = self._memory.closed_s(uid, plan.object_id)
                resumed[uid] = Resumed(plan, gate, closed_s)
            else:
                due[uid] = plan
        if due:
            self._ask(due, now, resumed)
        return resumed

    def _fitting(self, uid: str, target: Target | None) -> OpenPlan[Target] | None:
        """Return the plan in progress, if it is for what is desired now."""
        plan = self._memory.open(uid)
        if plan is not None and plan.target != target:
            self._memory.drop(uid)
            return None
        return plan

    def _resume_waiting(
        self, uid: str, plan: OpenPlan[Target], resumed: dict[str, Resumed[Target]]
    ) -> None:
        """Go on with a plan whose first step waits for a place, if there is one now."""
        wait_s = self._enter(uid, plan)
        if wait_s > 0:
            gate = Gate(GateState.CLOSED, wait_s)
            resumed[uid] = Resumed(plan, gate, waited_s=self._waited_s(uid))
        elif self._clock() - plan.since_s > FRESH_S:
            self._memory.drop(uid)  # its place is kept
        else:
            resumed[uid] = Resumed(plan, Gate(GateState.OPEN))

    def _enter(self, uid: str, plan: OpenPlan[Target]) -> float:
        """Take a place for the next step of a plan, or return when to ask again, s.

        What the cloud has to work on takes one: an object that is created, and what is
        gated until that has ended.
        """
        places, step = self._places(), plan.steps[0]
        if places is None or (plan.object_id and not step.is_gated):
            return 0.0
        key, topics = plan.target.key, plan.topics
        verb = step.verb
        if verb is not Verb.DELETE:
            verb = Verb.CHANGE if plan.object_id else Verb.CREATE

        def wake() -> None:
            if self._on_open is not None:
                self._on_open(key, topics)

        has_begun = self._memory.is_in_progress(uid)
        namespace = key.partition("/")[0]
        return places.enter(Work(uid, namespace, verb, wake, has_begun))

    def _waited_s(self, uid: str) -> float:
        places = self._places()
        return 0.0 if places is None else places.waited_s(uid)

    def forget(self, uid: str) -> None:
        """Drop all that is kept for an object that was deleted."""
        self._memory.forget(uid)
        self.release(uid)

    def release(self, uid: str) -> None:
        """Release the place of an object, unless a plan for it is in progress."""
        places = self._places()
        if places is not None and self._memory.open(uid) is None:
            places.leave(uid)

    def _finished(self, uid: str, plan: OpenPlan[Target], state: GateState) -> None:
        """Note that the cloud has finished with the last step of a plan.

        Not later than its poll was due: that it came later is no work of the cloud.
        """
        places = self._places()
        if places is not None and plan.has_written:
            lasted_s = min(self._clock(), plan.due_s) - plan.since_s
            is_lost = state is GateState.LOST
            goes_on = not is_lost and any(step.is_gated for step in plan.steps)
            places.finished(uid, lasted_s, goes_on=goes_on, is_lost=is_lost)

    def _ask(
        self,
        due: Mapping[str, OpenPlan[Target]],
        now: float,
        resumed: dict[str, Resumed[Target]],
    ) -> None:
        others = {u: plan for u, plan in self._memory.opens().items() if u not in due}
        plans = (*due.values(), *others.values())
        gates = self._cloud().gates(
            {Asked(plan.object_id, now - plan.since_s) for plan in plans}
        )
        for uid, plan in due.items():
            self._answer(uid, plan, gates[plan.object_id], resumed)
        for uid, plan in others.items():
            self._overhear(uid, plan, gates[plan.object_id])

    def _answer(
        self,
        uid: str,
        plan: OpenPlan[Target],
        gate: Gate | Unknown,
        resumed: dict[str, Resumed[Target]],
    ) -> None:
        """Go on with a plan, or drop it so that the object is observed."""
        closed_s = 0.0
        if isinstance(gate, Gate):
            if gate.state is GateState.CLOSED:
                closed_s = self._memory.closed_s(uid, plan.object_id)
            else:
                self._memory.opened(uid)
                self._finished(uid, plan, gate.state)
            is_done = gate.state is GateState.OPEN and not plan.steps
            if is_done or gate.state is GateState.LOST:
                self._memory.drop(uid)
                return
            due_s = self._clock() + gate.retry_after_s
            after = dataclasses.replace(plan, due_s=due_s, gate=None, why=gate.why)
            self._memory.keep(uid, after)
        resumed[uid] = Resumed(plan, gate, closed_s)

    def _overhear(self, uid: str, plan: OpenPlan[Target], gate: Gate | Unknown) -> None:
        """Note the gate of a plan that was not due, since it costs nothing.

        Many that wait at one time need no more calls than one.
        """
        if isinstance(gate, Unknown) or plan.gate is not None or plan.waits_for_place:
            return
        if gate.state is GateState.CLOSED:
            due_s = self._clock() + gate.retry_after_s
            after = dataclasses.replace(plan, due_s=due_s, why=gate.why)
            if self._memory.replace(uid, plan, after):
                self._memory.closed_s(uid, plan.object_id)
            return
        due_s = min(plan.due_s, self._clock())
        after = dataclasses.replace(plan, gate=gate, due_s=due_s)
        if self._memory.replace(uid, plan, after) and self._on_open is not None:
            self._on_open(plan.target.key, plan.topics)

    # ------------------------------------------------------------ act

    def apply(
        self,
        uid: str,
        action: ApplyStep,
        target: Target | None = None,
        topics: frozenset[str] = frozenset(),
    ) -> StepResult:
        """Make one write of the cloud.

        target, topics: of the plan, with which it waits for a place. None: without one.

        Raises:
            NoPlace: nothing was done; the plan is kept until there is a place for it.
            Postponed: nothing was done; the reconciliation has to end here.
            UnknownOutcome: it must not be applied again before a search for its result.
            CloudError: it was not carried out, or may be applied again.
            Exception: of the permit; it was not sent.
        """
        step = action.step
        if step.is_gated and self._memory.is_taken(uid, action.object_id):
            self._memory.drop(uid)
            text = "another plan is in progress on the same object"
            raise failure.Postponed(text, TAKEN_S)
        if not step.is_repeatable:
            unknown_s = self._memory.unknown_s(uid, step.path)
            self._require_known(uid, unknown_s, CREATE_AFTER_S)
        if target is not None:
            self._take_place(uid, action, target, topics)
        self._memory.begin(uid)
        plan = self._memory.open(uid)
        if plan is not None and plan.waits_for_place:
            self._memory.drop(uid)  # else its first step would be applied twice
        if self._memory.open(uid) is None:
            paths = {each.path for each in (step, *action.rest)}
            self._memory.keep_refusals(uid, paths.union(action.refused))
        try:
            result = self._write(uid, step)
        except errors.CloudError as error:
            self._memory.drop(uid)
            if step.group and not isinstance(error, REFUSED):
                self._memory.fail(uid, step.group)
            if step.is_repeatable or not _may_be_done(error):
                raise
            self._memory.note_unknown(uid, step.path)
            raise UnknownOutcome(error) from error
        self._memory.accept(uid, step.path, step.group)
        if action.object_id:  # what others wait to write was planned of what it was
            self._memory.drop_waiting(uid, action.object_id)
        return result

    def _take_place(
        self, uid: str, action: ApplyStep, target: Target, topics: frozenset[str]
    ) -> None:
        now = self._clock()
        plan = OpenPlan(
            target,
            (action.step, *action.rest),
            action.object_id,
            now,
            now,
            topics,
            has_written=False,
        )
        wait_s = self._enter(uid, plan)
        if wait_s > 0:
            self._memory.keep(uid, plan)
            raise NoPlace("the cloud works on as much as it can take", wait_s)

    def _write(self, uid: str, step: Step) -> StepResult:
        try:
            with self._writing.permit(f"{step.verb} {' / '.join(step.path)}") as left_s:
                return self._cloud().apply(step, left_s)
        finally:
            if (places := self._places()) is not None:
                places.answered(uid)

    def require_known(self, uid: str, *, is_recorded: bool) -> None:
        """Check that no earlier request can still be carried out.

        is_recorded: the Kubernetes object shows what was created for it, so that a
        previous leader had no reason to create it again.

        Raises:
            Postponed: one can; the reconciliation has to end here.
        """
        settle_s = CREATE_AFTER_S if is_recorded else FORGET_AFTER_S
        self._require_known(uid, self._memory.unknown_s(uid), settle_s)

    def _require_known(self, uid: str, unknown_s: float, settle_s: float) -> None:
        early_s = max(self._writing.unsettled_s(settle_s), unknown_s)
        if early_s > 0:
            self._memory.drop(uid)
            text = "what may have been made before is waited for"
            raise failure.Postponed(text, min(early_s, UNKNOWN_POLL_S))

    def refusal(
        self,
        uid: str,
        error: errors.CloudError,
        reason: ProblemReason = CommonReason.REFUSED,
        path: tuple[str, ...] = (),
    ) -> str:
        """Return what to report of a failed write; empty: nothing, or not again.

        An error that lasts is reported once, one of a busy object after LONG_S; both
        again after `memory.REPEAT_S`. reason: by which the write is kept as rejected.
        path: of its step.
        """
        summary, lasts = error.advice, isinstance(error, LASTING)
        if isinstance(error, errors.Busy):
            if self._memory.busy_s(uid) < LONG_S:
                return ""
            summary, lasts = f"{summary}, for minutes", True
        problem = Problem(reason, summary)
        is_new = not lasts or self._memory.refuse(uid, problem, path)
        return summary if is_new else ""

    def go_on(
        self,
        uid: str,
        target: Target | None,
        action: ApplyStep,
        result: StepResult,
        topics: frozenset[str],
    ) -> outcome.Requeue:
        """Keep what is left of a plan after its last step in this reconciliation.

        target: as it is after our own writes; None: invalid. topics: for which it
        continues. Returns when its gate may be open.
        """
        object_id = action.object_id or result.id
        wait_s = result.opens_after_s
        places = self._places()
        if wait_s > 0 and places is not None and places.lacks_answer():
            wait_s = min(wait_s, PROBE_S)
        if object_id and target is not None and (action.rest or wait_s > 0):
            now = self._clock()
            self._memory.keep(
                uid,
                OpenPlan(target, action.rest, object_id, now, now + wait_s, topics),
            )
        else:
            self._memory.drop(uid)
        return outcome.Requeue(wait_s, topics)

    def await_gate(
        self, uid: str, target: Target, action: Await, topics: frozenset[str]
    ) -> None:
        """Keep an empty plan: its gate costs less than a whole observation."""
        now = self._clock()
        due_s = now + action.after_s
        plan = OpenPlan(
            target, (), action.object_id, now, due_s, topics, has_written=False
        )
        self._memory.keep(uid, plan)


def _may_be_done(error: errors.CloudError) -> bool:
    """Report whether a request may have been carried out, or may be soon.

    A proxy that gives up waiting may name a time for a retry as well.
    """
    return isinstance(error, errors.Unavailable) and not error.was_rejected
