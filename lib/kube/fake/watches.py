"""A watch on the fake."""

import collections
import threading
import time
from collections.abc import Mapping

import msgspec

from lib.kube import errors
from lib.kube.fake import documents, objects
from lib.kube.resources import ResourcePath


class Watch:
    """Implements client.Lines. since_and_silence_s: version to continue from, and the
    longest real time without a line.
    """

    def __init__(
        self,
        db: objects.Database,
        changed: threading.Condition,
        target: ResourcePath,
        query: Mapping[str, str],
        since_and_silence_s: tuple[int, float],
    ) -> None:
        self._db = db
        self._changed = changed
        self._target = target
        self._query = query
        self._seen, self._silence_s = since_and_silence_s
        self._ready: collections.deque[documents.Json] = collections.deque()
        self._is_aborted = False
        self._is_dropped = False

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> bytes:
        """See `client.Lines`."""
        until = time.monotonic() + self._silence_s
        with self._changed:
            while not self._ready:
                if self._is_aborted:
                    raise StopIteration
                if self._is_dropped:
                    raise self._unavailable("connection failed")
                self._collect()
                left_s = until - time.monotonic()
                if not self._ready and left_s <= 0:
                    raise self._unavailable("no answer in time")
                if not self._ready:
                    self._changed.wait(left_s)
            return msgspec.json.encode(self._ready.popleft())

    def _collect(self) -> None:
        """Take what is new in the history; under the lock."""
        if self._seen + 1 < self._db.oldest:
            status: documents.Json = {
                "code": 410,
                "reason": "Expired",
                "message": "too old",
            }
            error: documents.Json = {"type": "ERROR", "object": status}
            self._ready.append(error)
            return
        kind = (self._target.group, self._target.plural)
        for change in self._db.history:
            if change.version > self._seen and change.kind == kind:
                event = change.event(self._query, self._target.namespace)
                if event is not None:
                    self._ready.append(event)
        self._seen = self._db.version

    def _unavailable(self, message: str) -> errors.Unavailable:
        return errors.Unavailable(message, operation=f"watch {self._target.plural}")

    def bookmark(self) -> None:
        """Put a bookmark in; under the lock."""
        self._collect()
        if self._query.get("allowWatchBookmarks") == "true":
            meta: documents.Json = {"resourceVersion": str(self._db.version)}
            bare: documents.Json = {"metadata": meta}
            self._ready.append({"type": "BOOKMARK", "object": bare})

    def drop(self) -> None:
        """Break the connection; under the lock."""
        self._is_dropped = True

    def abort(self) -> None:
        """See `client.Lines`."""
        with self._changed:
            self._is_aborted = True
            self._changed.notify_all()
