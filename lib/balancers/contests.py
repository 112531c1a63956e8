"""Fields of Services that another client changes back each time they are written.

Two controllers that react to each other's changes would write without end. After MOST
writes of one value within WITHIN_S the field is left to the other client, for longer
each time; then it is written once more.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping

import msgspec

from lib.balancers import model, translate
from lib.balancers.model import Contested, Service
from lib.cloud.steps import CommonReason, Problem

MOST = 5
WITHIN_S = 60.0
FIRST_S = 30.0
LONGEST_S = 600.0


@dataclasses.dataclass(slots=True)
class _Contest:
    """Our own writes of one value.

    times, until: monotonic seconds; until: it is not written before. other: the client
    that changes it back, empty if unknown; None: it was not read in this pause.
    """

    times: tuple[float, ...] = ()
    pauses: int = 0
    until: float = 0.0
    other: str | None = None

    def add(self, now: float) -> None:
        recent = (*(at for at in self.times if now - at < WITHIN_S), now)
        self.times = recent
        if self.pauses or len(recent) >= MOST:
            self.until = now + min(LONGEST_S, FIRST_S * 2.0**self.pauses)
            self.pauses += 1
            self.other = None

    def is_over(self, now: float) -> bool:
        return now - self.times[-1] > WITHIN_S and now - self.until > LONGEST_S


class Contests:
    """Our own writes, by the Service's UID. Safe for many threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._by_uid: dict[str, dict[model.Write, _Contest]] = {}

    def note(self, uid: str, write: model.Write) -> None:
        """Note a write that was carried out; drop what was noted long ago."""
        with self._lock:
            now = self._clock()
            self._drop(now)
            for part in _parts(write):
                contests = self._by_uid.setdefault(uid, {})
                contests.setdefault(part, _Contest()).add(now)

    def _drop(self, now: float) -> None:
        for uid, contests in list(self._by_uid.items()):
            for write in [w for w, each in contests.items() if each.is_over(now)]:
                del contests[write]
            if not contests:
                del self._by_uid[uid]

    def find(
        self, service: Service, name_other: Callable[[model.Write], str]
    ) -> tuple[Contested, ...]:
        """Return the writes that a Service lacks, and that do not follow yet.

        name_other: returns who has changed the field of a write; called once for each
        pause. A Service that is being deleted has none.
        """
        about = service.metadata
        if about.deletion_timestamp is not None:
            return ()
        with self._lock:
            now = self._clock()
            paused = [
                (write, contest, contest.until - now)
                for write, contest in self._by_uid.get(about.uid, {}).items()
                if contest.until > now and not _is_done(service, write)
            ]
        for write, contest, _ in paused:
            if contest.other is None:
                contest.other = name_other(write)
        return tuple(
            Contested(write, contest.other or "", left_s)
            for write, contest, left_s in paused
        )


def problem(contested: Contested) -> Problem:
    """Return what the owner of the Service has to know of it."""
    other = contested.other or "another client"
    text = (
        f"{_name(contested.write)} is changed back by {other} each time it is written."
        f" It is written again after pauses of up to {LONGEST_S / 60:.0f} minutes; let"
        " only one controller manage it"
    )
    return Problem(CommonReason.CONTESTED, text)


def _parts(write: model.Write) -> Iterator[model.Write]:
    """Yield the writes of single fields."""
    if not isinstance(write, model.SetAnnotations):
        yield write
        return
    for annotation in write.annotations:
        yield model.SetAnnotations((annotation,))


def _is_done(service: Service, write: model.Write) -> bool:
    match write:
        case model.AddFinalizer():
            return service.has_finalizer
        case model.RemoveFinalizer():
            return not service.has_finalizer
        case model.SetIngress(ingress):
            return translate.ingress(service) == ingress
        case model.SetAnnotations(annotations):
            current = service.metadata.annotations
            return all(current.get(key) == value for key, value in annotations)


def _name(write: model.Write) -> str:
    match write:
        case model.SetAnnotations(annotations):
            return f"annotation {annotations[0][0]}"
        case model.SetIngress():
            return "status.loadBalancer"
    return f"finalizer {model.FINALIZER}"


class _Managed(msgspec.Struct, frozen=True, rename="camel"):
    manager: str = ""
    time: str = ""
    fields: Mapping[str, object] = msgspec.field(default_factory=dict, name="fieldsV1")

    def has(self, path: tuple[str, ...]) -> bool:
        fields: object = self.fields
        for key in path:
            if not isinstance(fields, Mapping) or key not in fields:
                return False
            fields = fields[key]
        return True


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: tuple[_Managed, ...] = ()


class WithManagers(msgspec.Struct, frozen=True):
    """A Service with the field managers of its parts."""

    metadata: _Metadata = _Metadata()

    def other(self, write: model.Write) -> str:
        """Return the manager of the field of a write.

        A field that was removed has none, and the client that removes it need not
        manage another one: then the last one to change the Service that manages nothing
        of ours is returned as a guess. Empty if there is none.

        Source: Kubernetes meta/v1 ManagedFieldsEntry, FieldsV1.
        """
        last_first = sorted(
            self.metadata.managed_fields, key=lambda each: each.time, reverse=True
        )
        for each in last_first:
            if each.has(_path(write)):
                return each.manager
        own_managers = {
            each.manager
            for each in last_first
            if each.has(_FINALIZER) or each.has(_STATUS)
        }
        managers = (each.manager for each in last_first)
        others = (name for name in managers if name not in own_managers)
        return next((f"another client, perhaps {name}" for name in others), "")


_FINALIZER = ("f:metadata", "f:finalizers", f'v:"{model.FINALIZER}"')
_STATUS = ("f:status", "f:loadBalancer")


def _path(write: model.Write) -> tuple[str, ...]:
    match write:
        case model.SetAnnotations(annotations):
            return ("f:metadata", "f:annotations", f"f:{annotations[0][0]}")
        case model.SetIngress():
            return _STATUS
    return _FINALIZER
