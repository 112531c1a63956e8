"""What a plan leaves to be done by Node and by port; lost with the process."""

import dataclasses
import threading
from collections.abc import Callable

from lib.cloud import routes
from lib.cloud.steps import Step
from lib.routes.model import Desired

FIRST_S = 1.0
LONGEST_S = 300.0
"""How long an entry waits whose object others have changed; doubled each time."""


BUSY_S = 60.0
"""So long entries may be written before a check for drift reads all again."""


@dataclasses.dataclass(slots=True)
class _Pause:
    count: int = 0
    until: float = 0.0


class Board:
    """Entries to be written, and Nodes with what they wait for. Safe for threads.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._steps: dict[str, Step] = {}
        self._waits: dict[str, set[str]] = {}
        self._unserved: frozenset[str] = frozenset()
        self._served: frozenset[str] = frozenset()
        self._pauses: dict[str, _Pause] = {}
        self._busy_until = 0.0
        self._paused_until = 0.0

    def is_busy(self) -> bool:
        """Report whether entries are being written: what is read now is soon stale."""
        now = self._clock()
        with self._lock:
            due = [id_ for id_ in self._steps if id_ not in self._pauses]
            return bool(due) and now < self._busy_until

    def pause(self, seconds: float) -> None:
        """Note the pause of writes of the table that the cloud asked for."""
        with self._lock:
            self._paused_until = self._clock() + seconds

    def pause_s(self) -> float:
        """Return the seconds that are left of the pause; 0: none."""
        with self._lock:
            return max(0.0, self._paused_until - self._clock())

    def publish(self, plan: routes.Plan, desired: Desired) -> tuple[str, ...]:
        """Take over what a plan leaves; return the ids of the steps that are due."""
        now = self._clock()
        with self._lock:
            self._steps = dict(plan.entry_steps)
            self._busy_until = now + BUSY_S
            self._waits = {node: set(ids) for node, ids in plan.waits.items()}
            self._unserved = desired.unserved_by(plan)
            self._served = desired.served_by(plan)
            self._pauses = {
                id_: pause for id_, pause in self._pauses.items() if id_ in self._steps
            }
            none = _Pause()
            return tuple(
                id_ for id_ in self._steps if self._pauses.get(id_, none).until <= now
            )

    def waiting(self, id_: str) -> tuple[str, ...]:
        """Return the Nodes that wait for the step of an object."""
        with self._lock:
            return tuple(sorted(n for n, ids in self._waits.items() if id_ in ids))

    def step(self, id_: str) -> Step | None:
        """Return the step that is due for an object."""
        with self._lock:
            return self._steps.get(id_)

    def done(self, id_: str) -> tuple[str, ...]:
        """Note that a step was applied; return the Nodes that wait no longer."""
        with self._lock:
            self._steps.pop(id_, None)
            self._pauses.pop(id_, None)
            ready = []
            for node, ids in self._waits.items():
                ids.discard(id_)
                if not ids:
                    ready.append(node)
            for node in ready:
                del self._waits[node]
            return tuple(ready)

    def postpone(self, id_: str) -> float:
        """Drop a step that must be planned again; return in how many seconds."""
        with self._lock:
            self._steps.pop(id_, None)
            pause = self._pauses.setdefault(id_, _Pause())
            wait_s = min(LONGEST_S, FIRST_S * 2.0 ** min(pause.count, 20))
            pause.count += 1
            pause.until = self._clock() + wait_s
            return wait_s

    def is_served(self, node: str) -> bool | None:
        """Report whether a Node's pods are reached; None: not known, or still open."""
        with self._lock:
            if node in self._unserved:
                return False
            return True if node in self._served and node not in self._waits else None

    def nodes(self) -> tuple[str, ...]:
        """Return the Nodes of which it is known."""
        with self._lock:
            open_ = self._waits.keys() - self._unserved
            return tuple(sorted((self._served | self._unserved) - open_))
