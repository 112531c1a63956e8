"""How many Nodes may go at once: a brake for when the cloud's word can't be true.

Rules: the memory may be thrown away, and a process without it allows less, not more: as
long as it has not followed the Nodes for one window, the share does not count, only the
number. A standby follows them too, so a fail-over to it is no way around the limit.
"""

import dataclasses
from collections.abc import Callable, Mapping, Set

CONFIRM_ANNOTATION = "mooring.io/confirm-deletion"
"""On a Node, with any value: a human says that it may go, whatever the limit."""
TELL_EVERY_S = 60.0
"""A Node that is held back is told so this often; the Event is counted up."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """How many Nodes may be deleted in any window: the larger of both counts.

    window_s: its length. count: a number of Nodes. percent: of all Nodes.
    """

    window_s: float = 600.0
    count: int = 3
    percent: int = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Crowd:
    """How many Nodes there are, and how many of them are going.

    nodes: those there now, and those that went within the window. going: those that
    went within the window, and all whose absence is pending now, in this batch or an
    earlier one; without those a human has confirmed. is_young: what went before is not
    known for the whole window.
    """

    nodes: int = 0
    going: int = 0
    is_young: bool = False


def holds_back(crowd: Crowd, limit: Limit) -> bool:
    """Say whether more Nodes are going than may; then none goes."""
    share = 0 if crowd.is_young else crowd.nodes * limit.percent // 100
    return crowd.going > max(limit.count, share)


class Memory:
    """Which Nodes went, and which are missing; by uid.

    Safe to use from several threads: each step is one operation on a dictionary.
    clock: monotonic seconds.
    """

    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._began: float | None = None
        self._gone: dict[str, float] = {}
        self._missing: set[str] = set()
        self._told: dict[str, float] = {}
        self._held_back: frozenset[str] = frozenset()

    @property
    def held_back(self) -> int:
        """How many Nodes are held back, by the last count, and still missing."""
        return len(self._held_back & self._missing.copy())

    def begin(self) -> None:
        """Say that the Nodes are followed from now on; again means nothing."""
        if self._began is None:
            self._began = self._clock()

    def missing(self, uid: str) -> None:
        """Note that a Node's instance is not in the cloud."""
        self._missing.add(uid)

    def back(self, uid: str) -> None:
        """Note that a Node is well again, or its instance there."""
        self._missing.discard(uid)
        self._told.pop(uid, None)

    def goes(self, uid: str) -> None:
        """Note that a Node goes now; before it does, as the answer may be lost."""
        self._gone[uid] = self._clock()

    def went(self, uid: str) -> None:
        """Note that a Node is no more; whoever deleted it, maybe our predecessor."""
        self._gone.setdefault(uid, self._clock())

    def tell(self, uid: str) -> None:
        """Note that a Node has been told that it is held back."""
        self._told[uid] = self._clock()

    def was_told(self, uid: str) -> bool:
        """Say whether that was lately."""
        told = self._told.get(uid)
        return told is not None and self._clock() - told < TELL_EVERY_S

    def crowd(self, is_exempt: Mapping[str, bool]) -> Crowd:
        """Count. is_exempt: by uid, all Nodes there are; True: it is not to be counted.

        That is one that a human has confirmed, or that is Ready.
        """
        went = self._went()
        pending = {uid for uid in self._missing.copy() if is_exempt.get(uid) is False}
        began = self._began
        crowd = Crowd(
            nodes=len(is_exempt.keys() | went),
            going=len(pending | went),
            is_young=began is None or self._clock() - began < self._limit.window_s,
        )
        is_over = holds_back(crowd, self._limit)
        self._held_back = frozenset(pending if is_over else ())
        return crowd

    def _went(self) -> Set[str]:
        since = self._clock() - self._limit.window_s
        for uid, at in self._gone.copy().items():
            if at <= since:
                self._gone.pop(uid, None)
        return frozenset(self._gone.copy())
