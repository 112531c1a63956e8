"""Objects that wait for a place, in the order in which they get one.

Rules: pure, no thread, no time. What was begun before comes first; then deletions,
changes and creations take turns, within each of these the namespaces, and within a
namespace the longest wait counts. Every call takes the same time, however many wait.
"""

import collections
import dataclasses

from lib.cloud.steps import Verb
from lib.cloud.write_places import Work


@dataclasses.dataclass(slots=True)
class InLine:
    """since: when the object asked first."""

    work: Work
    since: float


_Ids = collections.OrderedDict[str, InLine]
_Groups = collections.OrderedDict[str, _Ids]


class _Turns:
    """Verbs that take turns, and in each of them groups that do."""

    def __init__(self) -> None:
        self._verbs: collections.OrderedDict[Verb, _Groups] = collections.OrderedDict()

    def put(self, waiting: InLine) -> None:
        work = waiting.work
        groups = self._verbs.setdefault(work.verb, collections.OrderedDict())
        ids = groups.setdefault(work.group, collections.OrderedDict())
        ids[work.id] = waiting

    def drop(self, work: Work) -> None:
        groups = self._verbs[work.verb]
        ids = groups[work.group]
        del ids[work.id]
        if not ids:
            del groups[work.group]
        if not groups:
            del self._verbs[work.verb]

    def first(self) -> InLine | None:
        for groups in self._verbs.values():
            ids = next(iter(groups.values()))
            return next(iter(ids.values()))
        return None

    def pass_turn(self, work: Work) -> None:
        """Move its verb and its group behind the others."""
        groups = self._verbs.get(work.verb)
        if groups is None:
            return
        self._verbs.move_to_end(work.verb)
        if work.group in groups:
            groups.move_to_end(work.group)


class Line:
    """All that wait for a place of one service."""

    def __init__(self) -> None:
        self._all: dict[str, InLine] = {}
        self._turns = {True: _Turns(), False: _Turns()}  # by whether it was begun

    def __len__(self) -> int:
        return len(self._all)

    def get(self, id_: str) -> InLine | None:
        """Return how an object waits; None: it does not."""
        return self._all.get(id_)

    def put(self, work: Work, now: float) -> InLine:
        """Add an object; one that waits already keeps its position, or follows it."""
        waiting = self._all.get(work.id)
        if waiting is None:
            waiting = self._all[work.id] = InLine(work, now)
            self._turns[work.has_begun].put(waiting)
        elif _position(waiting.work) != _position(work):
            self._turns[waiting.work.has_begun].drop(waiting.work)
            waiting.work = work
            self._turns[work.has_begun].put(waiting)
        waiting.work = work
        return waiting

    def drop(self, id_: str) -> bool:
        """Remove an object; return whether it was there."""
        waiting = self._all.pop(id_, None)
        if waiting is None:
            return False
        self._turns[waiting.work.has_begun].drop(waiting.work)
        return True

    def first(self) -> InLine | None:
        """Return the object that is next."""
        return self._turns[True].first() or self._turns[False].first()

    def take(self) -> InLine | None:
        """Remove the object that is next, and return it."""
        waiting = self.first()
        if waiting is not None:
            self.drop(waiting.work.id)
            self._turns[waiting.work.has_begun].pass_turn(waiting.work)
        return waiting

    def oldest_s(self, now: float) -> float:
        """Return for how long the longest has waited."""
        return max((now - each.since for each in self._all.values()), default=0.0)


def _position(work: Work) -> tuple[bool, Verb, str]:
    return work.has_begun, work.verb, work.group
