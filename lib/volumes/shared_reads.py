"""Shared reads of volumes; the only place where callers wait.

Rules: one read runs at a time; callers that arrive during it share the next one. While
a read hangs, up to two more begin beside it. A reading answers a caller only if it
began after the caller's last write. The thread of one caller reads for all of them,
within that caller's deadline; no thread exists for this. Further volumes in a list wake
other callers early, and so do changes that the cloud reports.
"""

import dataclasses
import math
import threading
from collections.abc import Callable

from lib.cloud.model import Unknown
from lib.cloud.volumes import ById, ByName, Found, Ref, Volumes, VolumesReading
from lib.volumes import cache, callers

TOGETHER_S = 0.5
"""Reads that are due within this time join a read that is due now."""
HUNG_S = 2.0
"""Another read begins beside a read that takes longer."""
MAX_PARALLEL = 3
"""Maximum number of parallel reads."""


@dataclasses.dataclass(eq=False, slots=True)
class _Ticket:
    """Read request of one caller. not_before: earlier readings do not answer it."""

    refs: tuple[Ref, ...]
    not_before: float
    due: float
    answers: tuple[Found, ...] | None = None

    def may_use(self, began: float) -> bool:
        """Report whether a reading that began then may answer it."""
        return self.answers is None and self.not_before <= began

    def concerns(self, volume: str) -> bool:
        """Report whether it reads the volume with this ID or name."""
        keys = (ref.id if isinstance(ref, ById) else ref.name for ref in self.refs)
        return volume in keys

    def is_due(self, now: float) -> bool:
        """Report whether it is due now, or soon enough to join a read."""
        return self.due <= now + TOGETHER_S


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """A read that is running."""

    refs: frozenset[Ref]
    began: float


class VolumesReader:
    """Shares reads among callers. Safe for many threads."""

    def __init__(
        self,
        cloud: Callable[[], Volumes],
        known: cache.Cache,
        effects: callers.CallEffects,
    ) -> None:
        """cloud: returns the current cloud. known: the cache that readings update."""
        self._cloud = cloud
        self._known = known
        self._effects = effects
        self._changed = threading.Condition()
        self._tickets: list[_Ticket] = []
        self._running: list[_Read] = []

    def read(
        self, refs: tuple[Ref, ...], not_before: float, due: float, call: callers.Caller
    ) -> tuple[Found, ...]:
        """Read the refs at `due`, or earlier with the read of another caller.

        Returns one answer for each ref, in order; without refs it only waits.

        not_before, due: in the time of the clock; the former is the end of the caller's
        last write, or the beginning of the call.

        Raises:
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
        """
        ticket = _Ticket(refs, not_before, max(not_before, due))
        with self._changed:
            self._tickets.append(ticket)
            try:
                while ticket.answers is None:
                    self._step(ticket, call)
                return ticket.answers
            finally:
                self._tickets.remove(ticket)
                # Another caller may have to lead now.
                self._changed.notify_all()

    def wake(self, volume: str) -> None:
        """Have its callers read a volume now: it may have changed. volume: ID or name.

        Others keep their pauses: what is busy is not retried for another's change.
        """
        with self._changed:
            woken = [ticket for ticket in self._tickets if ticket.concerns(volume)]
            for ticket in woken:
                ticket.due = ticket.not_before
            if woken:
                self._changed.notify_all()

    def _step(self, ticket: _Ticket, call: callers.Caller) -> None:
        """Lead a read when this ticket is due and none is running; else wait."""
        call.check(self._effects)
        now = self._effects.clock()
        may_begin = self._may_begin() if ticket.refs else now
        if max(ticket.due, may_begin) > now:
            until = max(ticket.due, min(may_begin, call.deadline))
            call.wait(self._changed, until, self._effects)
        elif not ticket.refs:
            ticket.answers = ()
        else:
            self._lead(ticket, call.deadline - now)

    def _may_begin(self) -> float:
        """Return when the next read may begin, unless one ends before."""
        if not self._running:
            return -math.inf
        if len(self._running) >= MAX_PARALLEL:
            return math.inf
        return self._running[-1].began + HUNG_S

    def _lead(self, leader: _Ticket, within_s: float) -> None:
        """Read for all; when it fails, the other callers read on their own."""
        began = self._effects.clock()
        refs = self._refs(leader, began)
        running = _Read(frozenset(refs), began)
        self._running.append(running)
        self._changed.release()
        try:
            reading = self._cloud().observe(refs, within_s)
            self._known.learn(refs, reading, began)
        finally:
            self._changed.acquire()
            self._running.remove(running)
            self._changed.notify_all()
        # A time-out at the leader's deadline is no answer to callers with more time.
        is_cut = self._effects.clock() - began >= within_s
        for ticket in self._tickets:
            if ticket.refs and ticket.may_use(began):
                answers = [_answer(ref, reading) for ref in ticket.refs]
                known = tuple(answer for answer in answers if answer is not None)
                is_failure = any(isinstance(answer, Unknown) for answer in known)
                if len(known) == len(answers) and not (
                    is_cut and is_failure and ticket is not leader
                ):
                    ticket.answers = known

    def _refs(self, leader: _Ticket, began: float) -> tuple[Ref, ...]:
        """Return the refs of all due tickets, without those being read."""
        due = [t for t in self._tickets if t.may_use(began) and t.is_due(began)]
        running = frozenset(ref for read in self._running for ref in read.refs)
        others = (ref for ticket in due for ref in ticket.refs if ref not in running)
        return tuple(dict.fromkeys((*leader.refs, *others)))


def _answer(ref: Ref, reading: VolumesReading) -> Found | None:
    """Return the answer of a reading for a ref, also for one that was not requested."""
    if ref in reading.by_ref:
        return reading.by_ref[ref]
    listed = reading.listing or ()
    if isinstance(ref, ByName):
        # Absent and not read look the same here: only existing volumes are an answer.
        return tuple(volume for volume in listed if volume.name == ref.name) or None
    return tuple(v for v in listed if v.id == ref.id and not ref.lacks(v)) or None
