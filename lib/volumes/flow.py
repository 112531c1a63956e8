"""One cloud's volumes as CSI's controller wants them: wishes settled, facts told.

Nothing survives a call but caches: what one call leaves unfinished, the next one with
the same name or id finds and finishes.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.volumes import (
    ById,
    ByName,
    Capacity,
    Ref,
    Volume,
    VolumeId,
    Volumes,
    VolumeSpec,
)
from lib.volumes import act, calls, decide, facts, model, reader, refusals, turns
from lib.volumes.refusals import Code, Refused

BUSY_S = 2.0
"""Between two tries of what the cloud is too busy for."""
BLIND_S = 2.0
BLIND_LOOKS = 5
"""Looks that fail one after the other, while waiting, before the caller is told; the
pause after each."""


class Flow:
    """Settles wishes for the volumes of one cloud. Safe for many threads."""

    def __init__(
        self,
        cloud: Callable[[], Volumes],
        effects: calls.Effects | None = None,
        started: float | None = None,
    ) -> None:
        """cloud: gives the one to ask now; may change between two calls.

        started: when this process started, in the time of the clock; None: now.
        """
        self._cloud = cloud
        self._effects = effects or calls.Effects()
        self._started = self._effects.clock() if started is None else started
        self._facts = facts.Facts(cloud, self._effects)
        self._reader = reader.Reader(cloud, self._facts, self._effects)
        self._holds = turns.Holds()
        self._turns = turns.Turns(self._effects)
        self._lost = _Lost(self._effects)

    @property
    def cloud(self) -> Volumes:
        """Give the cloud to ask now."""
        return self._cloud()

    def settle(self, wish: model.Wish, call: calls.Call) -> Volume | None:
        """Repeat observe, decide and act until the wish is fulfilled.

        Gives the volume, None where its absence was wished.

        Raises:
            Refused: it can't be fulfilled, or not in time.
        """
        if isinstance(wish, model.Modify):
            name = self.type_name(wish.change.type)
            change = dataclasses.replace(wish.change, type=name)
            wish = dataclasses.replace(wish, change=change)
        with self._holds.hold(model.key(wish)), self._line(wish) as turn:
            return _Settling(wish, call, turn, self._tools()).run()

    def type_name(self, type: str) -> str:
        """Return the name of a type, which may be given by its ID.

        Raises:
            Refused: UNAVAILABLE; the types can't be read.
        """
        try:
            return self._cloud().type_name(type)
        except errors.CloudError as error:
            raise refusals.not_final(refusals.from_cloud(error)) from error

    def _tools(self) -> "_Tools":
        return _Tools(
            self._cloud(), self._reader, self._effects, self._lost, self._started
        )

    @contextlib.contextmanager
    def _line(self, wish: model.Wish) -> Iterator[turns.Turn | None]:
        if isinstance(wish, model.Publish | model.Unpublish) and wish.instance_id:
            with self._turns.join(wish.instance_id) as turn:
                yield turn
        else:
            yield None

    def look(self, volume_id: VolumeId, call: calls.Call) -> Volume:
        """Read one volume now.

        Raises:
            Refused: NOT_FOUND, or it can't be read.
        """
        found = self._read(ById(volume_id), call)
        if not found:
            text = f"volume_id is {volume_id!r}; there is no such volume"
            raise Refused(Code.NOT_FOUND, text)
        return found[0]

    def all(self, call: calls.Call) -> Mapping[VolumeId, Volume]:
        """Give all volumes by id, as they were at most a minute ago.

        Raises:
            Refused: they can't be listed.
        """
        try:
            return self._facts.all(call)
        except errors.CloudError as error:
            raise refusals.from_cloud(error) from error

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """Say what can still be made.

        Raises:
            Refused: there is no such type, or it can't be told.
        """
        try:
            return self._cloud().capacity(type, zones)
        except errors.CloudError as error:
            raise refusals.from_cloud(error) from error

    def place(self, spec: VolumeSpec, call: calls.Call) -> VolumeSpec:
        """Resolve the names of volumes to be placed by, and the ID of a type.

        A volume that exists already is placed, whatever became of the others.

        Raises:
            Refused: INVALID_ARGUMENT, when there is no such volume.
        """
        spec = dataclasses.replace(spec, type=self.type_name(spec.type))
        try:
            near = self._ids("affinity", spec.near, call)
            apart = self._ids("anti-affinity", spec.apart, call)
        except Refused as refused:
            if refused.code in refusals.NOT_FINAL or not self.exists(
                spec.name, spec.cluster, call
            ):
                raise
            near = apart = ()
        return dataclasses.replace(spec, near=near, apart=apart)

    def exists(self, name: str, cluster: str, call: calls.Call) -> bool:
        """Report whether a volume of this name belongs to the cluster.

        Raises:
            Refused: it can't be read.
        """
        volumes = self._read(ByName(name.strip()), call)
        return any(volume.cluster == cluster for volume in volumes)

    def kept_open(
        self, refused: Refused, name: str, cluster: str, call: calls.Call
    ) -> Refused:
        """Return a refusal that is not final while a volume of the name may exist.

        For refusals of a creation from before the name was looked up.
        """
        if refused.code in refusals.NOT_FINAL:
            return refused
        lost_s = self._lost.age_s(_creation(name))
        try:
            exists = self.exists(name, cluster, call)
        except Refused as unknown:
            return refusals.not_final(unknown)
        if not exists and (lost_s is None or lost_s > decide.LOST_S):
            return refused
        text = f"{refused.message}; a volume of that name exists or may exist already"
        return Refused(Code.ABORTED, text)

    def _ids(
        self, field: str, texts: tuple[str, ...], call: calls.Call
    ) -> tuple[str, ...]:
        found: list[str] = []
        for text in texts:
            volumes = self._read(ById(VolumeId(text)), call)
            volumes = volumes or self._read(ByName(text), call)
            if not volumes:
                wrong = f"{field} is {text!r}; want names or ids of volumes there are"
                raise Refused(Code.INVALID_ARGUMENT, wrong)
            found.extend(volume.id for volume in volumes)
        return tuple(dict.fromkeys(found))

    def _read(self, ref: Ref, call: calls.Call) -> tuple[Volume, ...]:
        now = self._effects.clock()
        (found,) = self._reader.read((ref,), now, now, call)
        if isinstance(found, Unknown):
            raise refusals.from_cloud(found.error) from found.error
        return found


_Key = tuple[str, ...]
"""What a request is about: see `_creation` and `_attach`."""


def _creation(name: str) -> _Key:
    return ("create", name)


def _attach(volume_id: VolumeId, instance_id: str) -> _Key:
    return ("attach", volume_id, instance_id)


class _Lost:
    """When the outcome of a request became unknown: it may still be carried out."""

    def __init__(self, effects: calls.Effects) -> None:
        self._effects = effects
        self._lock = threading.Lock()
        self._at: dict[_Key, float] = {}

    def note(self, key: _Key) -> None:
        now = self._effects.clock()
        with self._lock:
            self._at = {k: at for k, at in self._at.items() if at > now - decide.LOST_S}
            self._at[key] = now

    def forget(self, key: _Key) -> None:
        with self._lock:
            self._at.pop(key, None)

    def age_s(self, prefix: _Key) -> float | None:
        """Return the age of the youngest request that a key begins with."""
        with self._lock:
            times = [at for k, at in self._at.items() if k[: len(prefix)] == prefix]
        return self._effects.clock() - max(times) if times else None


@dataclasses.dataclass(frozen=True, slots=True)
class _Tools:
    """What one settling works with; the cloud stays the same throughout."""

    cloud: Volumes
    reader: reader.Reader
    effects: calls.Effects
    lost: _Lost
    started: float


class _Settling:
    """One call's passes."""

    def __init__(
        self,
        wish: model.Wish,
        call: calls.Call,
        turn: turns.Turn | None,
        tools: _Tools,
    ) -> None:
        self._wish = wish
        self._call = call
        self._turn = turn
        self._tools = tools
        self._began = self._floor = self._due = tools.effects.clock()
        self._past = model.Past()
        self._why = "it was not looked at yet"
        self._busy: errors.CloudError | None = None
        self._was_busy = False
        self._blind = 0
        self._absences = 0
        self._may_exist = True

    def run(self) -> Volume | None:
        """Pass after pass; see Flow.settle."""
        try:
            while True:
                outcome = self._pass()
                if outcome.refusal is not None:
                    raise outcome.refusal
                if outcome.requeue_after_s is None:
                    self._forget()
                    return outcome.volume
                self._why = outcome.waiting_for
                self._due = self._now() + outcome.requeue_after_s
        except errors.CloudError as error:
            raise self._kept_open(self._told(error)) from error
        except Refused as refused:
            if refused.code is not Code.DEADLINE_EXCEEDED:
                raise
            raise self._late() from refused

    def _forget(self) -> None:
        """Drop what is known of lost attaches once the volume is attached."""
        if isinstance(self._wish, model.Publish):
            self._tools.lost.forget(_attach(self._wish.id, self._wish.instance_id))

    def _kept_open(self, refused: Refused) -> Refused:
        """Return no final code while a volume of the name may exist."""
        is_open = isinstance(self._wish, model.Make) and self._may_exist
        return refusals.not_final(refused) if is_open else refused

    def _told(self, error: errors.CloudError) -> Refused:
        """Name the field that the caller got wrong, where it is not the volume."""
        wish = self._wish
        is_instance = isinstance(wish, model.Publish) and (
            isinstance(error, errors.NotFound) and error.resource == wish.instance_id
        )
        if not is_instance:
            return refusals.from_cloud(error)
        text = f"node_id is {error.resource!r}; there is no such instance"
        return Refused(Code.NOT_FOUND, text)

    def _late(self) -> Refused:
        """Say what the time was spent waiting for."""
        if self._busy is not None:
            return refusals.from_cloud(self._busy)
        text = f"the caller's time is over, and {self._why}"
        return Refused(Code.DEADLINE_EXCEEDED, text)

    def _now(self) -> float:
        return self._tools.effects.clock()

    def _pass(self) -> model.Outcome:
        self._call.check(self._tools.effects)
        refs = model.needs(self._wish, self._so_far())
        found = self._tools.reader.read(refs, self._floor, self._due, self._call)
        known = [one for one in found if not isinstance(one, Unknown)]
        for one in found:
            if isinstance(one, Unknown):
                return self._unseen(one.error)
        self._blind = 0
        volumes, source = (*known, (), ())[:2]
        self._absences = 0 if volumes else self._absences + 1
        past = self._so_far()
        self._may_exist = bool(volumes) or decide.may_appear(past)
        seen = model.Observed(volumes, source[0] if source else None)
        outcome = decide.decide(self._wish, seen if refs else None, past)
        return self._act(outcome)

    def _unseen(self, error: errors.CloudError) -> model.Outcome:
        """Bear with a cloud that fails while something is under way, for a while."""
        self._blind += 1
        is_passing = error.retry in (errors.Retry.BACKOFF, errors.Retry.SHORT)
        if not self._past.actions or not is_passing or self._blind >= BLIND_LOOKS:
            raise error
        pause_s = max(BLIND_S, error.retry_after_s or 0.0)
        return model.Outcome(requeue_after_s=pause_s, waiting_for=error.summary)

    def _so_far(self) -> model.Past:
        now = self._now()
        lost_create_s, lost_attach_s = self._lost_s()
        return dataclasses.replace(
            self._past,
            waited_s=now - self._began,
            since_action_s=now - self._floor,
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
            return lost.age_s(_creation(wish.spec.name)), None
        if isinstance(wish, model.Unpublish):
            key = _attach(wish.id, wish.instance_id or "")
            return None, lost.age_s(key if wish.instance_id else key[:-1])
        return None, None

    def _act(self, outcome: model.Outcome) -> model.Outcome:
        self._busy = None
        if not outcome.actions:
            if self._turn is not None:
                self._turn.leave()
            return outcome
        try:
            for action in outcome.actions:
                self._do(action)
        except errors.Busy as error:
            # In time the thing is let go of; the next pass looks at it anew.
            self._busy, self._was_busy = error, True
            waited_s = self._now() - self._began
            pause_s = error.retry_after_s or max(BUSY_S, 2 * decide.look_s(waited_s))
            return model.Outcome(requeue_after_s=pause_s, waiting_for=error.summary)
        return outcome

    def _do(self, action: model.Action) -> None:
        if self._turn is not None:
            self._turn.wait(self._call)
        try:
            made = act.act(self._tools.cloud, action)
            self._may_exist = self._may_exist or made is not None
        except errors.Unavailable as error:
            if not error.was_rejected:
                self._note_lost(action)
            raise
        except errors.Unplaceable as error:
            # The next pass tries another place, or ends with this reason.
            self._add(causes=(*self._past.causes, refusals.from_cloud(error)))
            return
        finally:
            self._floor = self._now()
            if self._turn is not None:
                self._turn.leave()
        past = self._past
        self._add(actions=(*past.actions, action))
        if made is not None:
            self._add(created=(*past.created, made))
        if isinstance(action, model.DeleteVolume) and action.cause is not None:
            self._add(causes=(*past.causes, action.cause))

    def _add(self, **parts: object) -> None:
        self._past = dataclasses.replace(self._past, **parts)  # type: ignore[arg-type]  # fields

    def _note_lost(self, action: model.Action) -> None:
        """Remember a request that may be carried out although it was not answered."""
        match action:
            case model.CreateVolume():
                self._may_exist = True
                self._tools.lost.note(_creation(action.spec.name))
            case model.AttachVolume():
                key = _attach(action.volume.id, action.instance_id)
                self._tools.lost.note(key)
