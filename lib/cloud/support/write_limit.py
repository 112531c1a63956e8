"""How many objects of one service of a cloud may be in progress: pure, no thread.

A place is one object in progress: from its first write until the cloud has finished
with it. The number of places follows how long the cloud takes, compared with the least
that was measured for the same kind of request or operation:

- Slow start: each answer near its least adds a place, so the number doubles while
  as many requests are answered as there are places.
- Once it has shrunk it doubles up to half of where that was, then grows by one per
  round of answers; a whole round without a slow answer ends the caution.
- It shrinks by the ratio of the least to what is measured, and by half at most; at a
  time-out, 429 or 503 by half immediately. Answers to what was sent before a decrease
  do not decrease it again.

Source: slow start and congestion avoidance of RFC 5681; the gradient of Envoy's
adaptive concurrency filter and of Netflix' concurrency-limits. Decision 220.
"""

import dataclasses
import enum

START = 2
MOST = 1000
"""Places at the beginning, and at most."""
GROWS_BELOW = 1.15
"""How much longer than the least is still near it: one object more takes each of three
others a third longer on a cloud that shares its capacity evenly."""
SHRINKS_ABOVE = 1.6
OPERATION_SHRINKS_ABOVE = 2.0
"""Objects differ in size, so their operations differ more than requests do."""
NEAR_SLACK_S, SLOW_SLACK_S = 0.1, 0.5
"""Up to how many seconds longer than the least is near it, and is not slow: noise."""
POLL_S = 1.0
"""The end of an operation is observed as late as this."""
IN_A_ROW = 2
"""One slow answer alone may be an accident."""
LEAST_FALLS = 0.7
"""What a single measurement leaves of the least: it may be an accident as well."""
ALONE_SHARE = 0.3
"""Share by which the least follows a measurement with nothing in progress."""
LEAST_PART = 0.75
OVERLOADED_PART = 0.5
"""Share that is kept after one decrease, at least; and after a time-out, 429, 503."""
FLOOR_SHARE = 0.01
"""With one place left nothing can be faster: what is measured then moves the least by
this share. The limit of a cloud that has become slower for good grows again so."""
FEW = 3
"""Below this number one more is a great part: each waits for a good answer first."""
QUICK_S, QUICK_PLACES = 5.0, 16
"""What a cloud does alone in less than this gets 16 places at least, twice as many as
there are workers: the seconds to gain by fewer are less than those that are lost
between an end and its poll."""
LONG_S = 40.0
"""What takes longer is quick no more: as long as eight that share a server take."""
SILENT_S = 2.0
"""Time without it, if nothing of a known kind is answered at all."""
BURST_SHARE = 1
"""One in this number of objects in progress may be without an answer to its write."""


class Verdict(enum.Enum):
    """What a duration shows."""

    NEW = "new"
    """The first of its kind."""
    NEAR = "near"
    BETWEEN = "between"
    SLOW = "slow"


