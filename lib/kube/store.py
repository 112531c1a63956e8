"""A copy of all objects of one kind, kept by list and watch.

Rules: subscribers hear of every change once, in order, and of an object that is new
exactly once, whatever happens to the connection. A lost watch never empties the store.
"""

import dataclasses
import random
import threading
import time
import types
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec
import structlog

from lib.kube import client, errors, interrupt, listing, objects, resources
from lib.process import decoding, repeats

LIST_TIMEOUT_S = 60.0
"""For one page."""
CONNECT_TIMEOUT_S = 10.0
WATCH_S = 300.0
"""The server ends a watch after one to two times this.

Source: client-go tools/cache reflector, minWatchTimeout."""
READ_TIMEOUT_S = 90.0
"""Longest silence: bookmarks come about once a minute."""
FIRST_BACKOFF_S = 0.25
LONGEST_BACKOFF_S = 30.0
RELIST_AFTER = 3
"""Watches that fail in a row before the version they resume from is given up: after
a restore of its database the server may know none as high."""
SHORT_WATCH_S = 1.0
"""A watch that ended sooner without a word is a failure too."""

T = TypeVar("T", bound=objects.HasMetadata)
_REPEATS = repeats.Repeats()
"""Of all watches of the process: one server that is down is one failure."""
Subscriber = Callable[[str, T | None, T | None], None]


class _Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


@dataclasses.dataclass(frozen=True, slots=True)
class _Write:
    """Our own last write to an object; version None: it was deleted, as uid."""

    version: str | None
    uid: str


