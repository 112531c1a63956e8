"""What a process keeps between passes, all of which may be thrown away."""

import collections
import itertools
import threading
from collections.abc import Callable, Mapping

from lib.balancers.model import Open, TellProblems
from lib.cloud.load_balancers import Results, Target
from lib.cloud.steps import Notice, Problem, ProblemReason

DOUBT_S = 30.0
"""So long a request may still be carried out that nobody heard the answer of."""
BAR_FIRST_S = 10.0
BAR_LONGEST_S = 600.0


class Memory:
    """Open plans and what was found well, by uid of the Service. Thread-safe.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, Open] = {}
        self._under_way: dict[str, float] = {}
        self._settled: dict[str, tuple[Target, Results]] = {}
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._notices: dict[str, tuple[Notice, ...]] = {}
        self._refusals: dict[str, Problem] = {}
        self._bars: dict[str, dict[bool, tuple[int, float]]] = {}
        self._busy: dict[str, float] = {}
        self._doubts: dict[str, dict[tuple[str, ...], float]] = {}

    def open(self, uid: str) -> Open | None:
        """Give the plan that is under way."""
        with self._lock:
            return self._open.get(uid)

    def opens(self) -> Mapping[str, Open]:
        """Give all plans that are under way."""
        with self._lock:
            return dict(self._open)

    def keep(self, uid: str, plan: Open) -> None:
        """Keep a plan until its gate opens."""
        with self._lock:
            self._open[uid] = plan

    def note(self, uid: str, before: Open, after: Open) -> bool:
        """Keep a plan in the place of another; False when that is not the one kept."""
        with self._lock:
            if self._open.get(uid) is not before:
                return False
            self._open[uid] = after
            return True

    def drop(self, uid: str) -> None:
        """Let go of a plan: the next pass observes."""
        with self._lock:
            self._open.pop(uid, None)

    def is_taken(self, uid: str, load_balancer_id: str) -> bool:
        """Say whether another Service's plan is under way on a load balancer."""
        with self._lock:
            return any(
                plan.load_balancer_id == load_balancer_id and plan.has_written
                for other, plan in self._open.items()
                if other != uid and load_balancer_id
            )

    def begin(self, uid: str) -> None:
        """Remember that something was changed, and that it is not well any more."""
        with self._lock:
            self._under_way.setdefault(uid, self._clock())
            self._settled.pop(uid, None)

    def is_under_way(self, uid: str) -> bool:
        """Say whether something was begun and has not ended."""
        with self._lock:
            return uid in self._under_way

    def took_s(self, uid: str) -> float:
        """Say how long ago that was begun, in seconds; 0 without it."""
        with self._lock:
            now = self._clock()
            return now - self._under_way.get(uid, now)

    def settle(self, uid: str, target: Target, results: Results) -> None:
        """Remember that all is well, and what for."""
        with self._lock:
            self._open.pop(uid, None)
            self._under_way.pop(uid, None)
            self._bars.pop(uid, None)
            self._refusals.pop(uid, None)
            self._doubts.pop(uid, None)
            self._busy.pop(uid, None)
            self._settled[uid] = (target, results)

    def settled(self, uid: str) -> tuple[Target, Results] | None:
        """Give what all was well for, when it was last looked at."""
        with self._lock:
            return self._settled.get(uid)

    def bar(self, uid: str, *, is_wanted: bool) -> None:
        """Begin to do again what failed; the next time must wait longer.

        is_wanted: what was waited for while it was wanted does not delay its deletion.
        """
        with self._lock:
            bars = self._bars.setdefault(uid, {})
            count, _ = bars.get(is_wanted, (0, 0.0))
            wait_s = min(BAR_LONGEST_S, BAR_FIRST_S * 2**count)
            bars[is_wanted] = (count + 1, self._clock() + wait_s)

    def barred_s(self, uid: str, *, is_wanted: bool) -> float:
        """Say how long it still has to wait, in seconds."""
        with self._lock:
            _, until = self._bars.get(uid, {}).get(is_wanted, (0, 0.0))
            return max(0.0, until - self._clock())

    def doubt(self, uid: str, path: tuple[str, ...]) -> None:
        """Remember what may have been made, or may be soon. path: of its step."""
        with self._lock:
            self._doubts.setdefault(uid, {})[path] = self._clock() + DOUBT_S

    def create_in_s(self, uid: str, path: tuple[str, ...]) -> float:
        """Say how long a thing is not to be made that can't be made twice."""
        with self._lock:
            until = self._doubts.get(uid, {}).get(path, 0.0)
            return max(0.0, until - self._clock())

    def doubt_s(self, uid: str) -> float:
        """Say how long anything may still appear that was asked for, in seconds."""
        with self._lock:
            now = self._clock()
            return max(
                (at - now for at in self._doubts.get(uid, {}).values() if at > now),
                default=0.0,
            )

    def tell(self, uid: str, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Take note of all there are now; give those that are new."""
        with self._lock:
            known = self._problems.get(uid, ())
            self._problems[uid] = problems
            return tuple(one for one in problems if one not in known)

    def told(self, uid: str) -> TellProblems:
        """Give all that were last taken note of."""
        with self._lock:
            problems, notices = self._problems.get(uid, ()), self._notices.get(uid, ())
            return TellProblems(problems, notices)

    def tell_notices(self, uid: str, notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
        """Take note of all that is to be said; give what is new."""
        with self._lock:
            known = self._notices.get(uid, ())
            self._notices[uid] = notices
            return tuple(one for one in notices if one not in known)

    def refuse(self, uid: str, problem: Problem) -> bool:
        """Take note of why the cloud refused a write; say whether that is new.

        It stands until a write is taken, or nothing is left to be written.
        """
        with self._lock:
            is_new = self._refusals.get(uid) != problem
            self._refusals[uid] = problem
            return is_new

    def busy_s(self, uid: str) -> float:
        """Return for how many seconds writes have been refused as too early."""
        with self._lock:
            now = self._clock()
            return now - self._busy.setdefault(uid, now)

    def accept(self, uid: str) -> None:
        """Take note that the cloud has taken a write."""
        with self._lock:
            self._busy.pop(uid, None)
            self._refusals.pop(uid, None)

    def problems(self) -> Mapping[ProblemReason, int]:
        """Count the Services that have a problem, by its reason."""
        with self._lock:
            by_uid = {u: {p.reason for p in some} for u, some in self._problems.items()}
            for uid, refusal in self._refusals.items():
                by_uid.setdefault(uid, set()).add(refusal.reason)
        return collections.Counter(itertools.chain.from_iterable(by_uid.values()))

    def forget(self, uid: str) -> None:
        """Drop all that is kept for a Service that is gone."""
        with self._lock:
            for kept in (self._open, self._settled, self._problems, self._bars):
                kept.pop(uid, None)
            for more in (self._under_way, self._notices, self._refusals, self._doubts):
                more.pop(uid, None)
            self._busy.pop(uid, None)
