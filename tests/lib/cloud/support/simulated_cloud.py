"""A cloud of some capacity in a simulated time, and a client that fills it.

Each creation needs `service_s` seconds of one of `capacity` servers. Its request is the
first part of that. Sharing: how servers are used; see `Sharing`. Reads are small
requests: with even sharing they take part in it, else they are answered at once.
"""

import dataclasses
import enum
import heapq
import itertools
from collections.abc import Callable

from lib.cloud import steps
from lib.cloud import write_places as vocabulary
from lib.cloud.support import places, poll_times

SERVICE_S = 60.0
REQUEST_S = 0.6
READ_S = 0.3
_TINY = 1e-9


class Sharing(enum.Enum):
    """How a cloud does more than it has capacity for."""

    FIFO = "first come first served"
    """A write is accepted when a server is free for it."""
    EVEN = "shared evenly"


@dataclasses.dataclass(slots=True)
class _Job:
    """Work in the cloud. left_s: of one server. done: called at its end."""

    left_s: float
    done: Callable[[], None]
    is_read: bool


class Cloud:
    """Serves jobs in simulated time; capacity: as (from second, servers)."""

    def __init__(self, sharing: Sharing, capacity: tuple[tuple[float, int], ...]):
        self.now = 0.0
        self._sharing = sharing
        self._capacity = capacity
        self._jobs: list[_Job] = []
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    @property
    def capacity(self) -> int:
        """Servers now."""
        return next(c for at, c in reversed(self._capacity) if at <= self.now + _TINY)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call a function at a time."""
        heapq.heappush(self._timers, (when, next(self._count), call))

    def submit(
        self, seconds: float, done: Callable[[], None], *, is_read: bool = False
    ) -> None:
        """Submit work of so many seconds."""
        self._jobs.append(_Job(seconds, done, is_read))

    def _speeds(self) -> list[float]:
        if self._sharing is Sharing.EVEN:
            speed = min(1.0, self.capacity / max(1, len(self._jobs)))
            return [speed] * len(self._jobs)
        free = self.capacity
        speeds = []
        for job in self._jobs:
            speeds.append(1.0 if job.is_read or free > 0 else 0.0)
            free -= not job.is_read
        return speeds

    def run(self) -> None:
        """Run until nothing is left to happen."""
        while self._jobs or self._timers:
            self._advance()

    def _advance(self) -> None:
        speeds = self._speeds()
        ends = [
            self.now + job.left_s / speed
            for job, speed in zip(self._jobs, speeds, strict=True)
            if speed
        ]
        timers = [self._timers[0][0]] if self._timers else []
        changes = [at for at, _ in self._capacity if at > self.now + _TINY]
        until = min(ends + timers + (changes if self._jobs else []))
        for job, speed in zip(self._jobs, speeds, strict=True):
            job.left_s -= speed * (until - self.now)
        self.now = max(self.now, until)
        ended = [job for job in self._jobs if job.left_s <= _TINY]
        self._jobs = [job for job in self._jobs if job.left_s > _TINY]
        for job in ended:
            job.done()
        while self._timers and self._timers[0][0] <= self.now + _TINY:
            heapq.heappop(self._timers)[2]()


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """What a run took, in service times. calls: reads and writes."""

    first: float
    mean: float
    last: float
    calls: int


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What each object needs: seconds of one server, of these its request."""

    service_s: float = SERVICE_S

    @property
    def request_s(self) -> float:
        return min(REQUEST_S, self.service_s / 10)

    @property
    def read_s(self) -> float:
        return min(READ_S, self.service_s / 30)


class Client:
    """Creates objects: by places, or with a fixed number in progress."""

    hand_over_s = 0.02

    def __init__(
        self,
        cloud: Cloud,
        count: int,
        fixed: int | None = None,
        work: Work = Work(),  # noqa: B008 # frozen
    ) -> None:
        self._cloud = cloud
        self._fixed = fixed
        self._work = work
        self.asks = self.wakes = 0
        self.places = places.AdaptivePlaces(lambda: cloud.now)
        self._waiting = [f"object {number}" for number in range(count)]
        self._left_s: dict[str, float] = {}
        self._begun: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._polled: dict[str, float] = {}
        self._ready: set[str] = set()
        self.addresses: list[float] = []
        self.calls = 0
        self._poll_at: float | None = None
        self._durations = poll_times.Durations()

    def run(self) -> Run:
        """Observe once, then create all; return what it took."""
        self._read(self._go_on)
        self._cloud.run()
        unit = self._work.service_s
        mean = sum(self.addresses) / len(self.addresses)
        first, last = min(self.addresses), max(self.addresses)
        return Run(first / unit, mean / unit, last / unit, self.calls)

    def _read(self, then: Callable[[], None]) -> None:
        began = self._cloud.now
        self.calls += 1
        ready: set[str] = set(self._ready)

        def done() -> None:
            self.places.measured("list", self._cloud.now - began)
            self._note(ready, began)
            then()

        self._cloud.submit(self._work.read_s, done, is_read=True)

    def _note(self, ready: set[str], began: float) -> None:
        for name in sorted(ready & self._begun.keys()):
            self.addresses.append(self._cloud.now)
            del self._begun[name]
            lasted_s = self._cloud.now - self._answered.pop(name)
            self._durations.ended("create", lasted_s, self._polled.pop(name, None))
            self.places.finished(name, lasted_s)
        for name, answered in self._answered.items():
            if answered <= began:
                self._polled[name] = began - answered

    def _go_on(self) -> None:
        for name in tuple(self._waiting):
            self._ask(name)
        self._poll()

    def _ask(self, name: str) -> None:
        if name not in self._waiting:
            return
        self.asks += 1
        if self._fixed is not None:
            wait_s = 0.0 if len(self._begun) < self._fixed else None
        else:
            work = vocabulary.Work(
                name, "", steps.Verb.CREATE, lambda: self._woken(name)
            )
            wait_s = self.places.enter(work)
        if wait_s == 0.0:
            self._create(name)
        elif wait_s is not None:
            self._cloud.at(self._cloud.now + wait_s, lambda: self._ask(name))

    def _woken(self, name: str) -> None:
        self.wakes += 1
        self._cloud.at(self._cloud.now + self.hand_over_s, lambda: self._ask(name))

    def _create(self, name: str) -> None:
        began = self._cloud.now
        self._waiting.remove(name)
        self._begun[name] = began
        self.calls += 1

        def answered() -> None:
            self.places.measured("create", self._cloud.now - began)
            self.places.answered(name)
            self._answered[name] = self._cloud.now
            rest = self._work.service_s - self._work.request_s
            self._cloud.submit(rest, lambda: self._end(name))
            self._poll()

        self._cloud.submit(self._work.request_s, answered)

    def _end(self, name: str) -> None:
        self._ready.add(name)

    def _poll(self) -> None:
        """Read for all that wait, when it is due for one of them."""
        if not self._answered:
            return
        now = self._cloud.now
        expected_s = self._durations.expected_s("create")
        at = now + min(
            poll_times.after_s(now - answered, expected_s)
            for answered in self._answered.values()
        )
        if self.places.lacks_answer():
            at = now
        if self._poll_at is not None and self._poll_at <= at:
            return
        self._poll_at = at
        self._cloud.at(at, lambda: self._read_at(at))

    def _read_at(self, at: float) -> None:
        if self._poll_at == at:
            self._poll_at = None
            self._read(self._go_on if self._fixed is not None else self._poll)
