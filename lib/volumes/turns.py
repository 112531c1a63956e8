"""Locks of calls: one call per volume, and in order of arrival per instance.

Locks of one process: they save requests and keep attaches in order; correctness does
not depend on them, since another process may run beside this one.
"""

import collections
import contextlib
import threading
from collections.abc import Iterator

from lib.cloud.model import InstanceId
from lib.volumes import callers
from lib.volumes.csi_codes import Code, RefusedCall


class KeyLocks:
    """Locks by key; a call for a held key is refused, its caller retries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[str] = set()

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Hold a key.

        Raises:
            RefusedCall: ABORTED, when another call holds it.

        Source: CSI specification 1.12.0, "Error Scheme", "Operation pending".
        """
        with self._lock:
            if key in self._held:
                text = f'another call for volume "{key}" is in progress; retry later'
                raise RefusedCall(Code.ABORTED, text)
            self._held.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(key)


class Turn:
    """A place in the queue of one instance."""

    def __init__(self, turns: "Turns", instance_id: InstanceId) -> None:
        self._turns = turns
        self.instance_id = instance_id

    def wait(self, call: callers.Caller) -> None:
        """Wait until all earlier calls have left the queue; joins it if necessary.

        Raises:
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
        """
        self._turns.wait(self, call)

    def leave(self) -> None:
        """Release the turn for the next call. Does nothing when called again."""
        self._turns.leave(self)


class Turns:
    """The queues of all instances. Safe for many threads."""

    def __init__(self, effects: callers.CallEffects) -> None:
        self._effects = effects
        self._changed = threading.Condition()
        self._lines: dict[InstanceId, collections.deque[Turn]] = {}

    @contextlib.contextmanager
    def join(self, instance_id: InstanceId) -> Iterator[Turn]:
        """Enter the queue of an instance; leaves it in the end."""
        turn = Turn(self, instance_id)
        with self._changed:
            self._join(turn)
        try:
            yield turn
        finally:
            self.leave(turn)

    def _join(self, turn: Turn) -> None:
        line = self._lines.setdefault(turn.instance_id, collections.deque())
        if turn not in line:
            line.append(turn)

    def wait(self, turn: Turn, call: callers.Caller) -> None:
        """See Turn.wait."""
        with self._changed:
            self._join(turn)
            while self._lines[turn.instance_id][0] is not turn:
                call.wait(self._changed, call.deadline, self._effects)

    def leave(self, turn: Turn) -> None:
        """See Turn.leave."""
        with self._changed:
            line = self._lines.get(turn.instance_id)
            if line is None or turn not in line:
                return
            line.remove(turn)
            if not line:
                del self._lines[turn.instance_id]
            self._changed.notify_all()
