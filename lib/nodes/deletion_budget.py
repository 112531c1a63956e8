"""Deletion budget: limits the rate of Node deletions, against wrong answers of a cloud.

Rules: the history may be lost, and a process without it allows fewer deletions, not
more: until it has followed the Nodes for one window, the percentage is ignored and only
the number applies. A standby follows the Nodes too, so that a failover does not reset
the budget.
"""

import dataclasses
from collections.abc import Callable, Mapping, Set

from lib.cloud import absence_limit

CONFIRM_ANNOTATION = absence_limit.CONFIRM_ANNOTATION
REPORT_EVERY_S = 60.0
"""Period of the Event of a Node whose deletion is suspended; its count increases."""


UNHEALTHY_PERCENT = absence_limit.UNHEALTHY_PERCENT
Limit = absence_limit.Limit
DeletionBudget = absence_limit.Budget
suspends = absence_limit.suspends
"""The rule, which is that of load balancers and machines as well."""


class Deletions:
    """History of deleted Nodes and of Nodes without an instance; by UID.

    Safe to use from several threads: each step is one operation on a dictionary.
    clock: monotonic seconds.
    """

    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._began: float | None = None
        self._deleted_at: dict[str, float] = {}
        self._missing: dict[str, float] = {}  # uid -> since when
        self._reported_at: dict[str, float] = {}
        self._suspended_uids: frozenset[str] = frozenset()

    @property
    def suspended(self) -> int:
        """Number of Nodes whose deletion is suspended, by the last count."""
        return len(self._suspended_uids & self._missing.copy().keys())

    def begin(self) -> None:
        """Begin to count: the Nodes are watched from now on. Repeatable."""
        if self._began is None:
            self._began = self._clock()

    def missing(self, uid: str) -> None:
        """Record that a Node's instance is not found."""
        self._missing.setdefault(uid, self._clock())

    def is_missing(self, uid: str) -> bool:
        """Report whether a Node's instance was not found when it was last read."""
        return uid in self._missing

    def back(self, uid: str) -> None:
        """Record that a Node is Ready again, or its instance is found."""
        self._missing.pop(uid, None)
        self._reported_at.pop(uid, None)

    def deleting(self, uid: str) -> None:
        """Record a deletion before its request, since the answer may be lost."""
        self._deleted_at[uid] = self._clock()

    def deleted(self, uid: str) -> None:
        """Record a deleted Node, also one deleted by another client."""
        self._deleted_at.setdefault(uid, self._clock())

    def reported(self, uid: str) -> None:
        """Record that an Event reported the suspended deletion of a Node."""
        self._reported_at[uid] = self._clock()

    def was_reported(self, uid: str) -> bool:
        """Report whether such an Event was recorded within REPORT_EVERY_S."""
        reported_at = self._reported_at.get(uid)
        return reported_at is not None and self._clock() - reported_at < REPORT_EVERY_S

    def budget(
        self,
        is_exempt: Mapping[str, bool],
        are_observed: Callable[[], bool] = lambda: True,
    ) -> DeletionBudget:
        """Return the budget now.

        is_exempt: by UID, all Nodes; True: Ready, or confirmed by a user. are_observed:
        whether instances of the cluster were observed in this cloud; called when a Node
        would be deleted.
        """
        deleted = self._deleted_within()
        missing = self._missing.copy()
        pending = [
            uid
            for uid in sorted(missing, key=lambda uid: (missing[uid], uid))
            if is_exempt.get(uid) is False and uid not in deleted
        ]
        began = self._began
        budget = DeletionBudget(
            nodes=len(is_exempt.keys() | deleted),
            deleted=len(deleted),
            pending={uid: ahead for ahead, uid in enumerate(pending)},
            is_young=began is None or self._clock() - began < self._limit.window_s,
        )
        if self._suspended(budget) != budget.pending.keys() and not are_observed():
            budget = dataclasses.replace(budget, is_elsewhere=True)
        self._suspended_uids = self._suspended(budget)
        return budget

    def _suspended(self, budget: DeletionBudget) -> frozenset[str]:
        return frozenset(
            uid for uid in budget.pending if suspends(budget, self._limit, uid)
        )

    def _deleted_within(self) -> Set[str]:
        since = self._clock() - self._limit.window_s
        for uid, at in self._deleted_at.copy().items():
            if at <= since:
                self._deleted_at.pop(uid, None)
        return frozenset(self._deleted_at.copy())
