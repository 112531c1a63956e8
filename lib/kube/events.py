"""Kubernetes Events, for the owners of the objects they are about.

Rules: recording never blocks and never raises. Events wait in a queue of their own, are
sent at a limited rate by a thread of their own, and are dropped when the queue is full,
or when an object has too many.
"""

import collections
import dataclasses
import datetime
import hashlib
import threading
import time
from collections.abc import Callable
from typing import Literal

import msgspec
import structlog

from lib.kube import client, errors, event_queue, resources

RATE_PER_S = 10.0
BURST = 25
QUEUE_MAX = 1000
KNOWN_MAX = 4096
"""Source: client-go tools/record events_cache, maxLruCacheEntries."""
SAME_FOR_S = 3600.0
"""A repeated Event within this time increases the count of the existing one.

Source: kube-apiserver --event-ttl; counting it up keeps an Event for as long again."""
MESSAGE_MAX = 1024
"""Characters of a message. Source: Kubernetes events.k8s.io/v1, noteLengthLimit."""
COUNT_EVERY_S = 60.0
"""A repetition sooner than this is counted, and written with the next count."""
WRITE_TIMEOUT_S = 10.0
POLL_S = 0.2

Type = Literal["Normal", "Warning"]


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectRef:
    """What an Event is about; namespace is empty for cluster-scoped kinds."""

    kind: str
    name: str
    namespace: str
    uid: str
    api_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Event:
    """The parts by which two Events are the same."""

    about: ObjectRef
    type: Type
    reason: str
    message: str

    def digest(self) -> bytes:
        """Return the key of the Event in memory, of constant length."""
        about = dataclasses.astuple(self.about)
        parts = (*about, self.type, self.reason, self.message)
        return hashlib.sha256("\0".join(parts).encode(errors="replace")).digest()


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """An Event on the server. Times in Unix seconds; written: to the server."""

    name: str
    count: int
    last_at: float
    written_at: float


def _nothing() -> None:
    pass


def _ignore(type: str, reason: str) -> None:
    del type, reason


class Recorder:
    """Records Events for one component. Safe for use by several threads.

    component, host: source of the Events; host may be empty, as in the reference.
    clock: Unix seconds. dropped: called for every Event that is not sent. emitted:
    called with type and reason of every Event, sent or not. poll_s: seconds between two
    checks for the end while there is nothing to send.
    """

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        api: client.Api,
        *,
        component: str,
        host: str,
        clock: Callable[[], float] = time.time,
        dropped: Callable[[], None] = _nothing,
        emitted: Callable[[str, str], None] = _ignore,
        poll_s: float = POLL_S,
    ) -> None:
        self._api = api
        self._component = component
        self._host = host
        self._clock = clock
        self._dropped = dropped
        self._emitted = emitted
        self._poll_s = poll_s
        self._queue = event_queue.EventQueue[tuple[_Event, float]](QUEUE_MAX, clock)
        self._known: collections.OrderedDict[bytes, _Known] = collections.OrderedDict()
        self._tokens = float(BURST)
        self._filled_at = clock()
        self._last_ns = 0
        self._log = structlog.stdlib.get_logger().bind(component=component)

    def emit(
        self, ref: ObjectRef, type: Type, reason: str, message: str
    ) -> None:  # the API's own word
        """Record an Event, now; it is sent later, or never."""
        self._emitted(type, reason)
        event = _Event(ref, type, reason, bounded(message))
        subject = f"{ref.kind} {ref.namespace}/{ref.name}"
        if not self._queue.put(ref.namespace, subject, (event, self._clock())):
            self._dropped()

    def run(self, stop: threading.Event) -> None:
        """Send what is recorded until `stop` is set; never raises."""
        while not stop.is_set():
            waiting = self._queue.take(self._poll_s)
            if waiting is None:
                continue
            event, at = waiting
            while not self._take_token() and not stop.wait(1 / RATE_PER_S):
                pass
            try:
                self._send(event, at)
            except errors.KubeError as error:
                self._log.warning("cannot send the Event", error=str(error))
                self._dropped()
            except Exception as error:  # this is a loop; see lib/reconcile/runner.py
                self._log.error("unexpected error in event recorder", exc_info=error)
                self._dropped()
            finally:
                self._queue.sent()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; False when that took too long. `run` must run."""
        return self._queue.flush(timeout_s)

    def _take_token(self) -> bool:
        now = self._clock()
        earned = max(now - self._filled_at, 0.0) * RATE_PER_S
        self._filled_at = now
        self._tokens = min(self._tokens + earned, float(BURST))
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _send(self, event: _Event, at: float) -> None:
        key = event.digest()
        known = self._known.pop(key, None)
        counted = None
        if known is not None and at - known.last_at < SAME_FOR_S:
            counted = self._count_up(event, known, at)
        self._known[key] = counted or self._create(event, at)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def _count_up(self, event: _Event, known: _Known, at: float) -> _Known | None:
        """Count the Event up; None if the server has deleted it.

        A lasting cause is reported at every reconciliation: not each is worth a write.
        """
        count = known.count + 1
        if at - known.written_at < COUNT_EVERY_S:
            return _Known(known.name, count, at, known.written_at)
        now = _Known(known.name, count, at, at)
        body = {"count": now.count, "lastTimestamp": _rfc3339(at)}
        try:
            self._api.patch(
                resources.EVENTS,
                now.name,
                msgspec.json.encode(body),
                _namespace(event.about),
                timeout_s=WRITE_TIMEOUT_S,
            )
        except errors.NotFound:
            return None
        return now

    def _create(self, event: _Event, at: float) -> _Known:
        # Two Events of one moment must not have one name.
        self._last_ns = max(int(at * 1e9), self._last_ns + 1)
        name = f"{event.about.name}.{self._last_ns:x}"
        self._api.create(
            resources.EVENTS,
            msgspec.json.encode(self._body(event, name, at)),
            _namespace(event.about),
            timeout_s=WRITE_TIMEOUT_S,
        )
        return _Known(name, 1, at, at)

    def _body(self, event: _Event, name: str, at: float) -> dict[str, object]:
        """Return the object, as client-go would write it.

        Source: client-go tools/record, makeEvent and generateEvent.
        """
        about = event.about
        involved = {
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "apiVersion": about.api_version,
        }
        source = {"component": self._component, "host": self._host}
        return {
            "kind": resources.EVENTS.kind,
            "apiVersion": resources.EVENTS.api_version,
            "metadata": {"name": name, "namespace": _namespace(about)},
            "involvedObject": {k: v for k, v in involved.items() if v},
            "reason": event.reason,
            "message": event.message,
            "source": {k: v for k, v in source.items() if v},
            "firstTimestamp": _rfc3339(at),
            "lastTimestamp": _rfc3339(at),
            "count": 1,
            "type": event.type,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def bounded(message: str) -> str:
    """Return a message of at most MESSAGE_MAX characters, without control characters.

    Parts of it may come from users or from a cloud.
    """
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX - 3] + "..."
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in message)


def _namespace(about: ObjectRef) -> str:
    return about.namespace or "default"


def _rfc3339(at: float) -> str:
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
