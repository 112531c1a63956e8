"""How fast Nodes may be deleted: a limit for when the cloud answers wrongly.

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


UNHEALTHY_PERCENT = 55
"""Where more Nodes are absent than this, no absence is credible.

Source: kube-controller-manager, --unhealthy-zone-threshold, default 0.55."""


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
    """The Nodes of a cluster, and those of them that are absent from the cloud.

    nodes: number of the present ones and of those that went within the window. went:
    number of those that went within the window. pending: by the uid of each Node whose
    absence is pending now, in this batch or an earlier one, the number of Nodes that
    have been absent for longer; without those that a human has confirmed. is_young: the
    process has not followed the Nodes for a whole window yet.
    """

    nodes: int = 0
    went: int = 0
    pending: Mapping[str, int] = dataclasses.field(default_factory=dict)
    is_young: bool = False
    is_elsewhere: bool = False


def holds_back(crowd: Crowd, limit: Limit, uid: str) -> bool:
    """Report whether the deletion of a Node has to wait.

    While the cloud is credible, the oldest absences go as fast as the limit allows.
    Where most Nodes seem absent, or no instance was ever observed, it is not credible:
    none goes.
    """
    if crowd.is_elsewhere:
        return True
    absent = crowd.went + len(crowd.pending)
    if absent > max(limit.count, crowd.nodes * UNHEALTHY_PERCENT // 100):
        return True
    share = 0 if crowd.is_young else crowd.nodes * limit.percent // 100
    room = max(limit.count, share) - crowd.went
    return crowd.pending.get(uid, 0) >= room


class Deletions:
    """Which Nodes went, and which are missing; by uid.

    Safe to use from several threads: each step is one operation on a dictionary.
    clock: monotonic seconds.
    """

    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._began: float | None = None
        self._gone: dict[str, float] = {}
        self._missing: dict[str, float] = {}  # uid -> since when
        self._told: dict[str, float] = {}
        self._held_back: frozenset[str] = frozenset()

    @property
    def held_back(self) -> int:
        """How many Nodes are held back, by the last count, and still missing."""
        return len(self._held_back & self._missing.copy().keys())

    def begin(self) -> None:
        """Begin to count: the Nodes are watched from now on. Repeatable."""
        if self._began is None:
            self._began = self._clock()

    def missing(self, uid: str) -> None:
        """Note that a Node's instance is not in the cloud."""
        self._missing.setdefault(uid, self._clock())

    def back(self, uid: str) -> None:
        """Note that a Node is well again, or its instance there."""
        self._missing.pop(uid, None)
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
        """Report whether that was lately."""
        told = self._told.get(uid)
        return told is not None and self._clock() - told < TELL_EVERY_S

    def crowd(
        self,
        is_exempt: Mapping[str, bool],
        are_observed: Callable[[], bool] = lambda: True,
    ) -> Crowd:
        """Count. is_exempt: by uid, all Nodes there are; True: it is not to be counted.

        That is one that a human has confirmed, or that is Ready. are_observed: whether
        instances of the cluster were observed in this cloud; asked when a Node would
        go.
        """
        went = self._went()
        missing = self._missing.copy()
        pending = [
            uid
            for uid in sorted(missing, key=lambda uid: (missing[uid], uid))
            if is_exempt.get(uid) is False and uid not in went
        ]
        began = self._began
        crowd = Crowd(
            nodes=len(is_exempt.keys() | went),
            went=len(went),
            pending={uid: ahead for ahead, uid in enumerate(pending)},
            is_young=began is None or self._clock() - began < self._limit.window_s,
        )
        if self._held(crowd) != crowd.pending.keys() and not are_observed():
            crowd = dataclasses.replace(crowd, is_elsewhere=True)
        self._held_back = self._held(crowd)
        return crowd

    def _held(self, crowd: Crowd) -> frozenset[str]:
        return frozenset(
            uid for uid in crowd.pending if holds_back(crowd, self._limit, uid)
        )

    def _went(self) -> Set[str]:
        since = self._clock() - self._limit.window_s
        for uid, at in self._gone.copy().items():
            if at <= since:
                self._gone.pop(uid, None)
        return frozenset(self._gone.copy())
