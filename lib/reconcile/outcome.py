"""What one pass decided for one key."""

import dataclasses
from typing import Generic, TypeVar

Action = TypeVar("Action")


# No slots: Python 3.11 then could not make it as Outcome[...](...).
@dataclasses.dataclass(frozen=True)
class Outcome(Generic[Action]):
    """Ordered actions, and when to look again.

    requeue_after_s: seconds until the key is due again for the same topics; None
    when only an event or the next periodic pass brings it back.
    """

    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
