"""What a process keeps of plans between reconciliations; all of it may be lost."""

import collections
import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from lib.cloud.steps import Notice, Problem, ProblemReason
from lib.plans.model import OpenPlan, Target, TellProblems

REFUSED_AGAIN_S = 400.0
"""A write that was not refused again for this long counts from its next refusal.

Source: the longest backoff of a queue (300 s), with its jitter and a slow request.
"""

Path = tuple[str, ...]
UNKNOWN_S = 30.0
"""How long a request of unknown outcome may still be carried out."""
BACKOFF_FIRST_S = 10.0
BACKOFF_LONGEST_S = 600.0
REPEAT_S = 540.0
"""What stands is reported again after this time, by the next reconciliation.

Drift checks come every 10 minutes; the API server keeps an Event for an hour.
Source: kube-apiserver --event-ttl."""

_PROBLEMS, _DENIAL = ("problems",), ("denial",)
"""Keys of the times at which these were reported, beside the paths of steps."""

Written = TypeVar("Written")
"""Content that is written on the Kubernetes object once its target holds."""
T = TypeVar("T", Problem, Notice)


@dataclasses.dataclass(frozen=True, slots=True)
class _Refusal:
    """Why the cloud rejects a write, and when first and last: monotonic seconds."""

    problem: Problem
    first_s: float
    last_s: float

    def again(self, problem: Problem, now_s: float) -> "_Refusal":
        """Return the same write, rejected once more."""
        is_continued = now_s - self.last_s < REFUSED_AGAIN_S
        return _Refusal(problem, self.first_s if is_continued else now_s, now_s)


@dataclasses.dataclass(slots=True)
class _Record(Generic[Target, Written]):
    """All that is kept for one object.

    began_s: when its changes in progress began. settled: for which target all was
    well. refusals: why the cloud rejects writes, by the path of the step. denial: why
    the API server denies them. backoffs: number and end, by whether the object is
    desired. busy_since_s: since when writes are rejected as too early. closed: the
    object whose gate is closed, and since when. reported_s: when problems, denial, and
    refusals by path, were last reported.
    failed: groups of steps with another error than a refusal, the last one at the end.
    unknown: until when a request may still be carried out, by the path of its step.
    Times are monotonic seconds.
    """

    began_s: float | None = None
    settled: tuple[Target, Written] | None = None
    problems: tuple[Problem, ...] = ()
    notices: tuple[Notice, ...] = ()
    refusals: dict[Path, _Refusal] = dataclasses.field(default_factory=dict)
    denial: Problem | None = None
    backoffs: dict[bool, tuple[int, float]] = dataclasses.field(default_factory=dict)
    busy_since_s: float | None = None
    closed: tuple[str, float] | None = None
    reported_s: dict[tuple[str, ...], float] = dataclasses.field(default_factory=dict)
    unknown: dict[tuple[str, ...], float] = dataclasses.field(default_factory=dict)
    failed: tuple[str, ...] = ()