@dataclasses.dataclass(slots=True)
class WriteLimit:
    """The limit of one service. Times are seconds of one monotonic clock.

    start: places that are given before anything is measured. most: places at most.
    size: places now. ceiling: half of where it shrank last; slow start ends there.
    quick: kinds of operations that end in less than QUICK_S; see there.
    paused_until: the service has asked for a pause. shrunk_at: the last decrease.
    entered_at: when the last place was given. answer: of what was sent since then.
    """

    start: int = START
    most: int = MOST
    size: float = dataclasses.field(init=False)
    ceiling: float = dataclasses.field(init=False)
    paused_until: float = float("-inf")
    shrunk_at: float = float("-inf")
    entered_at: float = float("-inf")
    answer: Verdict | None = None
    slow_in_a_row: int = 0
    near_in_a_row: int = 0
    least_s: dict[str, float] = dataclasses.field(default_factory=dict)
    quick: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.start = min(self.start, self.most)
        self.size = self.start
        self.ceiling = self.most

    @property
    def places(self) -> int:
        """The number of objects that may be in progress."""
        return int(self.size)

    def room(self, at: float, held: int, unanswered: int, kind: str = "") -> int:
        """Return how many more objects may begin now.

        held: objects in progress. unanswered: of these, whose write has no answer.
        kind: of the operation that is next; see `finished`.
        """
        if at < self.paused_until:
            return 0
        if kind in self.quick:
            return max(self.places, min(QUICK_PLACES, self.most)) - held
        left = self.places - held
        if held < self.start and self.start > START:
            return min(left, self.start - held)  # the user has asked for that many
        if held >= FEW:
            return min(left, max(1, held // BURST_SHARE) - unanswered)
        if held > 0 and (unanswered > 0 or not self._has_answered(at)):
            return 0
        return min(left, 1)

    def lacks_answer(self, held: int, unanswered: int) -> bool:
        """Report whether a read would show if there is room for one more."""
        is_few = 0 < held < min(FEW, self.places) and not unanswered
        return is_few and self.answer is None

    def _has_answered(self, at: float) -> bool:
        if self.answer is None:
            return at >= self.entered_at + SILENT_S
        return self.answer in (Verdict.NEW, Verdict.NEAR)

    def opens_s(self, at: float) -> float:
        """Return in how many seconds there may be room without any answer.

        0: only an answer, or the end of an operation, makes room.
        """
        if at < self.paused_until:
            return self.paused_until - at
        is_silent = self.answer is None and at < self.entered_at + SILENT_S
        return self.entered_at + SILENT_S - at if is_silent else 0.0

    def changed(self, at: float) -> None:
        """Note that a place was given, or that the write of its holder is answered.

        What is asked for from now on shows what the cloud does with that one.
        """
        self.entered_at, self.answer = at, None

    def answered(self, kind: str, seconds: float, at: float, held: int) -> None:
        """Note the duration of a request. held: objects in progress during it."""
        least_s = self.least_s.get(kind)
        verdict = _judge(seconds, least_s, SHRINKS_ABOVE, NEAR_SLACK_S, SLOW_SLACK_S)
        self._note(kind, seconds, at, held, verdict)

    def finished(self, kind: str, seconds: float, at: float, held: int) -> None:
        """Note the duration of a whole operation; its own place counts as held."""
        least_s = self.least_s.get(kind)
        limit = OPERATION_SHRINKS_ABOVE
        verdict = _judge(seconds, least_s, limit, POLL_S, 2 * POLL_S)
        self._note(kind, seconds, at, held, verdict)
        if seconds <= QUICK_S:
            self.quick.add(kind)
        elif seconds > LONG_S:
            self.quick.discard(kind)

    def overloaded(
        self, seconds: float, at: float, retry_after_s: float | None = None
    ) -> None:
        """Note a time-out, or that the service is too busy. seconds: of the request."""
        self.quick.clear()
        if retry_after_s is not None:
            self.paused_until = max(self.paused_until, at + retry_after_s)
        if at - seconds >= self.shrunk_at:
            self._shrink(OVERLOADED_PART, at, self.size)

    def _note(
        self, kind: str, seconds: float, at: float, held: int, verdict: Verdict
    ) -> None:
        least_s = self.least_s.get(kind)
        self._learn(kind, seconds, least_s, held)
        began = at - seconds
        if began < self.shrunk_at:
            return
        if began >= self.entered_at or verdict is Verdict.SLOW:
            self.answer = verdict
        if verdict is not Verdict.SLOW:
            self.slow_in_a_row = 0
        if verdict is Verdict.NEAR:
            self._grow(held)
        elif verdict is Verdict.SLOW and least_s is not None:
            self.slow_in_a_row, self.near_in_a_row = self.slow_in_a_row + 1, 0
            if self.slow_in_a_row >= IN_A_ROW:
                part = max(LEAST_PART, least_s * GROWS_BELOW / seconds)
                self._shrink(part, at, min(self.size, held))

    def _learn(
        self, kind: str, seconds: float, least_s: float | None, held: int
    ) -> None:
        if least_s is None:
            self.least_s[kind] = seconds
        elif seconds <= least_s:
            self.least_s[kind] = max(seconds, least_s * LEAST_FALLS)
        elif held == 0:
            self.least_s[kind] = least_s + (seconds - least_s) * ALONE_SHARE
        elif self.places == 1 and held == 1:
            self.least_s[kind] = least_s + (seconds - least_s) * FLOOR_SHARE

    def _grow(self, held: int) -> None:
        """Add places, unless those there are were not in use."""
        if held < self.places - max(1, held // BURST_SHARE):
            return
        self.near_in_a_row += 1
        if self.near_in_a_row >= self.places:
            self.ceiling = self.most
        step = 1.0 if self.size < self.ceiling else 1.0 / self.size
        self.size = min(self.most, self.size + step)

    def _shrink(self, part: float, at: float, base: float) -> None:
        self.size = max(1.0, base * part)
        self.ceiling = max(START, base / 2)
        self.shrunk_at, self.slow_in_a_row, self.near_in_a_row = at, 0, 0


def _judge(
    seconds: float, least_s: float | None, limit: float, near_s: float, slow_s: float
) -> Verdict:
    if least_s is None:
        return Verdict.NEW
    if seconds <= max(least_s * GROWS_BELOW, least_s + near_s):
        return Verdict.NEAR
    is_slow = seconds > max(least_s * limit, least_s + slow_s)
    return Verdict.SLOW if is_slow else Verdict.BETWEEN
