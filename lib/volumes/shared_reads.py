"""The one place where callers wait: reads of volumes, shared by all who want one.

Rules: one read runs at a time; callers that come meanwhile share the next one. While a
read hangs, up to two more begin beside it. A reading counts for a caller only if it
began after the caller's last write. A thread of one of the callers does the read for
all, within that caller's time; there is none of its own. What a list shows besides
wakes others early and costs nothing.
"""

import dataclasses
import math
import threading
from collections.abc import Callable

from lib.cloud.model import Unknown
from lib.cloud.volumes import ByName, Found, Ref, Volumes, VolumesReading
from lib.volumes import cache, callers

TOGETHER_S = 0.5
"""Looks that are due so soon are taken along with one that is due now."""
HUNG_S = 2.0
"""Another read begins beside one that has lasted longer."""
AT_ONCE = 3
"""Reads that run at the same time, at most."""


@dataclasses.dataclass(eq=False, slots=True)
class _Ticket:
    """One caller's wish to see. not_before: readings from before it do not count."""

    refs: tuple[Ref, ...]
    not_before: float
    due: float
    found: tuple[Found, ...] | None = None

    def counts(self, began: float) -> bool:
        """Report whether a reading that began then may answer it."""
        return self.found is None and self.not_before <= began

    def is_due(self, now: float) -> bool:
        """Report whether it is to be read now, or soon enough to be taken along."""
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
        """cloud: gives the one to ask now. known: told of everything that is seen."""
        self._cloud = cloud
        self._known = known
        self._effects = effects
        self._changed = threading.Condition()
        self._tickets: list[_Ticket] = []
        self._running: list[_Read] = []

    def read(
        self, refs: tuple[Ref, ...], not_before: float, due: float, call: callers.Caller
    ) -> tuple[Found, ...]:
        """Wait until a time, then see the refs as they are then, or earlier for free.

        Gives one answer for each ref, in order; without refs it only waits.

        not_before, due: in the time of the clock; the former is the end of the caller's
        last write, or its beginning.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED.
        """
        ticket = _Ticket(refs, not_before, max(not_before, due))
        with self._changed:
            self._tickets.append(ticket)
            try:
                while ticket.found is None:
                    self._step(ticket, call)
                return ticket.found
            finally:
                self._tickets.remove(ticket)
                # Somebody else may have to lead now.
                self._changed.notify_all()

    def _step(self, ticket: _Ticket, call: callers.Caller) -> None:
        """Lead a read when this one is due and none is running; else wait."""
        call.check(self._effects)
        now = self._effects.clock()
        may_begin = self._may_begin() if ticket.refs else now
        if max(ticket.due, may_begin) > now:
            until = max(ticket.due, min(may_begin, call.deadline))
            call.wait(self._changed, until, self._effects)
        elif not ticket.refs:
            ticket.found = ()
        else:
            self._lead(ticket, call.deadline - now)

    def _may_begin(self) -> float:
        """Return when the next read may begin, unless one ends before."""
        if not self._running:
            return -math.inf
        if len(self._running) >= AT_ONCE:
            return math.inf
        return self._running[-1].began + HUNG_S

    def _lead(self, leader: _Ticket, within_s: float) -> None:
        """Read for all; should it break, the others lead for themselves."""
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
        # A failure for lack of the leader's time says nothing to callers with more.
        is_cut = self._effects.clock() - began >= within_s
        for ticket in self._tickets:
            if ticket.refs and ticket.counts(began):
                answers = [_found(ref, reading) for ref in ticket.refs]
                known = tuple(answer for answer in answers if answer is not None)
                is_failure = any(isinstance(answer, Unknown) for answer in known)
                if len(known) == len(answers) and not (
                    is_cut and is_failure and ticket is not leader
                ):
                    ticket.found = known

    def _refs(self, leader: _Ticket, began: float) -> tuple[Ref, ...]:
        """Return what to read: for all who are due, but what is being read."""
        due = [t for t in self._tickets if t.counts(began) and t.is_due(began)]
        running = frozenset(ref for read in self._running for ref in read.refs)
        others = (ref for ticket in due for ref in ticket.refs if ref not in running)
        return tuple(dict.fromkeys((*leader.refs, *others)))


def _found(ref: Ref, reading: VolumesReading) -> Found | None:
    """Return what a reading shows of a ref, perhaps one that was not asked for."""
    if ref in reading.found:
        return reading.found[ref]
    listed = reading.listing or ()
    if isinstance(ref, ByName):
        # Not seen is not told apart from not read here: only what is there counts.
        return tuple(one for one in listed if one.name == ref.name) or None
    if ref.in_full:
        # A list lacks the unfinished attachments of volumes that may be shared.
        listed = tuple(volume for volume in listed if not volume.is_shareable)
    return tuple(one for one in listed if one.id == ref.id) or None
