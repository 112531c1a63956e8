"""One caller's request as the runtime drives it: see lib/reconcile/waiting.py."""

import dataclasses
import datetime
from collections.abc import Callable

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.volumes import Volume, Volumes
from lib.cloud.write_places import Places
from lib.reconcile import failure as failures
from lib.reconcile import waiting
from lib.volumes import (
    act,
    call_places,
    callers,
    csi_codes,
    decide,
    model,
    outcomes,
    poll_interval,
    shared_reads,
    turns,
)
from lib.volumes import lost as lost_requests
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.model import Action, Snapshot

BUSY_S = 2.0
"""Pause before the retry of an action for which the cloud was too busy."""
BLIND_S = 2.0
BLIND_READS = 5
"""Pause after a failed read, and consecutive failed reads before the call fails."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """Dependencies of one settling; the cloud stays the same throughout.

    places: given whether volumes are attached, returns those of the service.
    """

    cloud: Volumes
    reader: shared_reads.VolumesReader
    effects: callers.CallEffects
    lost: lost_requests.Lost
    started: float
    places: Callable[[bool], Places | None]


class Settling(waiting.WaitingFlow[Snapshot, Action]):
    """The reconciliations of one call, and its history."""

    name = "volumes"

    def __init__(
        self,
        request: model.Request,
        call: callers.Caller,
        turn: turns.Turn | None,
        tools: Tools,
    ) -> None:
        self._request = request
        self._call = call
        self._turn = turn
        self._tools = tools
        attaches = isinstance(request, model.PublishVolume | model.UnpublishVolume)
        self._place = call_places.CallPlace(
            tools.places(attaches), request, call, tools.effects
        )
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
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
            CloudError: the cloud can't be read.
            Postponed: the same, while an operation is in progress, for a while.
        """
        self._call.check(self._tools.effects)
        refs = model.needs(self._request, self._so_far())
        observations = self._tools.reader.read(refs, self._written_at, due, self._call)
        known = [
            observation
            for observation in observations
            if not isinstance(observation, Unknown)
        ]
        for observation in observations:
            if isinstance(observation, Unknown):
                self._tolerate(observation.error)
        self._blind, self._blind_reason, self._busy = 0, "", None
        volumes, source = (*known, (), ())[:2]
        self._absences = 0 if volumes else self._absences + 1
        past = self._so_far()
        self._may_exist = bool(volumes) or decide.may_appear(past)
        observed = model.ObservedVolumes(volumes, source[0] if source else None)
        self._last = Snapshot(self._request, observed if refs else None, past)
        return self._last

    def _tolerate(self, error: errors.CloudError) -> None:
        """Tolerate failing reads for a while when an operation is in progress."""
        self._blind += 1
        is_passing = error.retry in (errors.Retry.BACKOFF, errors.Retry.SHORT)
        if not self._past.actions or not is_passing or self._blind >= BLIND_READS:
            raise error
        self._blind_reason = error.summary
        pause_s = max(BLIND_S, error.retry_after_s or 0.0)
        raise failures.Postponed(error.summary, pause_s, is_routine=False) from error

    def decide(self, snapshot: Snapshot, now: datetime.datetime) -> model.VolumeOutcome:
        """See lib/volumes/decide.py."""
        del now
        return decide.decide(snapshot.request, snapshot.observed, snapshot.past)

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out, in the order of the callers of one instance.

        Raises:
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED, while it waited for that.
            CloudError: the cloud refuses, or did not answer.
            Postponed: the cloud is too busy, or another zone is tried next.
        """
        self._place.take(action, self._turn)
        try:
            result = act.act(self._tools.cloud, action)
        except errors.Unavailable as error:
            if not error.was_rejected:
                self._note_lost(action)
            raise
        except errors.Unplaceable as error:
            # The next reconciliation tries another place, or ends with this reason.
            self._add(causes=(*self._past.causes, csi_codes.from_cloud(error)))
            raise failures.Postponed(error.summary, outcomes.SOON_S) from error
        except errors.Busy as error:
            # In time the volume is released; the next reconciliation reads it again.
            self._busy, self._was_busy = error, True
            waited_s = self._now() - self._began
            pause_s = error.retry_after_s or max(
                BUSY_S, 2 * poll_interval.after_s(waited_s)
            )
            raise failures.Postponed(error.summary, pause_s) from error
        finally:
            self._place.answered()
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

    def release(self, *, is_settled: bool = False, goes_on: bool = False) -> None:
        """Release the call's place at its end; see `call_places.CallPlace.end`."""
        self._place.end(is_settled=is_settled, goes_on=goes_on)

    def failure(self, error: Exception) -> failures.Failure | None:
        """Explain an error; the caller gets all errors but postponed ones."""
        if isinstance(error, RefusedCall):
            return failures.Failure(str(error))
        return failures.explained(error)

    def result(self) -> Volume | None:
        """Return the volume once the request is settled."""
        if isinstance(self._request, model.PublishVolume):
            key = lost_requests.attach(self._request.id, self._request.instance_id)
            self._tools.lost.forget(key)
        return self._decided().volume

    def _decided(self) -> model.VolumeOutcome:
        if self._last is None:
            return model.VolumeOutcome(waiting_for="the volume was not read yet")
        last = self._last
        return decide.decide(last.request, last.observed, last.past)

    def refused(self, error: errors.CloudError) -> RefusedCall:
        """Return the refusal for a cloud's error.

        No final code while a volume of the name may exist.
        """
        refused = self._with_field(error)
        is_open = isinstance(self._request, model.Make) and self._may_exist
        return csi_codes.not_final(refused) if is_open else refused

    def _with_field(self, error: errors.CloudError) -> RefusedCall:
        """Return the refusal; it names the field if the instance is not found."""
        request = self._request
        is_instance = isinstance(request, model.PublishVolume) and (
            isinstance(error, errors.NotFound) and error.resource == request.instance_id
        )
        if not is_instance:
            return csi_codes.from_cloud(error)
        return csi_codes.not_found("node_id", "instance", error.resource)

    def late(self) -> RefusedCall:
        """Return the refusal after the deadline, with the state that it waited for."""
        if self._busy is not None:
            return csi_codes.from_cloud(self._busy)
        why = self._blind_reason or self._decided().waiting_for
        return RefusedCall(Code.DEADLINE_EXCEEDED, f"deadline exceeded: {why}")

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
        request, lost = self._request, self._tools.lost
        if isinstance(request, model.Make):
            return lost.age_s(lost_requests.creation(request.spec.name)), None
        if isinstance(request, model.UnpublishVolume):
            key = lost_requests.attach(request.id, request.instance_id or "")
            return None, lost.age_s(key if request.instance_id else key[:-1])
        return None, None

    def _add(self, **parts: object) -> None:
        self._past = dataclasses.replace(self._past, **parts)  # type: ignore[arg-type]  # fields

    def _note_lost(self, action: Action) -> None:
        """Remember a request that may be carried out although it was not answered."""
        match action:
            case model.CreateVolume():
                self._may_exist = True
                self._tools.lost.note(lost_requests.creation(action.spec.name))
            case model.AttachVolume():
                key = lost_requests.attach(action.volume.id, action.instance_id)
                self._tools.lost.note(key)
