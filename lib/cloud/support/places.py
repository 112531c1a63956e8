"""The objects in progress in one service of a cloud, and those that wait for a place.

Rules: no thread waits here. Without a place the answer is when to ask again; the object
is called earlier when there is a place, and keeps its position in the meantime. The
next place goes to an object that was begun before; then deletions, changes and
creations take turns, within each of these the namespaces, and within a namespace the
longest wait counts.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator

from lib.cloud.steps import Verb
from lib.cloud.support import write_limit
from lib.cloud.write_places import Standing, Work

ASK_AGAIN_S = 10.0
"""When to ask again, unless the object is called before."""
SOON_S = 0.2
"""The least of such times."""
COMES_S = 5.0
"""An object that was called and does not ask by then is passed over."""
ABSENT_S = 3 * ASK_AGAIN_S
"""An object that has not asked for so long does not wait any more."""
TOOK_SHARE = 0.3
"""Share of the last object in the average of what objects take."""
STUCK_S = 600.0
"""A place is given up so long after the last write: its object is stuck."""


@dataclasses.dataclass(slots=True)
class _Place:
    """began, wrote: when it was given, and its last write sent or answered."""

    verb: Verb
    began: float
    wrote: float
    is_answered: bool = False


@dataclasses.dataclass(slots=True)
class _Waiting:
    """since, asked, called: when it asked first and last, and when it was called."""

    work: Work
    since: float
    asked: float
    called: float | None = None


class AdaptivePlaces:
    """Implements `lib.cloud.write_places.Places` for one service.

    clock: monotonic seconds. start, most: see `write_limit`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        start: int = write_limit.START,
        most: int = write_limit.MOST,
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._limit = write_limit.WriteLimit(start, most)
        self._held: dict[str, _Place] = {}
        self._line: dict[str, _Waiting] = {}
        self._took_s = 0.0
        self._turn = 0
        self._served: dict[object, int] = {}  # by verb, or verb and group

    def bound(self, start: int, most: int) -> None:
        """See the protocol."""
        with self._lock:
            if (start, most) != (self._limit.start, self._limit.most):
                self._limit = write_limit.WriteLimit(start, most)

    # ------------------------------------------------------------ places

    def enter(self, work: Work) -> float:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            self._tidy(now)
            wait_s = self._enter(work, now)
            called = self._call(now)
        _wake(called)
        return wait_s

    def answered(self, id_: str) -> None:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            if (place := self._held.get(id_)) is not None:
                place.is_answered, place.wrote = True, now
                self._limit.changed(now)
            called = self._call(now)
        _wake(called)

    def leave(self, id_: str, *, is_finished: bool) -> None:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            self._line.pop(id_, None)
            held = len(self._held)
            place = self._held.pop(id_, None)
            if place is not None and is_finished:
                kind = f"whole {place.verb}"
                took_s = now - place.began
                self._limit.finished(kind, took_s, now, held)
                former_s = self._took_s or took_s
                self._took_s = former_s + (took_s - former_s) * TOOK_SHARE
            called = self._call(now)
        _wake(called)

    def lacks_answer(self) -> bool:
        """Report whether a read would show if there is room for one that waits."""
        with self._lock:
            unanswered = sum(not place.is_answered for place in self._held.values())
            held = len(self._held)
            return bool(self._line) and self._limit.lacks_answer(held, unanswered)

    def waited_s(self, id_: str) -> float:
        """See the protocol."""
        with self._lock:
            waiting = self._line.get(id_)
            return 0.0 if waiting is None else self._clock() - waiting.since

    # ------------------------------------------------------------ measurements

    def measured(self, operation: str, seconds: float) -> None:
        """Note how long a request took that the service has answered."""
        with self._lock:
            now = self._clock()
            self._limit.answered(operation, seconds, now, len(self._held))
            called = self._call(now)
        _wake(called)

    def overloaded(self, seconds: float, retry_after_s: float | None = None) -> None:
        """Note that the service did not answer in time, or had too much to do."""
        with self._lock:
            self._limit.overloaded(seconds, self._clock(), retry_after_s)

    def standing(self) -> Standing:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            oldest_s = max(
                (now - each.since for each in self._line.values()), default=0
            )
            held, waiting = len(self._held), len(self._line)
            places = self._limit.places
            return Standing(places, held, waiting, oldest_s, self._took_s)

    # ------------------------------------------------------------ with the lock

    def _tidy(self, now: float) -> None:
        """Drop the places of stuck objects, and those that wait no more."""
        for id_, place in tuple(self._held.items()):
            if now - place.wrote > STUCK_S:
                del self._held[id_]
        for id_, waiting in tuple(self._line.items()):
            if now - waiting.asked > ABSENT_S:
                del self._line[id_]

    def _enter(self, work: Work, now: float) -> float:
        if (place := self._held.get(work.id)) is not None:
            place.wrote, place.is_answered = now, False
            return 0.0
        waiting = self._line.setdefault(work.id, _Waiting(work, now, now))
        waiting.work, waiting.asked = work, now
        if waiting.called is not None and now - waiting.called > COMES_S:
            waiting.called = None
        room = self._room(now)
        if work.id in (each.work.id for each in self._next(room, now)):
            self._give(work, now)
            return 0.0
        waiting.called = None
        opens_s = self._limit.opens_s(now)
        if opens_s <= 0:
            return ASK_AGAIN_S
        return min(max(opens_s, SOON_S), ASK_AGAIN_S)

    def _give(self, work: Work, now: float) -> None:
        del self._line[work.id]
        self._held[work.id] = _Place(work.verb, now, now)
        self._limit.changed(now)
        self._turn += 1
        self._served[work.verb] = self._served[work.verb, work.group] = self._turn

    def _room(self, now: float) -> int:
        unanswered = sum(not place.is_answered for place in self._held.values())
        return max(0, self._limit.room(now, len(self._held), unanswered))

    def _next(self, count: int, now: float) -> Iterator[_Waiting]:
        """Yield the next `count`; not those that were called in vain."""
        served = dict(self._served)
        turn = self._turn
        line = [
            each
            for each in self._line.values()
            if each.called is None or now - each.called <= COMES_S
        ]
        for _ in range(min(count, len(line))):
            first = min(line, key=lambda each: _rank(each, served))
            line.remove(first)
            turn += 1
            work = first.work
            served[work.verb] = served[work.verb, work.group] = turn
            yield first

    def _call(self, now: float) -> list[Work]:
        """Return those to be called that were not called yet."""
        room = self._room(now)
        called = [each for each in self._next(room, now) if each.called is None]
        for each in called:
            each.called = now
        return [each.work for each in called]


def _rank(waiting: _Waiting, served: dict[object, int]) -> tuple[bool, int, int, float]:
    work = waiting.work
    verb, group = served.get(work.verb, 0), served.get((work.verb, work.group), 0)
    return (not work.has_begun, verb, group, waiting.since)


def _wake(called: list[Work]) -> None:
    """Call without the lock: an object that is called may ask immediately."""
    for work in called:
        work.wake()
