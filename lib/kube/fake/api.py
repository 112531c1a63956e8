"""The fake API server.

Like the real one: resource versions, conflicts, preconditions, finalizers, generations,
paged lists of one moment, watches with history, bookmarks. Unlike it: no RBAC, and no
schema or admission but those of a subclass (`serves`, `refusal`); a strategic merge
patch and an apply are taken for a merge patch (lists are replaced whole, except the
conditions of a strategic merge patch; apply also creates, and removes the fields that
the same manager applied before), and a JSON patch is refused.
"""

import contextlib
import datetime
import itertools
import threading
import typing
from collections.abc import Callable, Iterator, Mapping

import msgspec

from lib.kube import client, errors, resources
from lib.kube.fake import calls, documents, objects, watches
from lib.kube.fake.documents import Json
from lib.kube.resources import Resource, ResourcePath
from lib.process.clock import utc_now

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

_WITHOUT_STATUS = ("openstackdeploymentstatus",)
"""Kinds whose status is a field like any other, not a subresource."""

Hook = Callable[[calls.Call], None]


class FakeApi(client.Api):
    """Implements client.Api in memory. Safe for use by several threads.

    calls: all calls so far. faults: each is raised once, by the next call that matches
    it. before_call, after_call: run around each call, outside the lock; what they
    raise reaches the caller (a crash before or after a call).
    """

    def __init__(self, now: Callable[[], datetime.datetime] = utc_now) -> None:
        self.calls: list[calls.Call] = []
        self.faults: list[calls.Fault] = []
        self.before_call: Hook | None = None
        self.after_call: Hook | None = None
        self._changed = threading.Condition()
        self._db = objects.Database(now)
        self._pages: dict[str, tuple[int, list[Json]]] = {}
        self._tokens = itertools.count(1)
        self._open: set[watches.Watch] = set()
        self._applied: dict[tuple[object, ...], Json] = {}

    def copy(self, now: Callable[[], datetime.datetime]) -> "FakeApi":
        """Return another one with the same objects; its log and history are empty."""
        other = FakeApi(now)
        with self._changed:
            other._db = self._db.copy(now)
            other._applied = dict(self._applied)
        return other

    # What tests arrange and look at, past faults, hooks and the log.

    def put(self, resource: Resource, document: Json) -> Json:
        """Create or replace an object; return it as it is now."""
        kind = (resource.group, resource.plural)
        with self._changed:
            try:
                old = self._db.get(kind, documents.key(document), "put")
            except errors.NotFound:
                result = self._db.create(kind, document, "put")
            else:
                result = self._db.update(kind, old, document, "put")
            self._changed.notify_all()
            return result

    def remove(
        self, resource: Resource, name: str, namespace: str | None = None
    ) -> None:
        """Delete an object, unless finalizers hold it."""
        kind = (resource.group, resource.plural)
        with self._changed:
            self._db.delete(kind, self._db.get(kind, (namespace or "", name), "remove"))
            self._changed.notify_all()

    def all(self, resource: Resource) -> tuple[Json, ...]:
        """Return all objects of a kind, in the order of their keys."""
        with self._changed:
            kind = (resource.group, resource.plural)
            return tuple(self._db.select(kind, None, {}))

    @property
    def version(self) -> int:
        """The version of the last write."""
        return self._db.version

    def compact(self) -> None:
        """Forget all history: older watches and continue tokens get 410."""
        with self._changed:
            self._db.version += 1
            self._db.forget_before(self._db.version)
            self._pages.clear()

    def bookmark(self) -> None:
        """Send a bookmark to every watch that requests them."""
        self._tell_watches(watches.Watch.bookmark)

    def break_watches(self) -> None:
        """Drop the connection of every open watch."""
        self._tell_watches(watches.Watch.drop)

    def _tell_watches(self, tell: Callable[[watches.Watch], None]) -> None:
        with self._changed:
            for watch in self._open:
                tell(watch)
            self._changed.notify_all()

    # client.Api

    def request(  # noqa: PLR0913 # see Api.request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        """See `Api.request`."""
        target = resources.parse(path)
        verb = _VERBS.get(method) or ("get" if target.name else "list")
        if verb == "delete" and not target.name:
            verb = "deletecollection"
        call = calls.Call(
            verb,
            target.plural,
            target.name,
            target.namespace,
            target.subresource,
            timeout_s,
        )
        if content_type == client.JSON_PATCH:
            raise NotImplementedError("the fake takes no JSON patch")
        with self._around(call), self._changed:
            operation = f"{method} {path}"
            document = self._answer(
                call, target, _Request(query or {}, body, content_type, operation)
            )
            self._changed.notify_all()
        return msgspec.json.encode(document)

    @contextlib.contextmanager
    def _around(self, call: calls.Call) -> Iterator[None]:
        self.calls.append(call)
        fault = next((f for f in self.faults if f.matches(call)), None)
        if fault is not None:
            self.faults.remove(fault)
        if self.before_call is not None:
            self.before_call(call)
        if fault is not None and not fault.after:
            raise fault.error
        yield
        if self.after_call is not None:
            self.after_call(call)
        if fault is not None:
            raise fault.error

    def _answer(
        self, call: calls.Call, target: ResourcePath, request: "_Request"
    ) -> Json:
        kind = (target.group, target.plural)
        if target.plural and not self.serves(target):
            raise errors.NotFound(
                "the server could not find the requested resource",
                operation=request.operation,
                status=404,
                reason="NotFound",
            )
        of_kind = {
            "create": self._create,
            "deletecollection": self._delete_selected,
            "list": self._list,
        }
        if call.verb in of_kind:
            return of_kind[call.verb](kind, target, request)
        key = (target.namespace or "", target.name or "")
        dropped: Json = {}
        if call.verb == "patch" and request.content_type == client.APPLY_PATCH:
            dropped = self._dropped(kind, target, request)
            with contextlib.suppress(errors.AlreadyExists):
                if target.subresource is None:
                    return self._create(kind, target, request)
        old = self._db.get(kind, key, request.operation)
        if call.verb == "delete":
            self._check(kind, old, request)
            self._db.delete(kind, old)
        elif call.verb == "update":
            if not documents.text(request.document, "resourceVersion"):
                field = "metadata.resourceVersion: must be specified for an update"
                raise objects.invalid(field, request.operation)
            return self._update(kind, target, old, request.document, request)
        elif call.verb == "patch":
            patch = documents.merged(old, dropped)
            asked = request.document
            if request.content_type == client.STRATEGIC_PATCH:
                asked = documents.with_conditions(old, asked)
            new = typing.cast(Json, documents.merged(patch, asked))
            return self._update(kind, target, old, new, request)
        return old

    def _dropped(
        self, kind: objects.Kind, target: ResourcePath, request: "_Request"
    ) -> Json:
        """Return a patch that removes what this manager applies no longer."""
        manager = request.query.get("fieldManager", "")
        mark = (kind, target.namespace, target.name, target.subresource, manager)
        before = self._applied.get(mark, {})
        self._applied[mark] = request.document
        return documents.dropped(before, request.document)

    def _create(
        self, kind: objects.Kind, target: ResourcePath, request: "_Request"
    ) -> Json:
        namespace: Json = {"namespace": target.namespace}
        if target.name is not None:
            namespace["name"] = target.name
        document = documents.with_metadata(request.document, namespace)
        self._judge(target, {}, document, request)
        if request.query.get("dryRun"):
            return document
        return self._db.create(kind, document, request.operation)

    def _update(
        self,
        kind: objects.Kind,
        target: ResourcePath,
        old: Json,
        new: Json,
        request: "_Request",
    ) -> Json:
        """Change the object, or its status only, or all but its status."""
        if target.subresource is None and target.plural not in _WITHOUT_STATUS:
            status = {"status": old["status"]} if "status" in old else {}
            new = {**{k: v for k, v in new.items() if k != "status"}, **status}
        elif target.subresource is not None:
            parts = [target.subresource]
            if not target.group:
                # Source: k8s.io/kubernetes pkg/registry/core, statusStrategy of Node
                # and Service: they put back the spec; of a CRD the metadata, too.
                parts.append("metadata")
            part = {name: new[name] for name in parts if name in new}
            stated = documents.metadata(new)
            versions = {k: stated.get(k) for k in ("resourceVersion", "uid")}
            new = documents.with_metadata({**old, **part}, versions)
        self._judge(target, old, new, request)
        return self._db.update(kind, old, new, request.operation)

    def serves(self, target: ResourcePath) -> bool:
        """Report whether it serves a kind in this version."""
        del target
        return True

    def refusal(self, target: ResourcePath, old: Json, new: Json) -> tuple[int, str]:
        """Return status and text with which a write is refused; 0: it is admitted.

        old: empty for a new object.
        """
        del target, old, new
        return 0, ""

    def _judge(
        self, target: ResourcePath, old: Json, new: Json, request: "_Request"
    ) -> None:
        status, text = self.refusal(target, old, new)
        if status == 422:
            raise objects.invalid(text, request.operation)
        if status:
            raise errors.Forbidden(
                text, operation=request.operation, status=status, reason="Forbidden"
            )

    def _check(self, kind: objects.Kind, old: Json, request: "_Request") -> None:
        preconditions = request.document.get("preconditions") or {}
        for field, value in typing.cast(Json, preconditions).items():
            if value != documents.metadata(old).get(field):
                raise objects.conflict(
                    kind, documents.text(old, "name"), request.operation
                )

    def _delete_selected(
        self, kind: objects.Kind, target: ResourcePath, request: "_Request"
    ) -> Json:
        """Delete the selected objects; return them as they were before it."""
        items = self._db.select(kind, target.namespace, request.query)
        for old in items:
            self._db.delete(kind, old)
        return {
            "metadata": {"resourceVersion": str(self._db.version)},
            "items": list(items),
        }

    def _list(
        self, kind: objects.Kind, target: ResourcePath, request: "_Request"
    ) -> Json:
        token = request.query.get("continue")
        if token is None:
            items = self._db.select(kind, target.namespace, request.query)
            version = self._db.version
        elif token in self._pages:
            version, items = self._pages.pop(token)
        else:
            raise expired("the continue token is too old", request.operation)
        limit = int(request.query.get("limit") or 0) or len(items)
        page, rest = items[:limit], items[limit:]
        meta: Json = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = f"token-{next(self._tokens)}"
            self._pages[str(meta["continue"])] = (version, rest)
        return {"metadata": meta, "items": page}

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[client.WatchLines]:
        """See `Api.stream`; read_timeout_s is real time."""
        target = resources.parse(path)
        call = calls.Call(
            "watch",
            target.plural,
            namespace=target.namespace,
            timeout_s=connect_timeout_s,
        )
        with self._around(call):
            since = int(query.get("resourceVersion") or 0) or self._db.version
            if since + 1 < self._db.oldest:
                raise expired("too old resource version", f"GET {path}")
        watch = watches.Watch(
            self._db, self._changed, target, query, (since, read_timeout_s)
        )
        with self._changed:
            self._open.add(watch)
        try:
            yield watch
        finally:
            with self._changed:
                self._open.discard(watch)


class _Request:
    """What a request holds besides its target."""

    def __init__(
        self,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        operation: str,
    ) -> None:
        self.query = query
        self.content_type = content_type
        self.operation = operation
        self.document: Json = msgspec.json.decode(body, type=Json) if body else {}


def expired(message: str, operation: str) -> errors.Gone:
    """Return the error for what is forgotten."""
    return errors.Gone(message, operation=operation, status=410, reason="Expired")
