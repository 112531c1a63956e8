"""What one reconciliation decided for one key."""

import dataclasses
from typing import Generic, TypeVar

Action = TypeVar("Action")


@dataclasses.dataclass(frozen=True, slots=True)
class Requeue:
    """When a key is due again for other topics than those that it was due for."""

    after_s: float
    topics: frozenset[str]


class ReportAction:
    """Base of actions that only record Events: they leave what is observed as it is."""

    __slots__ = ()


# No slots: Python 3.11 then could not make it as Outcome[...](...).
@dataclasses.dataclass(frozen=True)
class Outcome(Generic[Action]):
    """Ordered actions, how the reconciliation ends, and when the key is due again.

    requeue_after_s: seconds until the key is due again for the same topics; None
    when only an event or the next periodic pass brings it back. failure: the error
    with which the reconciliation ends after its actions; the key is then retried as
    the flow's `failure` explains the error, and requeue_after_s is ignored. events:
    actions that do no more than record the failure; not logged, since it is.
    """

    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
    failure: Exception | None = None
    events: tuple[Action, ...] = ()
