"""The one place where callers wait: reads of volumes, shared by all who want one.

Rules: one read runs at a time; whoever comes meanwhile shares the next one. A reading
counts for a caller only if it began after the caller's last write. A thread of one of
the callers does the read for all; there is none of its own. What a list shows besides
wakes others early and costs nothing.
"""

import dataclasses
import threading
from collections.abc import Callable

from lib.cloud.volumes import ByName, Found, Reading, Ref, Volumes
from lib.volumes import calls, facts

TOGETHER_S = 0.5
"""Looks that are due so soon are taken along with one that is due now."""


@dataclasses.dataclass(eq=False, slots=True)
class _Ticket:
    """One caller's wish to see. floor: readings from before it do not count."""

    refs: tuple[Ref, ...]
    floor: float
    due: float
    found: tuple[Found, ...] | None = None

    def counts(self, began: float) -> bool:
        """Tell whether a reading that began then may answer it."""
        return self.found is None and self.floor <= began

    def is_due(self, now: float) -> bool:
        """Tell whether it is to be read now, or soon enough to be taken along."""
        return self.due <= now + TOGETHER_S


class Reader:
    """Shares reads among callers. Safe for many threads."""

    def __init__(
        self,
        cloud: Callable[[], Volumes],
        known: facts.Facts,
        effects: calls.Effects,
    ) -> None:
        """cloud: gives the one to ask now. known: told of everything that is seen."""
        self._cloud = cloud
        self._known = known
        self._effects = effects
        self._changed = threading.Condition()
        self._tickets: list[_Ticket] = []
        self._is_reading = False

    def read(
        self, refs: tuple[Ref, ...], floor: float, due: float, call: calls.Call
    ) -> tuple[Found, ...]:
        """Wait until a time, then see the refs as they are then, or earlier for free.

        Gives one answer for each ref, in order; without refs it only waits.

        floor, due: in the time of the clock; the former is the end of the caller's
        last write, or its beginning.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED.
        """
        ticket = _Ticket(refs, floor, max(floor, due))
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

    def _step(self, ticket: _Ticket, call: calls.Call) -> None:
        """Lead the read when this one is due and nobody else does; else wait."""
        call.check(self._effects)
        if self._is_reading and ticket.refs:
            call.wait(self._changed, call.deadline, self._effects)
        elif ticket.due > self._effects.clock():
            call.wait(self._changed, ticket.due, self._effects)
        elif not ticket.refs:
            ticket.found = ()
        else:
            self._lead()

    def _lead(self) -> None:
        """Read for all; should it break, the others lead for themselves."""
        began = self._effects.clock()
        due = [t for t in self._tickets if t.counts(began) and t.is_due(began)]
        refs = tuple(dict.fromkeys(ref for ticket in due for ref in ticket.refs))
        self._is_reading = True
        self._changed.release()
        try:
            reading = self._cloud().observe(refs)
            self._known.learn(refs, reading, began)
        finally:
            self._changed.acquire()
            self._is_reading = False
            self._changed.notify_all()
        for ticket in self._tickets:
            if ticket.refs and ticket.counts(began):
                found = [_found(ref, reading) for ref in ticket.refs]
                known = tuple(one for one in found if one is not None)
                ticket.found = known if len(known) == len(found) else None


def _found(ref: Ref, reading: Reading) -> Found | None:
    """Say what a reading shows of a ref, perhaps one that was not asked for."""
    if ref in reading.found:
        return reading.found[ref]
    seen = reading.listing or ()
    if isinstance(ref, ByName):
        # Not seen is not told apart from not read here: only what is there counts.
        return tuple(one for one in seen if one.name == ref.name) or None
    return tuple(one for one in seen if one.id == ref.id) or None
