"""The one access of a process to the API of its parent cluster.

Rules: each kind is listed and watched once for all flows; a write is noted in its
store, so that no reader gets what was there before it; every call is bounded by a
time-out; a parent that does not answer is not called for a while
(lib/cloud/support/circuits.py).
"""

import contextlib
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from lib.cloud import errors
from lib.cloud.dvp import config, ownership, refusals, served_versions
from lib.cloud.dvp.kinds import ParentKind, T
from lib.cloud.support import calls, circuits
from lib.kube import client, listing, objects, transport
from lib.kube import errors as kube_errors
from lib.kube import store as stores
from lib.process import decoding

TIMEOUT_S = 15.0
"""Of one call, unless its caller has less time."""
FIRST_LIST_S = 10.0
"""How long readers wait for the first list of a kind, all together."""
_LOOK_S = 0.05
_WAIT_S = 1.0
"""Between two checks while nothing changes: a write is noted without a change."""
_SERVICE = "parent"
_VERBS = {"GET": "read", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
_OUTCOMES = {
    400: errors.InvalidRequest,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Busy,
    422: errors.InvalidRequest,
}

Json = Mapping[str, object]


class _ServedKind(msgspec.Struct, frozen=True):
    """An entry of a group's discovery document."""

    name: str = ""


class _ServedGroup(msgspec.Struct, frozen=True):
    """A group's discovery document (metav1.APIResourceList)."""

    resources: tuple[_ServedKind, ...] = ()


def observed(observer: calls.CallObserver) -> transport.Observer:
    """Return what counts each exchange with a parent: lists, watches and calls."""

    def observe(method: str, plural: str, status: int, seconds: float) -> None:
        operation = f"{_VERBS.get(method, method.lower())} {plural or 'parent'}"
        outcome = "ok"
        if not 200 <= status < 300:
            outcome = _OUTCOMES.get(status, errors.Unavailable).reason
        observer(operation, outcome, seconds)

    return observe


def connect(
    settings: config.ParentConfig,
    user_agent: str,
    on_call: calls.CallObserver = calls.ignore,
    on_circuit: circuits.CircuitObserver = circuits.ignore,
) -> "Parent":
    """Return the parent of a configuration; nothing is asked of it yet.

    user_agent: name and version of the program. on_call: receives every call.
    """
    api = client.KubeClient(
        settings.connection,
        user_agent=f"{user_agent} ({platform.system().lower()})",
        observer=observed(on_call),
    )
    return Parent(
        api,
        settings.namespace,
        settings.cluster_uuid,
        on_circuit=on_circuit,
        host=lambda: api.host,
    )


class Parent:
    """The project of one cluster in its parent. Safe for use by several threads.

    namespace: the project. cluster_uuid: of the cluster, as its objects are labelled.
    """

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        api: client.Api,
        namespace: str,
        cluster_uuid: str,
        *,
        on_circuit: circuits.CircuitObserver = circuits.ignore,
        clock: Callable[[], float] = time.monotonic,
        host: Callable[[], str] = lambda: "",
    ) -> None:
        """clock: monotonic seconds. host: returns the URL of the API server in use."""
        self.api: client.Api = served_versions.ServedVersions(api)
        self._host = host
        self.namespace = namespace
        self.cluster_uuid = cluster_uuid
        self._circuits = circuits.Circuits((_SERVICE,), on_circuit, clock)
        self.clock = clock
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._stores: dict[str, tuple[stores.Store[Any], float]] = {}
        self._recoveries: list[Callable[[], None]] = []
        self._changed = threading.Condition()

    def location(self) -> str:
        """Return what an absence is of: the project, and the URL of its parent."""
        return f"{self.namespace} at {self._host()}"

    def close(self) -> None:
        """Stop all watches; nothing may be read from stores after it."""
        self._stop.set()

    # Watched stores.

    def store(self, kind: ParentKind[T]) -> stores.Store[T]:
        """Return the watched store of a kind; its watch begins at the first call."""
        return self._watched(kind)[0]

    def _watched(self, kind: ParentKind[T]) -> tuple[stores.Store[T], float]:
        """Return the store, and when its watch began, by the clock."""
        plural = kind.resource.plural
        with self._lock:
            known = self._stores.get(plural)
            if known is None:
                known = self._stores[plural] = self._begin(kind), self.clock()
        return known

    def _begin(self, kind: ParentKind[T]) -> stores.Store[T]:
        label_selector = (
            ownership.selector(self.cluster_uuid) if kind.is_of_cluster else ""
        )
        begun = stores.Store(
            self.api,
            kind.resource,
            kind.decode_type,
            namespace=self._namespace(kind),
            label_selector=label_selector,
            on_recovery=self._recover,
        )
        begun.subscribe(self._note_change)
        name = f"parent {kind.resource.plural}"
        threading.Thread(
            target=begun.run, args=(self._stop,), daemon=True, name=name
        ).start()
        return begun

    def _note_change(self, key: str, old: object, new: object) -> None:
        del key, old, new
        with self._changed:
            self._changed.notify_all()

    def items(self, kind: ParentKind[T]) -> Mapping[str, T]:
        """Return all objects of a kind by key, as the watch shows them now.

        Waits a little for the first list.

        Raises:
            CloudError: the store is not up to date, and why.
        """
        kept, began = self._watched(kind)
        while not kept.synced.is_set():
            if kept.failure is not None or self.clock() - began >= FIRST_LIST_S:
                break
            kept.synced.wait(_LOOK_S)
        operation = f"list {kind.resource.plural}"
        if kept.failure is not None:
            plural = kind.resource.plural
            raise refusals.error(kept.failure, operation, plural, "")
        if not kept.synced.is_set():
            raise errors.Unavailable("not listed yet", operation=operation)
        return kept.items()

    def find(self, kind: ParentKind[T], name: str) -> T | None:
        """Return an object from its store, or past it while our own write is missing.

        Raises:
            CloudError: it is not known.
        """
        kept, key = self.store(kind), self.key(kind, name)
        is_current = kept.is_current(key)
        # Read after that: what is newer still is current all the more.
        held = self.items(kind).get(key)
        return held if is_current else self.get(kind, name)

    def wait(
        self,
        kind: ParentKind[T],
        name: str,
        is_done: Callable[[T | None], bool],
        timeout_s: float,
    ) -> T | None:
        """Wait until an object, as its store shows it, is as needed; return it.

        No request is sent. After timeout_s it is returned as it is then; what was there
        before this process's own last write is never judged.
        """
        kept, key = self.store(kind), self.key(kind, name)
        deadline = self.clock() + timeout_s
        while True:
            with self._changed:
                is_current = kept.is_current(key)
                held = kept.get(key)
                left_s = deadline - self.clock()
                is_judged = is_current and kept.synced.is_set()
                if left_s <= 0 or (is_judged and is_done(held)):
                    return held
                self._changed.wait(min(left_s, _WAIT_S))

    def is_current(self, kind: ParentKind[T], name: str) -> bool:
        """Report whether the store has seen this process's last write to an object."""
        return self.store(kind).is_current(self.key(kind, name))

    def on_change(self, kind: ParentKind[T], fn: stores.Subscriber[T]) -> None:
        """Have `fn(key, old, new)` called at each change; see `Store.subscribe`."""
        self.store(kind).subscribe(fn)

    def on_recovery(self, fn: Callable[[], None]) -> None:
        """Have `fn()` called when a store is up to date again after a failure.

        A key that waits for its backoff need not wait any longer then. Others may still
        fail: some for good, where the parent does not serve their kind.
        """
        with self._lock:
            self._recoveries.append(fn)

    def _recover(self) -> None:
        """Report that the parent answers; called in the thread of a store."""
        self._circuits.close(_SERVICE)
        with self._lock:
            recoveries = tuple(self._recoveries)
        for fn in recoveries:
            fn()

    def key(self, kind: ParentKind[T], name: str) -> str:
        """Return the key of an object in its store."""
        return f"{self.namespace}/{name}" if kind.resource.namespaced else name

    def _namespace(self, kind: ParentKind[T]) -> str | None:
        return self.namespace if kind.resource.namespaced else None

    # Calls.

    def get(
        self, kind: ParentKind[T], name: str, timeout_s: float = TIMEOUT_S
    ) -> T | None:
        """Read one object directly; None: the parent reports that it does not exist.

        Raises:
            CloudError: it is not known, also when the parent does not serve the kind.
        """
        try:
            with self._call(kind, "get", name):
                body = self.api.read(
                    kind.resource, name, self._namespace(kind), timeout_s=timeout_s
                )
                return decoding.decode(body, kind.decode_type)
        except errors.NotFound:
            return None

    def list_labelled(
        self, kind: ParentKind[T], label_selector: str, timeout_s: float = TIMEOUT_S
    ) -> tuple[T, ...]:
        """List objects directly. timeout_s: of each page.

        Raises:
            CloudError: they are not known.
        """
        with self._call(kind, "list", ""):
            return listing.read(
                self.api,
                kind.resource,
                kind.decode_type,
                timeout_s=timeout_s,
                namespace=self._namespace(kind),
                selectors={"labelSelector": label_selector} if label_selector else {},
            ).items

    def serves(self, kind: ParentKind[T], timeout_s: float = TIMEOUT_S) -> bool:
        """Ask whether the parent serves a kind: one discovery of its API group.

        Raises:
            CloudError: it is not known.
        """
        resource = kind.resource
        path = f"/apis/{resource.group}/{resource.version}"
        with self._call(kind, "discover", ""):
            try:
                body = self.api.request("GET", path, timeout_s=timeout_s)
            except kube_errors.NotFound:
                return False
            group = decoding.decode(body, _ServedGroup)
        return any(served.name == resource.plural for served in group.resources)

    def create(
        self, kind: ParentKind[T], document: Json, timeout_s: float = TIMEOUT_S
    ) -> T:
        """Create an object; return it. document: without apiVersion and kind.

        Raises:
            CloudError: it was refused, or the outcome is unknown.
        """
        typed = {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            **document,
        }
        metadata = typed.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
        with self._call(kind, "create", name):
            body = self.api.create(
                kind.resource,
                msgspec.json.encode(typed),
                self._namespace(kind),
                timeout_s=timeout_s,
            )
            return self._noted(kind, body)

    def patch(
        self,
        kind: ParentKind[T],
        name: str,
        document: Json,
        timeout_s: float = TIMEOUT_S,
    ) -> T:
        """Change an object by a merge patch; return it.

        With metadata.resourceVersion it is refused (Busy) after a change by others.

        Raises:
            CloudError: it was refused, or the outcome is unknown.
        """
        with self._call(kind, "patch", name):
            body = self.api.patch(
                kind.resource,
                name,
                msgspec.json.encode(document),
                self._namespace(kind),
                timeout_s=timeout_s,
            )
            return self._noted(kind, body)

    def delete(
        self,
        kind: ParentKind[T],
        name: str,
        uid: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Delete an object. uid: of the one that is meant; another stays (Busy).

        Raises:
            NotFound: it does not exist.
            CloudError: it was refused, or the outcome is unknown.
        """
        options = {"preconditions": {"uid": uid}} if uid else None
        with self._call(kind, "delete", name):
            self.api.delete(
                kind.resource,
                name,
                self._namespace(kind),
                body=None if options is None else msgspec.json.encode(options),
                timeout_s=timeout_s,
            )
        self.store(kind).note_write(self.key(kind, name), None)

    def delete_labelled(
        self,
        kind: ParentKind[T],
        labels: Mapping[str, str],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Delete all objects with these labels, by one request.

        Raises:
            ValueError: there is no label, so that all objects would be deleted.
            CloudError: it was refused, or the outcome is unknown.
        """
        if not labels or not all(labels.values()):
            raise ValueError(f"labels of what is to be deleted: {dict(labels)}")
        selector = ",".join(f"{label}={value}" for label, value in labels.items())
        with self._call(kind, "delete", ""):
            body = self.api.request(
                "DELETE",
                kind.resource.path(self._namespace(kind)),
                query={"labelSelector": selector},
                timeout_s=timeout_s,
            )
            deleted = objects.decode_list(body, objects.Bare).items
        for row in deleted:
            self.store(kind).note_write(row.metadata.key, None)

    def _noted(self, kind: ParentKind[T], body: bytes) -> T:
        written = decoding.decode(body, kind.decode_type)
        self.expect(kind, written)
        return written

    def expect(self, kind: ParentKind[T], value: T) -> None:
        """Have no reader get what was there before this state of an object."""
        metadata = value.metadata
        self.store(kind).note_write(metadata.key, metadata.resource_version)

    @contextlib.contextmanager
    def _call(self, kind: ParentKind[T], verb: str, name: str) -> Iterator[None]:
        """Surround one call; refusals of the parent become those of clouds."""
        plural = kind.resource.plural
        operation = f"{verb} {kind.singular if name else plural}"
        with self._circuits.call(_SERVICE, operation):
            try:
                yield
            except kube_errors.KubeError as refusal:
                raise refusals.error(refusal, operation, plural, name) from refusal
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                text = "the parent's answer is not what it should be"
                raise errors.Unavailable(
                    text, operation=operation, resource=name
                ) from error
