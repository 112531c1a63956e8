"""The objects in progress in one service of a cloud, and those that wait for a place.

Rules: no thread waits here. An object without a place is called once there is one for
it, which is kept for a short time; its answer until then is when to ask again, which is
late. So an object asks once and is called once, however many others wait.

What the cloud finishes with before the first poll is not waited for: its place is
released with the answer to the write, since the poll would take longer than the work.
"""

import collections
import dataclasses
import threading
from collections.abc import Callable

from lib.cloud.steps import Verb
from lib.cloud.support import waiting_line, write_limit
from lib.cloud.write_places import Standing, Work

ASK_AGAIN_S = 120.0
"""When to ask again, unless the object is called before; each time twice as late. The
first time its user is informed that it waits."""
LATEST_S = 1800.0
SOON_S = 0.2
"""The least of such times."""
COMES_S = 10.0
"""An object that was called and does not ask by then loses its place again."""
SHARE = 0.3
"""Share of the last object in the average of what objects take."""
STUCK_S = 600.0
"""A place is given up so long after the last write: its object is stuck."""
QUICK_S = 1.5
"""What lasts no longer after its write had ended at the first poll."""
ACCEPTED = 8
"""Quick objects that may be without a poll, at least: twice as many as have been
finished quickly in succession."""


@dataclasses.dataclass(slots=True)
class _Place:
    """wrote: when the last write was sent, answered: and when it was answered."""

    verb: Verb
    wrote: float
    answered: float | None = None


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
        self._accepted: dict[str, _Place] = {}  # no place, but not finished
        self._quick: collections.Counter[Verb] = collections.Counter()  # in a row
        self._called: dict[str, tuple[Work, float]] = {}  # by time
        self._line = waiting_line.Line()
        self._timed = ""  # who knows when there may be room without any answer
        self._took_s = 0.0

    def bound(self, start: int, most: int) -> None:
        """See the protocol."""
        with self._lock:
            start = min(max(start, write_limit.START), most)
            if (start, most) != (self._limit.start, self._limit.most):
                self._limit = write_limit.WriteLimit(start, most)

    # ------------------------------------------------------------ places

    def enter(self, work: Work) -> float:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            self._give_up_stuck(now)
            wait_s, called = self._enter(work, now)
        _wake(called)
        return wait_s

    def answered(self, id_: str) -> None:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            if (place := self._held.get(id_)) is not None:
                place.answered = now
                self._limit.changed(now)
                if self._is_quick(place.verb):
                    self._accepted[id_] = self._held.pop(id_)
            called = self._call(now)
        _wake(called)

    def finished(
        self, id_: str, lasted_s: float, *, goes_on: bool = False, is_lost: bool = False
    ) -> None:
        """See the protocol."""
        with self._lock:
            now = self._clock()
            held = len(self._held) + len(self._accepted)
            place = self._accepted.pop(id_, None) or self._held.get(id_)
            counts = place and (place.verb is Verb.DELETE or not is_lost)
            if counts and place is not None and place.answered is not None:
                self._learn(place, lasted_s, now, held)
                place.answered = None if goes_on else place.answered
            if not goes_on:
                self._held.pop(id_, None)
            called = self._call(now)
        _wake(called)

    def leave(self, id_: str) -> None:
        """See the protocol."""
        with self._lock:
            self._line.drop(id_)
            for each in (self._called, self._held, self._accepted):
                each.pop(id_, None)
            called = self._call(self._clock())
        _wake(called)

    def lacks_answer(self) -> bool:
        """See the protocol."""
        with self._lock:
            taken, unanswered = self._taken()
            return bool(self._line) and self._limit.lacks_answer(taken, unanswered)

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
            in_progress = len(self._held) + len(self._accepted)
            self._limit.answered(operation, seconds, now, in_progress)
            called = self._call(now)
        _wake(called)

    def overloaded(self, seconds: float, retry_after_s: float | None = None) -> None:
        """Note that the service did not answer in time, or had too much to do."""
        with self._lock:
            now = self._clock()
            self._quick.clear()
            self._limit.overloaded(seconds, now, retry_after_s)
            called = self._call(now)
        _wake(called)

    def standing(self) -> Standing:
        """See the protocol."""
        with self._lock:
            oldest_s = self._line.oldest_s(self._clock())
            held = len(self._held) + len(self._accepted)
            waiting = len(self._line) + len(self._called)
            places = self._limit.places
            return Standing(places, held, waiting, oldest_s, self._took_s)

    # ------------------------------------------------------------ with the lock

    def _give_up_stuck(self, now: float) -> None:
        for held in (self._held, self._accepted):
            stuck = [id_ for id_, place in held.items() if now - place.wrote > STUCK_S]
            for id_ in stuck:
                del held[id_]

    def _enter(self, work: Work, now: float) -> tuple[float, list[Work]]:
        if (place := self._held.get(work.id)) is not None:
            place.verb, place.wrote, place.answered = work.verb, now, None
            return 0.0, []
        if self._called.pop(work.id, None) is not None:
            self._give(work, now)
            return 0.0, []
        waiting = self._line.put(work, now)
        called = self._call(now)
        if self._called.pop(work.id, None) is not None:
            self._give(work, now)
            return 0.0, [each for each in called if each.id != work.id]
        usual_s = _ask_after_s(now - waiting.since)
        opens_s = self._limit.opens_s(now)
        if opens_s > 0 and self._line.first() is waiting:
            self._timed = work.id
            usual_s = min(max(opens_s, SOON_S), usual_s)
        return usual_s, [each for each in called if each.id != work.id]

    def _give(self, work: Work, now: float) -> None:
        self._accepted.pop(work.id, None)
        self._held[work.id] = _Place(work.verb, now)
        self._limit.changed(now)

    def _taken(self) -> tuple[int, int]:
        """Return how many places are taken, and of these, whose write has no answer."""
        unanswered = sum(place.answered is None for place in self._held.values())
        called = len(self._called)
        return len(self._held) + called, unanswered + called

    def _call(self, now: float) -> list[Work]:
        """Return those to be called now; their places are kept.

        If time alone may make room, also the one that is next: it learns when.
        """
        for id_, (_, at) in tuple(self._called.items()):
            if now - at <= COMES_S:
                break
            del self._called[id_]
        called: list[Work] = []
        while first := self._line.first():
            kind = _kind(first.work.verb)
            if self._limit.room(now, *self._taken(), kind) <= 0:
                break
            waiting = self._line.take() or first
            self._called[waiting.work.id] = (waiting.work, now)
            called.append(waiting.work)
        first = self._line.first()
        if first and first.work.id != self._timed and self._limit.opens_s(now) > 0:
            self._timed = first.work.id
            called.append(first.work)  # it gets the time at which to ask
        return called

    def _is_quick(self, verb: Verb) -> bool:
        """Report whether this may be finished sooner than it can be polled."""
        in_a_row = self._quick[verb]
        return in_a_row > 0 and len(self._accepted) < max(ACCEPTED, 2 * in_a_row)

    def _learn(self, place: _Place, lasted_s: float, now: float, held: int) -> None:
        """Note how long the cloud took for an object."""
        if lasted_s <= QUICK_S:
            self._quick[place.verb] += 1
        else:
            del self._quick[place.verb]
        took_s = (place.answered or now) - place.wrote + lasted_s
        self._limit.finished(_kind(place.verb), took_s, now, held)
        former_s = self._took_s or took_s
        self._took_s = former_s + (took_s - former_s) * SHARE


def _kind(verb: Verb) -> str:
    """Return the kind of a whole operation."""
    return f"whole {verb}"


def _ask_after_s(waited_s: float) -> float:
    """Return when to ask again what has waited so long: each time twice as late."""
    next_s = ASK_AGAIN_S
    while next_s <= waited_s + SOON_S:
        next_s *= 2
    return min(next_s - waited_s, LATEST_S)


def _wake(called: list[Work]) -> None:
    """Call without the lock: an object that is called may ask immediately."""
    for work in called:
        work.wake()
