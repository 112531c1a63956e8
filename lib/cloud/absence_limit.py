"""How many objects of a cloud may be absent before no absence is credible. Pure.

A cloud that reports everything as absent (an empty replica, other credentials) must not
cost Nodes, load balancers or machines. One rule for all of them.
"""

import dataclasses
from collections.abc import Mapping

CONFIRM_ANNOTATION = "mooring.io/confirm-deletion"
"""On a Node, with any value: a user allows its deletion whatever the budget. On a
Service, with IDs of its load balancers: one that is absent was deleted on purpose, and
one beside the load balancer in use may be deleted."""
CONFIRM_S = 15.0
"""Between the two direct reads that prove an absence, at least: one interval for Nodes,
load balancers and machines."""
UNHEALTHY_PERCENT = 55
"""Where more objects are absent than this, no absence is credible.

Source: kube-controller-manager, --unhealthy-zone-threshold, default 0.55."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """How many absences may have effects in any window: the larger of both counts.

    window_s: its length. count: a number of objects. percent: of all objects.
    """

    window_s: float = 600.0
    count: int = 3
    percent: int = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """Numbers of present, deleted and absent objects of one kind.

    nodes: number of present objects, and of those deleted within the window. deleted:
    number of those deleted, or replaced, within the window. pending: by ID of each
    object whose absence is pending now, in this batch or an earlier one, the number of
    objects that have been absent for longer; without those that a user has confirmed.
    is_young: the process has not followed the objects for a whole window yet.
    is_elsewhere: no object of the cluster was observed in this cloud.
    """

    nodes: int = 0
    deleted: int = 0
    pending: Mapping[str, int] = dataclasses.field(default_factory=dict)
    is_young: bool = False
    is_elsewhere: bool = False


def suspends(budget: Budget, limit: Limit, id_: str) -> bool:
    """Report whether the absence of an object must have no effect now.

    While the cloud is credible, the absences that have lasted longest take effect as
    fast as the limit allows. It is not credible when most objects seem absent, or none
    was ever observed: then no absence has an effect.
    """
    if budget.is_elsewhere or is_mass(
        budget.deleted + len(budget.pending), budget.nodes, limit
    ):
        return True
    share = 0 if budget.is_young else budget.nodes * limit.percent // 100
    room = max(limit.count, share) - budget.deleted
    return budget.pending.get(id_, 0) >= room


def is_mass(absent: int, total: int, limit: Limit) -> bool:
    """Report whether more objects are absent than can be true at the same time."""
    return absent > max(limit.count, total * UNHEALTHY_PERCENT // 100)
