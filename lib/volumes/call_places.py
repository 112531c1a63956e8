"""A call's place among the writes that the cloud is working on.

Rules: a place is held from the write until the cloud has finished with the volume, also
by a call that ends before: the next one of the volume goes on with it. What waits for a
place holds no turn of its instance, and reads nothing.
"""

import threading

from lib.cloud.steps import Verb
from lib.cloud.volumes import Placing, Volumes
from lib.cloud.write_places import Places, Work
from lib.volumes import callers, model, turns

STARTS_WITH = 10
"""Writes in progress at the beginning, of each service.

Source: kubernetes-csi/external-attacher --worker-threads, external-resizer --workers:
10, which is what they send in parallel."""
MOST = 1000
_VERBS = {
    model.CreateVolume: Verb.CREATE,
    model.AttachVolume: Verb.CREATE,
    model.DeleteVolume: Verb.DELETE,
    model.DetachVolume: Verb.DELETE,
}


def of_cloud(cloud: Volumes, attaches: bool, most: int) -> Places | None:
    """Return the places of the service that is written; None: no limit.

    most: writes in progress, at most.
    """
    if not isinstance(cloud, Placing):
        return None
    places = cloud.places(attaches=attaches)
    places.bound(STARTS_WITH, most)
    return places


class CallPlace:
    """The place of one call. Used from its thread alone, but for the wake-up."""

    def __init__(
        self,
        places: Places | None,
        request: model.Request,
        call: callers.Caller,
        effects: callers.CallEffects,
    ) -> None:
        """places: None: there is no limit."""
        self._places = places
        self._id = model.key(request)
        self._group = getattr(request, "instance_id", None) or ""
        self._call = call
        self._effects = effects
        self._changed = threading.Condition()
        self._is_called = False
        self._answered_at: float | None = None

    def take(self, action: model.Action, turn: turns.Turn | None) -> None:
        """Wait for the turn, and for a place; both are held when this returns.

        Raises:
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
        """
        verb = _VERBS.get(type(action), Verb.CHANGE)
        has_begun = self._answered_at is not None
        work = Work(self._id, self._group, verb, self._wake, has_begun)
        while True:
            if turn is not None:
                turn.wait(self._call)
            wait_s = self._places.enter(work) if self._places is not None else 0.0
            if wait_s <= 0:
                return
            if turn is not None:
                turn.leave()
            self._wait(wait_s)

    def _wait(self, wait_s: float) -> None:
        until = self._effects.clock() + wait_s
        with self._changed:
            while not self._is_called and self._effects.clock() < until:
                self._call.wait(self._changed, until, self._effects)
            self._is_called = False

    def _wake(self) -> None:
        with self._changed:
            self._is_called = True
            self._changed.notify_all()

    def answered(self) -> None:
        """Note that the write was answered, in whatever way."""
        self._answered_at = self._effects.clock()
        if self._places is not None:
            self._places.answered(self._id)

    def end(self, *, is_settled: bool, goes_on: bool) -> None:
        """Release the place at the end of the call.

        is_settled: the cloud has finished with the volume. goes_on: it may still work
        on it although the call ends: the place is kept for the next call.
        """
        if self._places is None or (goes_on and self._answered_at is not None):
            return
        if is_settled and self._answered_at is not None:
            lasted_s = self._effects.clock() - self._answered_at
            self._places.finished(self._id, lasted_s)
        else:
            self._places.leave(self._id)