class Memory(Generic[Target, Written]):
    """One record per object, by its uid. Safe for many threads.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._records: dict[str, _Record[Target, Written]] = {}
        self._open: dict[str, OpenPlan[Target]] = {}
        self._on: dict[str, set[str]] = {}  # uids of open plans by the cloud's object

    def _get(self, uid: str) -> _Record[Target, Written]:
        """Return what is kept, or an empty record that is not."""
        return self._records.get(uid) or _Record()

    def _keep(self, uid: str) -> _Record[Target, Written]:
        """Return what is kept, to be changed."""
        return self._records.setdefault(uid, _Record())

    def forget(self, uid: str) -> None:
        """Drop all that is kept for an object that was deleted."""
        with self._lock:
            self._set_open(uid, None)
            self._records.pop(uid, None)

    def open(self, uid: str) -> OpenPlan[Target] | None:
        """Return the plan in progress."""
        with self._lock:
            return self._open.get(uid)

    def opens(self) -> Mapping[str, OpenPlan[Target]]:
        """Return all plans in progress whose steps were begun, by uid."""
        with self._lock:
            return {
                uid: plan
                for uid, plan in self._open.items()
                if not plan.waits_for_place
            }

    def _set_open(self, uid: str, plan: OpenPlan[Target] | None) -> None:
        """Keep or drop a plan, also by the object of the cloud that it is for."""
        before = self._open.pop(uid, None)
        if before is not None and before.object_id:
            uids = self._on[before.object_id]
            uids.discard(uid)
            if not uids:
                del self._on[before.object_id]
        if plan is not None:
            self._open[uid] = plan
            if plan.object_id:
                self._on.setdefault(plan.object_id, set()).add(uid)

    def keep(self, uid: str, plan: OpenPlan[Target]) -> None:
        """Keep a plan until its gate opens."""
        with self._lock:
            self._set_open(uid, plan)

    def replace(
        self, uid: str, before: OpenPlan[Target], after: OpenPlan[Target]
    ) -> bool:
        """Keep a plan in place of another; False when that is not the one kept."""
        with self._lock:
            if self._open.get(uid) is not before:
                return False
            self._set_open(uid, after)
            return True

    def drop(self, uid: str) -> None:
        """Drop a plan: the next reconciliation observes."""
        with self._lock:
            self._set_open(uid, None)

    def is_taken(self, uid: str, object_id: str) -> bool:
        """Report whether another object's plan is in progress on a cloud object."""
        with self._lock:
            others = self._on.get(object_id, set()) - {uid}
            return any(self._open[other].has_written for other in others)

    def drop_waiting(self, uid: str, object_id: str) -> None:
        """Drop the plans of others for a cloud object that have written nothing yet."""
        with self._lock:
            for other in self._on.get(object_id, set()) - {uid}:
                if self._open[other].waits_for_place:
                    self._set_open(other, None)

    def begin(self, uid: str) -> None:
        """Note that a change is in progress, and that nothing is settled any more."""
        with self._lock:
            record = self._keep(uid)
            record.began_s = self._clock() if record.began_s is None else record.began_s
            record.settled = None

    def is_in_progress(self, uid: str) -> bool:
        """Report whether a change was begun and has not ended."""
        with self._lock:
            return self._get(uid).began_s is not None

    def took_s(self, uid: str) -> float:
        """Return how many seconds ago that was begun; 0 without it."""
        with self._lock:
            now = self._clock()
            began_s = self._get(uid).began_s
            return 0.0 if began_s is None else now - began_s

    def settle(self, uid: str, target: Target, written: Written) -> None:
        """Note that all is well, and for which target."""
        with self._lock:
            old = self._get(uid)
            self._set_open(uid, None)
            self._records[uid] = _Record(
                settled=(target, written),
                problems=old.problems,
                notices=old.notices,
                reported_s={
                    what: at for what, at in old.reported_s.items() if what == _PROBLEMS
                },
            )

    def settled(self, uid: str) -> tuple[Target, Written] | None:
        """Return the target for which all was well when it was last observed."""
        with self._lock:
            return self._get(uid).settled

    def unsettle(self, uid: str) -> None:
        """Note that the object is observed again: what was settled may not hold."""
        with self._lock:
            self._get(uid).settled = None

    def back_off(self, uid: str, *, is_desired: bool) -> None:
        """Note that what failed is created again; the next time waits longer.

        is_desired: a wait while it was desired does not delay its deletion.
        """
        with self._lock:
            backoffs = self._keep(uid).backoffs
            count, _ = backoffs.get(is_desired, (0, 0.0))
            wait_s = min(BACKOFF_LONGEST_S, BACKOFF_FIRST_S * 2**count)
            backoffs[is_desired] = (count + 1, self._clock() + wait_s)

    def backoff_s(self, uid: str, *, is_desired: bool) -> float:
        """Return how many seconds that still has to wait."""
        with self._lock:
            _, until = self._get(uid).backoffs.get(is_desired, (0, 0.0))
            return max(0.0, until - self._clock())

    def note_unknown(self, uid: str, path: tuple[str, ...]) -> None:
        """Note a request that may be carried out yet. path: of its step."""
        with self._lock:
            self._keep(uid).unknown[path] = self._clock() + UNKNOWN_S

    def unknown_s(self, uid: str, path: tuple[str, ...] | None = None) -> float:
        """Return how many seconds a request may still be carried out.

        path: of its step; None: any.
        """
        with self._lock:
            now = self._clock()
            ends = self._get(uid).unknown
            some = ends.values() if path is None else (ends.get(path, now),)
            return max((at - now for at in some if at > now), default=0.0)

    def report(
        self, uid: str, now: TellProblems
    ) -> tuple[tuple[Problem, ...], tuple[Notice, ...]]:
        """Note all problems and notices there are now; return those to be reported.

        Those that are new, and all problems when that is due.
        """
        with self._lock:
            record = self._keep(uid)
            is_due = self._is_due(record)
            problems = now.problems if is_due else _new(now.problems, record.problems)
            notices = _new(now.notices, record.notices)
            self._reports(record, _PROBLEMS, is_new=not record.problems)
            record.problems, record.notices = now.problems, now.notices
            return problems, notices

    def is_report_due(self, uid: str) -> bool:
        """Report whether problems that stand are to be reported again."""
        with self._lock:
            return self._is_due(self._get(uid))

    def _is_due(self, record: _Record[Target, Written]) -> bool:
        return bool(record.problems) and self._is_late(record, _PROBLEMS)

    def _is_late(self, record: _Record[Target, Written], what: tuple[str, ...]) -> bool:
        return self._clock() - record.reported_s.get(what, -math.inf) >= REPEAT_S

    def _reports(
        self, record: _Record[Target, Written], what: tuple[str, ...], *, is_new: bool
    ) -> bool:
        """Return whether something is to be reported, and note that it is."""
        is_due = is_new or self._is_late(record, what)
        if is_due:
            record.reported_s[what] = self._clock()
        return is_due

    def reported(self, uid: str) -> TellProblems:
        """Return all that were noted last."""
        with self._lock:
            record = self._get(uid)
            return TellProblems(record.problems, record.notices)

    def refuse(self, uid: str, problem: Problem, path: tuple[str, ...] = ()) -> bool:
        """Note why the cloud rejected a write; return whether that is to be reported.

        When it is new, and again when that is due.

        It stands until the write is accepted, or is no longer planned. path: of its
        step.
        """
        with self._lock:
            record, now_s = self._keep(uid), self._clock()
            before = record.refusals.get(path)
            first = before or _Refusal(problem, now_s, now_s)
            record.refusals[path] = first.again(problem, now_s)
            is_new = before is None or before.problem != problem
            return self._reports(record, path, is_new=is_new)

    def keep_refusals(self, uid: str, paths: Collection[tuple[str, ...]]) -> None:
        """Drop the refusals of all writes but these: they are no longer planned."""
        with self._lock:
            refusals = self._get(uid).refusals
            for path in [path for path in refusals if path and path not in paths]:
                del refusals[path]

    def deny(self, uid: str, problem: Problem) -> bool:
        """Note why the API server denied a write; see `refuse`.

        It stands until such a write is accepted.
        """
        with self._lock:
            record = self._keep(uid)
            is_new, record.denial = record.denial != problem, problem
            return self._reports(record, _DENIAL, is_new=is_new)

    def allow(self, uid: str) -> None:
        """Note that the API server has accepted a write."""
        with self._lock:
            self._get(uid).denial = None

    def refusal(self, uid: str) -> Problem | None:
        """Return why the cloud rejects writes; None: it does not."""
        with self._lock:
            refusals = tuple(self._get(uid).refusals.values())
        if not refusals:
            return None
        problems = [refusal.problem for refusal in refusals]
        text = "; ".join(dict.fromkeys(problem.message for problem in problems))
        return dataclasses.replace(problems[0], message=text)

    def refused_s(self, uid: str) -> Mapping[Path, float]:
        """Return for how many seconds writes have been rejected, by path."""
        with self._lock:
            return {
                path: refusal.last_s - refusal.first_s
                for path, refusal in self._get(uid).refusals.items()
            }

    def busy_s(self, uid: str) -> float:
        """Return for how many seconds writes have been rejected as too early."""
        with self._lock:
            now = self._clock()
            record = self._keep(uid)
            since = now if record.busy_since_s is None else record.busy_since_s
            record.busy_since_s = since
            return now - since

    def closed_s(self, uid: str, object_id: str) -> float:
        """Note that a gate is closed; return since how many seconds it has been."""
        with self._lock:
            now = self._clock()
            record = self._keep(uid)
            if record.closed is None or record.closed[0] != object_id:
                record.closed = (object_id, now)
            return now - record.closed[1]

    def opened(self, uid: str) -> None:
        """Note that a gate is not closed any more."""
        with self._lock:
            self._get(uid).closed = None

    def fail(self, uid: str, group: str) -> None:
        """Note that a step of a group has failed with an error that is no refusal."""
        with self._lock:
            record = self._keep(uid)
            record.failed = (*_without(record.failed, group), group)

    def failed(self, uid: str) -> tuple[str, ...]:
        """Return the groups that have failed like that, the last at its end."""
        with self._lock:
            return self._get(uid).failed

    def accept(self, uid: str, path: tuple[str, ...] = (), group: str = "") -> None:
        """Note that the cloud has accepted a write. path, group: of its step."""
        with self._lock:
            record = self._get(uid)
            record.busy_since_s = record.closed = None
            record.failed = _without(record.failed, group)
            for accepted in (path, ()):
                record.refusals.pop(accepted, None)

    def problems(self) -> Mapping[ProblemReason, int]:
        """Count the objects that have a problem, by its reason."""
        with self._lock:
            by_uid = [
                {
                    problem.reason
                    for problem in (
                        *record.problems,
                        *(refusal.problem for refusal in record.refusals.values()),
                        *((record.denial,) if record.denial else ()),
                    )
                }
                for record in self._records.values()
            ]
        return collections.Counter(itertools.chain.from_iterable(by_uid))


def _new(now: tuple[T, ...], before: tuple[T, ...]) -> tuple[T, ...]:
    known = frozenset(before)
    return tuple(each for each in now if each not in known)


def _without(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return tuple(each for each in groups if each != group)