class Store(Generic[T]):
    """Objects by key: "namespace/name", or "name" without a namespace.

    Reading is cheap and safe from any thread. decode_type: a msgspec Struct that holds
    what its users need, with a field `metadata`. page_size: objects per page of a
    list. clock: monotonic seconds. rng: numbers in [0, 1) for the jitter. failures: of
    watches, shared by the stores that log together. on_recovery: called in the store's
    own thread once it is up to date again after a failure. synced: set once the first
    list is in.
    """

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        api: client.Api,
        resource: resources.Resource,
        decode_type: type[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = listing.PAGE,
        read_timeout_s: float = READ_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        failures: repeats.Repeats = _REPEATS,
        on_recovery: Callable[[], None] | None = None,
    ) -> None:
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._api = api
        self._resource = resource
        self._type = decode_type
        self._decoder = decoding.decoder(decode_type)
        self._event_decoder = decoding.decoder(_Event)
        self._namespace = namespace
        self._selectors = {k: v for k, v in selectors.items() if v}
        self._page_size = page_size
        self._read_timeout_s = read_timeout_s
        self._clock = clock
        self._rng = rng
        self._repeats = failures
        self._on_recovery = on_recovery
        self._log = structlog.stdlib.get_logger().bind(resource=resource.plural)
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._snapshot: Mapping[str, T] | None = None
        self._version = ""
        self._writes: dict[str, _Write] = {}
        self._must_list = True
        self._heard = False
        self._opened_at: float | None = None
        self._is_refused = False
        self._failure: errors.KubeError | None = None
        # Held while subscribers are notified: a new one receives each object once.
        self._telling = threading.RLock()
        self._subscribers: list[Subscriber[T]] = []
        self.synced = threading.Event()

    @property
    def failure(self) -> errors.KubeError | None:
        """Why the store is not up to date now; None: it is, or was never read yet.

        A watch that is silent counts as working until its read timeout.
        """
        return self._failure

    def get(self, key: str) -> T | None:
        """Return an object, or None."""
        return self._objects.get(key)

    def items(self) -> Mapping[str, T]:
        """Return all objects as they are now; the mapping never changes."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = types.MappingProxyType(self._objects.copy())
            return self._snapshot

    def subscribe(self, fn: Subscriber[T]) -> None:
        """Have `fn(key, old, new)` called for each change; old None: it is new.

        Objects already here are announced as new, before this returns. An object
        deleted and made again under its name is announced as both. `fn` is called in
        the store's own thread and must return immediately.
        """
        with self._telling:
            self._subscribers.append(fn)
            for key, value in self.items().items():
                self._call(fn, key, None, value)

    def note_write(self, key: str, resource_version: str | None) -> None:
        """Note our own write, by the resourceVersion it gave; None: we deleted it."""
        with self._lock:
            held = self._objects.get(key)
            uid = held.metadata.uid if held is not None else ""
            self._writes[key] = _Write(resource_version, uid)
            self._settle(key)

    def is_current(self, key: str) -> bool:
        """Report whether the store has seen our own last write to that object."""
        with self._lock:
            self._settle(key)
            return key not in self._writes

    def _settle(self, key: str) -> None:
        """Forget a noted write that has been seen; under the lock."""
        write = self._writes.get(key)
        if write is None:
            return
        held = self._objects.get(key)
        if write.version is None:
            is_shown = (
                held is None
                or held.metadata.uid != write.uid
                or held.metadata.deletion_timestamp is not None
            )
        else:
            is_shown = _at_least(self._version, write.version) or (
                held is not None and held.metadata.resource_version == write.version
            )
        if is_shown:
            del self._writes[key]

    def relist(self) -> None:
        """List all, and announce what differs from what is here.

        Call it before `run` to begin with a full store; never beside it.

        Raises:
            KubeError: it could not be listed; the store is as before.
        """
        writes = dict(self._writes)
        listed, version = self._list()
        with self._telling:
            with self._lock:
                before, self._objects = self._objects, listed
                self._snapshot = None
                self._version = version
                for key, write in writes.items():
                    # This list began after that write had ended.
                    if self._writes.get(key) == write:
                        del self._writes[key]
            self._must_list = False
            for key in before.keys() - listed.keys():
                self._tell(key, before[key], None)
            for key, value in listed.items():
                self._tell(key, before.get(key), value)
        self.synced.set()

    def _list(self) -> tuple[dict[str, T], str]:
        listed = listing.read(
            self._api,
            self._resource,
            self._type,
            timeout_s=LIST_TIMEOUT_S,
            namespace=self._namespace,
            selectors=self._selectors,
            page_size=self._page_size,
        )
        return {value.metadata.key: value for value in listed.items}, listed.version

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop` is set; never raises."""
        failures = 0
        with interrupt.interrupting(stop) as watcher:
            while not stop.is_set():
                self._heard, self._opened_at = False, None
                error = self._turn(watcher)
                if self._heard:
                    failures = 0
                if self._was_cut_off(error):
                    failures, error = 0, None
                if error is not None or not (self._heard or self._has_lasted()):
                    failures += 1
                if failures and failures % RELIST_AFTER == 0:
                    self._must_list = True
                delay_s = self._backoff_s(failures)
                if isinstance(error, errors.KubeError):
                    self._failure = error
                    self._report(error, delay_s)
                elif error is not None:
                    text = f"unexpected error in watch ({type(error).__name__})"
                    operation = f"watch {self._resource.plural}"
                    self._failure = errors.KubeError(text, operation=operation)
                stop.wait(delay_s)

    def _watched_s(self) -> float:
        """Return how long the watch was open, in seconds; 0 when it never was."""
        return 0.0 if self._opened_at is None else self._clock() - self._opened_at

    def _has_lasted(self) -> bool:
        return self._watched_s() >= SHORT_WATCH_S

    def _was_cut_off(self, error: Exception | None) -> bool:
        """Report whether a working watch of a quiet kind was closed in between.

        Proxies close idle connections after 35 to 60 s, before the first bookmark. Such
        a watch is resumed immediately. Silence up to the read timeout is a failure: the
        connection, or the version that the watch resumes from, is dead.
        """
        return (
            isinstance(error, errors.Unavailable)
            and not self._is_refused
            and self._has_lasted()
            and self._watched_s() < self._read_timeout_s
        )

    def _turn(self, watcher: interrupt.Interrupt) -> Exception | None:
        """List if need be, then watch until the watch ends; return what ended it."""
        try:
            if self._must_list:
                self.relist()
            self._watch(watcher)
        except errors.Gone as error:
            self._must_list = True
            return error
        except errors.KubeError as error:
            if self._was_cut_off(error):
                self._log.debug("watch failed", error=str(error))
            return error
        except Exception as error:  # this is a loop; see lib/reconcile/runner.py
            self._log.error("unexpected error in watch", exc_info=error)
            self._must_list = True
            return error
        return None

    def _report(self, error: errors.KubeError, delay_s: float) -> None:
        """Log why a watch ended: once a minute for all stores that fail alike."""
        if isinstance(error, errors.Gone):
            return
        count = self._repeats.count(error.message)
        if count is not None:
            text = f"{error.message}; retry in {delay_s:.1f}s"
            self._log.warning("watch failed", error=text, count=count)

    def _backoff_s(self, failures: int) -> float:
        if not failures:
            return 0.0
        longest = min(FIRST_BACKOFF_S * 2.0 ** min(failures, 16), LONGEST_BACKOFF_S)
        return longest * (0.5 + self._rng() / 2)

    def _watch(self, watcher: interrupt.Interrupt) -> None:
        query = {
            **self._selectors,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(WATCH_S * (1 + self._rng()))),
        }
        opened = self._api.stream(
            self._resource.path(self._namespace),
            query,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            read_timeout_s=self._read_timeout_s,
        )
        with opened as lines, watcher.during(lines):
            self._opened_at, self._is_refused = self._clock(), False
            self._recover()
            for line in lines:
                self._take(line)
                self._heard = True

    def _recover(self) -> None:
        """Note that the store is up to date, and report that if it was not."""
        was_failing, self._failure = self._failure is not None, None
        if was_failing and self._on_recovery is not None:
            self._on_recovery()

    def _take(self, line: bytes) -> None:
        """Take in one line of a watch.

        Raises:
            KubeError: the line reports that the watch can't continue.
        """
        event = self._event_decoder.decode(line)
        if event.type == "ERROR":
            self._is_refused = True
            status = decoding.decode(event.object, objects.Status)
            raise errors.of_status(status, operation=f"watch {self._resource.plural}")
        if event.type == "BOOKMARK":
            bare = decoding.decode(event.object, objects.Bare)
            with self._lock:
                self._version = bare.metadata.resource_version
            return
        try:
            value = self._decoder.decode(event.object)
        except msgspec.DecodeError as error:
            self._must_list = True
            text = objects.malformed(event.object, error)
            operation = f"watch {self._resource.plural}"
            raise errors.KubeError(text, operation=operation) from error
        self._put(value, is_deleted=event.type == "DELETED")

    def _put(self, value: T, *, is_deleted: bool) -> None:
        key = value.metadata.key
        with self._telling:
            with self._lock:
                # Readers take no lock: what only changes must never be away.
                old = self._objects.get(key)
                if is_deleted:
                    self._objects.pop(key, None)
                else:
                    self._objects[key] = value
                self._snapshot = None
                self._version = value.metadata.resource_version
                self._settle(key)
            self._tell(key, old, None if is_deleted else value)

    def _tell(self, key: str, old: T | None, new: T | None) -> None:
        """Notify the subscribers, if there is a difference."""
        if old is not None and new is not None:
            if old.metadata.uid != new.metadata.uid:
                self._tell(key, old, None)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version:
                return
        if old is None and new is None:
            return
        for fn in self._subscribers:
            self._call(fn, key, old, new)

    def _call(self, fn: Subscriber[T], key: str, old: T | None, new: T | None) -> None:
        try:
            fn(key, old, new)
        except Exception as error:  # one subscriber's bug must not stop the others
            self._log.error("unexpected error in subscriber", key=key, exc_info=error)


def _at_least(version: str, minimum: str) -> bool:
    """Compare resource versions; False for any that isn't a number.

    Source: Kubernetes API concepts, resource versions (orderable since 1.35; they have
    been etcd's revision, a number, since ever).
    """
    if not (version.isdecimal() and minimum.isdecimal()):
        return False
    return int(version) >= int(minimum)
