"""One caller's wish as the runtime drives it: see lib/reconcile/waiting.py."""

import dataclasses
import datetime

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.volumes import Volume, Volumes
from lib.reconcile import failure as failures
from lib.reconcile import waiting
from lib.volumes import (
    act,
    callers,
    csi_codes,
    decide,
    model,
    poll_interval,
    shared_reads,
    turns,
)
from lib.volumes import lost as requests
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.model import Action, Snapshot

BUSY_S = 2.0
"""Between two tries of what the cloud is too busy for."""
BLIND_S = 2.0
BLIND_LOOKS = 5
"""Reads that fail one after the other, while waiting, before the caller is told; the
pause after each."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """What one settling works with; the cloud stays the same throughout."""

    cloud: Volumes
    reader: shared_reads.VolumesReader
    effects: callers.CallEffects
    lost: requests.Lost
    started: float


class Settling(waiting.WaitingFlow[Snapshot, Action]):
    """The reconciliations of one call, and what it has done so far."""

    name = "volumes"

    def __init__(
        self,
        wish: model.Wish,
        call: callers.Caller,
        turn: turns.Turn | None,
        tools: Tools,
    ) -> None:
        self._wish = wish
        self._call = call
        self._turn = turn
        self._tools = tools
        self._began = self._written_at = tools.effects.clock()
        self._past = model.CallHistory()
        self._last: Snapshot | None = None
        self._blind_reason = ""
        self._busy: errors.CloudError | None = None
        self._was_busy = False
        self._blind = 0
        self._absences = 0
        self._may_exist = True

    def observe(self, due: float) -> Snapshot:
        """See the protocol; the read is shared with other callers.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED.
            CloudError: the cloud can't be read.
            Postponed: the same, while something is in progress, for a while.
        """
        self._call.check(self._tools.effects)
        refs = model.needs(self._wish, self._so_far())
        observations = self._tools.reader.read(refs, self._written_at, due, self._call)
        known = [
            observation
            for observation in observations
            if not isinstance(observation, Unknown)
        ]
        for observation in observations:
            if isinstance(observation, Unknown):
                self._bear(observation.error)
        self._blind, self._blind_reason, self._busy = 0, "", None
        volumes, source = (*known, (), ())[:2]
        self._absences = 0 if volumes else self._absences + 1
        past = self._so_far()
        self._may_exist = bool(volumes) or decide.may_appear(past)
        observed = model.ObservedVolumes(volumes, source[0] if source else None)
        self._last = Snapshot(self._wish, observed if refs else None, past)
        return self._last

    def _bear(self, error: errors.CloudError) -> None:
        """Bear with a cloud that fails while something is in progress, for a while."""
        self._blind += 1
        is_passing = error.retry in (errors.Retry.BACKOFF, errors.Retry.SHORT)
        if not self._past.actions or not is_passing or self._blind >= BLIND_LOOKS:
            raise error
        self._blind_reason = error.summary
        pause_s = max(BLIND_S, error.retry_after_s or 0.0)
        raise failures.Postponed(error.summary, pause_s, is_routine=False) from error

    def decide(self, snapshot: Snapshot, now: datetime.datetime) -> model.VolumeOutcome:
        """See lib/volumes/decide.py."""
        del now
        return decide.decide(snapshot.wish, snapshot.seen, snapshot.past)

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out, in the order of the callers of one instance.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED, while it waited for that.
            CloudError: the cloud refuses, or did not answer.
            Postponed: it is too busy, or another place is to be tried.
        """
        if self._turn is not None:
            self._turn.wait(self._call)
        try:
            result = act.act(self._tools.cloud, action)
        except errors.Unavailable as error:
            if not error.was_rejected:
                self._note_lost(action)
            raise
        except errors.Unplaceable as error:
            # The next reconciliation tries another place, or ends with this reason.
            self._add(causes=(*self._past.causes, csi_codes.from_cloud(error)))
            raise failures.Postponed(error.summary, decide.SOON_S) from error
        except errors.Busy as error:
            # In time the volume is released; the next reconciliation reads it again.
            self._busy, self._was_busy = error, True
            waited_s = self._now() - self._began
            pause_s = error.retry_after_s or max(
                BUSY_S, 2 * poll_interval.after_s(waited_s)
            )
            raise failures.Postponed(error.summary, pause_s) from error
        finally:
            self._written_at = self._now()
            if self._turn is not None:
                self._turn.leave()
        self._may_exist = self._may_exist or result is not None
        past = self._past
        self._add(actions=(*past.actions, action))
        if result is not None:
            self._add(created=(*past.created, result))
        if isinstance(action, model.DeleteVolume) and action.cause is not None:
            self._add(causes=(*past.causes, action.cause))
        return snapshot

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Release the instance for its next caller; see the protocol."""
        del snapshot, error
        if self._turn is not None:
            self._turn.leave()

    def failure(self, error: Exception) -> failures.Failure | None:
        """Explain an error; the caller gets all but those that are postponed."""
        match error:
            case failures.Postponed():
                return error.failure()
            case RefusedCall() | errors.CloudError():
                return failures.Failure(str(error))
        return None

    def result(self) -> Volume | None:
        """Return the volume as it fulfils the wish, once it is settled."""
        if isinstance(self._wish, model.PublishVolume):
            key = requests.attach(self._wish.id, self._wish.instance_id)
            self._tools.lost.forget(key)
        return self._decided().volume

    def _decided(self) -> model.VolumeOutcome:
        if self._last is None:
            return model.VolumeOutcome(waiting_for="it was not looked at yet")
        last = self._last
        return decide.decide(last.wish, last.seen, last.past)

    def refused(self, error: errors.CloudError) -> RefusedCall:
        """Return what a cloud's error means to the caller.

        No final code while a volume of the name may exist.
        """
        refused = self._told(error)
        is_open = isinstance(self._wish, model.Make) and self._may_exist
        return csi_codes.not_final(refused) if is_open else refused

    def _told(self, error: errors.CloudError) -> RefusedCall:
        """Return the refusal with the field at fault, where it is not the volume."""
        wish = self._wish
        is_instance = isinstance(wish, model.PublishVolume) and (
            isinstance(error, errors.NotFound) and error.resource == wish.instance_id
        )
        if not is_instance:
            return csi_codes.from_cloud(error)
        text = f"node_id is {error.resource!r}; there is no such instance"
        return RefusedCall(Code.NOT_FOUND, text)

    def late(self) -> RefusedCall:
        """Return what the caller's time was spent waiting for."""
        if self._busy is not None:
            return csi_codes.from_cloud(self._busy)
        why = self._blind_reason or self._decided().waiting_for
        return RefusedCall(
            Code.DEADLINE_EXCEEDED, f"the caller's time is over, and {why}"
        )

    def _now(self) -> float:
        return self._tools.effects.clock()

    def _so_far(self) -> model.CallHistory:
        now = self._now()
        lost_create_s, lost_attach_s = self._lost_s()
        return dataclasses.replace(
            self._past,
            waited_s=now - self._began,
            since_action_s=now - self._written_at,
            lost_create_s=lost_create_s,
            lost_attach_s=lost_attach_s,
            process_s=now - self._tools.started,
            was_busy=self._was_busy,
            absences=self._absences,
        )

    def _lost_s(self) -> tuple[float | None, float | None]:
        """Return the ages of requests of unknown outcome: creation, attach."""
        wish, lost = self._wish, self._tools.lost
        if isinstance(wish, model.Make):
            return lost.age_s(requests.creation(wish.spec.name)), None
        if isinstance(wish, model.UnpublishVolume):
            key = requests.attach(wish.id, wish.instance_id or "")
            return None, lost.age_s(key if wish.instance_id else key[:-1])
        return None, None

    def _add(self, **parts: object) -> None:
        self._past = dataclasses.replace(self._past, **parts)  # type: ignore[arg-type]  # fields

    def _note_lost(self, action: Action) -> None:
        """Remember a request that may be carried out although it was not answered."""
        match action:
            case model.CreateVolume():
                self._may_exist = True
                self._tools.lost.note(requests.creation(action.spec.name))
            case model.AttachVolume():
                key = requests.attach(action.volume.id, action.instance_id)
                self._tools.lost.note(key)
