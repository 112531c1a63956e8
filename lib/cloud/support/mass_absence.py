"""Takes no absence for true while many objects are absent at the same time.

For every kind of object that this process would delete, recreate or report as lost:
load balancers, machines; volumes may use it. A cloud that answers "not found" to
everything for minutes (an empty replica behind the API) then costs nothing.

Rules: an object counts once it was observed, or once a Kubernetes object shows that it
was served by it. The rule is that of Nodes: `lib/cloud/absence_limit.py`.
"""

import threading
from collections.abc import Callable, Collection, Iterable

from lib.cloud import absence_limit, errors

KEEP_S = 1800.0
"""For how long an absence counts that is not observed again."""


class MassAbsence:
    """Objects of one kind, by ID: observed, absent, replaced. Safe for many threads.

    A process without history is stricter: until it has followed the objects for one
    window, the percentage is ignored.
    """

    def __init__(
        self,
        objects: str,
        remedy: str,
        clock: Callable[[], float],
        limit: absence_limit.Limit | None = None,
    ) -> None:
        """objects: what they are called in errors; plural. remedy: what a user can do.

        clock: monotonic seconds.
        """
        self._objects = objects
        self._remedy = remedy
        self._clock = clock
        self._limit = limit or absence_limit.Limit()
        self._lock = threading.Lock()
        self._began: float | None = None
        self._known: set[str] = set()
        self._absent: dict[str, float] = {}  # ID -> since when
        self._asked: dict[str, float] = {}  # absent ID -> when it mattered last
        self._replaced: dict[str, float] = {}  # ID -> when

    def observed(self, ids: Iterable[str]) -> None:
        """Record that these objects exist."""
        with self._lock:
            self._begin()
            for id_ in ids:
                self._known.add(id_)
                self._absent.pop(id_, None)
                self._asked.pop(id_, None)

    def listed(self, ids: Collection[str]) -> None:
        """Record a whole list: objects that were observed and are not in it are absent.

        So the first of many objects that are read again is not taken for the only one.
        """
        with self._lock:
            now = self._clock()
            for id_ in self._known.difference(ids):
                self._absent.setdefault(id_, now)
            self._expire(now)

    def is_known(self, id_: str) -> bool:
        """Report whether an object was observed, and is not forgotten."""
        with self._lock:
            return id_ in self._known

    def forget(self, ids: Iterable[str]) -> None:
        """Drop objects that are absent for a known reason, or have no user any more."""
        with self._lock:
            for id_ in ids:
                self._drop(id_)

    def check(self, ids: Collection[str], operation: str) -> None:
        """Record that these objects are absent; check that this may have effects.

        Raises:
            NotCredible: too many are absent at the same time.
        """
        with self._lock:
            self._begin()
            now = self._clock()
            for id_ in ids:
                self._absent.setdefault(id_, now)
                self._asked[id_] = now
            self._expire(now)
            budget = self._budget(now)
            is_mass = any(
                absence_limit.suspends(budget, self._limit, id_) for id_ in ids
            )
        if is_mass:
            text = (
                f"{len(budget.pending)} of {budget.nodes} {self._objects} of this"
                " cluster are absent at the same time; this is not taken for true, and"
                f" nothing is created or deleted for them: {self._remedy}"
            )
            raise errors.NotCredible(text, operation=operation)

    def replaced(self, ids: Iterable[str]) -> None:
        """Record that the absence of these objects takes effect now."""
        with self._lock:
            for id_ in ids:
                self._drop(id_)
                self._replaced.setdefault(id_, self._clock())

    def _begin(self) -> None:
        if self._began is None:
            self._began = self._clock()

    def _drop(self, id_: str) -> None:
        self._known.discard(id_)
        self._absent.pop(id_, None)
        self._asked.pop(id_, None)

    def _expire(self, now: float) -> None:
        """Drop absences without consequence, and replacements before the window."""
        window_s = self._limit.window_s
        for id_, since in tuple(self._absent.items()):
            asked = self._asked.get(id_)
            is_over = now - since > window_s if asked is None else now - asked > KEEP_S
            if is_over:
                self._drop(id_)
        for id_, at in tuple(self._replaced.items()):
            if now - at >= window_s:
                del self._replaced[id_]

    def _budget(self, now: float) -> absence_limit.Budget:
        pending = sorted(self._absent, key=lambda id_: (self._absent[id_], id_))
        is_young = self._began is None or now - self._began < self._limit.window_s
        return absence_limit.Budget(
            nodes=len(self._known | self._absent.keys() | self._replaced.keys()),
            deleted=len(self._replaced),
            pending={id_: ahead for ahead, id_ in enumerate(pending)},
            is_young=is_young,
        )
