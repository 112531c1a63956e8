"""The fake's database: objects, versions and history.

Not safe for threads by itself; `FakeApi` holds a lock around it.
"""

import dataclasses
import datetime
from collections.abc import Callable, Mapping

from lib.kube import errors
from lib.kube.fake import documents
from lib.kube.fake.documents import Json

Kind = tuple[str, str]
"""Group and plural."""
HISTORY_MAX = 10_000
CONFIG_MAPS: Kind = ("", "configmaps")
CONFIG_MAP_BYTES = 1024 * 1024
"""Source: Kubernetes core/v1 ConfigMap and pkg/apis/core/validation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One write; old or new is None at the ends of an object's life."""

    version: int
    kind: Kind
    old: Json | None
    new: Json | None

    def event(self, query: Mapping[str, str], namespace: str | None) -> Json | None:
        """Return what a watch with these selectors sees of it, if anything."""

        def seen(document: Json | None) -> bool:
            return (
                document is not None
                and namespace in (None, documents.text(document, "namespace"))
                and documents.is_selected(document, query)
            )

        if seen(self.new):
            return {
                "type": "MODIFIED" if seen(self.old) else "ADDED",
                "object": self.new,
            }
        if seen(self.old) and self.old is not None:
            last = self.new if self.new is not None else self.old
            versioned: Json = {"resourceVersion": str(self.version)}
            return {
                "type": "DELETED",
                "object": documents.with_metadata(last, versioned),
            }
        return None


class Database:
    """All objects, by kind."""

    def __init__(self, now: Callable[[], datetime.datetime]) -> None:
        self._now = now
        self._objects: dict[Kind, dict[tuple[str, str], Json]] = {}
        self._uids = 0
        self.version = 1
        self.oldest = 1
        """History before this version is forgotten."""
        self.history: list[Change] = []

    def copy(self, now: Callable[[], datetime.datetime]) -> "Database":
        """Return another one with the same objects and without their history."""
        other = Database(now)
        other._objects = {kind: dict(kept) for kind, kept in self._objects.items()}
        other._uids, other.version = self._uids, self.version
        other.oldest = self.version
        return other

    def get(self, kind: Kind, key: tuple[str, str], operation: str) -> Json:
        """Return one object.

        Raises:
            NotFound: it isn't there.
        """
        stored = self._objects.get(kind, {}).get(key)
        if stored is None:
            raise errors.NotFound(
                f'{kind[1]} "{key[1]}" not found',
                operation=operation,
                status=404,
                reason="NotFound",
                about=f"{kind[1]}/{key[1]}",
            )
        return stored

    def select(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str]
    ) -> list[Json]:
        """Return the selected objects of a kind, in the order of their keys."""
        return [
            value
            for key, value in sorted(self._objects.get(kind, {}).items())
            if namespace in (None, key[0]) and documents.is_selected(value, query)
        ]

    def create(self, kind: Kind, document: Json, operation: str) -> Json:
        """Put a new object in.

        Raises:
            AlreadyExists, Invalid: as the API server does.
        """
        key = documents.key(document)
        if not key[1]:
            raise invalid("metadata.name: Required value", operation)
        if documents.text(document, "resourceVersion"):
            raise invalid("resourceVersion should not be set", operation, 400)
        if key in self._objects.get(kind, {}):
            raise errors.AlreadyExists(
                f'{kind[1]} "{key[1]}" already exists',
                operation=operation,
                status=409,
                reason="AlreadyExists",
            )
        _require_size(kind, document, operation)
        self._uids += 1
        born: Json = {
            "uid": f"uid-{self._uids}",
            "generation": 1,
            "creationTimestamp": self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return self._commit(kind, None, documents.with_metadata(document, born))

    def update(self, kind: Kind, old: Json, new: Json, operation: str) -> Json:
        """Put `new` in place of `old`; nothing happens when they are the same.

        Raises:
            Conflict: the resourceVersion or uid that `new` holds is another. Invalid:
            a ConfigMap is too large.
        """
        for field in ("resourceVersion", "uid"):
            if documents.text(new, field) not in ("", documents.text(old, field)):
                raise conflict(kind, documents.text(old, "name"), operation)
        kept = {
            name: documents.metadata(old).get(name)
            for name in (
                *("name", "namespace", "uid", "resourceVersion", "generation"),
                *("creationTimestamp", "deletionTimestamp"),
            )
        }
        new = documents.with_metadata(new, kept)
        if new == old:
            return old
        _require_size(kind, new, operation)
        finalizers = documents.metadata(new).get("finalizers")
        if documents.text(old, "deletionTimestamp") and not finalizers:
            self._commit(kind, old, None)
            return new
        if new.get("spec") != old.get("spec"):
            generation = int(documents.text(old, "generation") or "1") + 1
            new = documents.with_metadata(new, {"generation": generation})
        return self._commit(kind, old, new)

    def delete(self, kind: Kind, old: Json) -> None:
        """Delete an object, or set its deletion time as long as it has finalizers."""
        if not documents.metadata(old).get("finalizers"):
            self._commit(kind, old, None)
        elif not documents.text(old, "deletionTimestamp"):
            mark: Json = {
                "deletionTimestamp": self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
            }
            self._commit(kind, old, documents.with_metadata(old, mark))

    def _commit(self, kind: Kind, old: Json | None, new: Json | None) -> Json:
        self.version += 1
        objects = self._objects.setdefault(kind, {})
        if new is not None:
            versioned: Json = {"resourceVersion": str(self.version)}
            new = documents.with_metadata(new, versioned)
            objects[documents.key(new)] = new
        elif old is not None:
            del objects[documents.key(old)]
        self.history.append(Change(self.version, kind, old, new))
        if len(self.history) > HISTORY_MAX:
            self.forget_before(self.history[HISTORY_MAX // 2].version)
        return new or {}

    def forget_before(self, version: int) -> None:
        """Forget the history up to this version, as a compaction does."""
        self.oldest = version
        self.history = [c for c in self.history if c.version >= version]


def _require_size(kind: Kind, document: Json, operation: str) -> None:
    data = document.get("data") if kind == CONFIG_MAPS else None
    texts = data.values() if isinstance(data, Mapping) else ()
    if sum(len(str(text).encode()) for text in texts) > CONFIG_MAP_BYTES:
        why = f"Too long: must have at most {CONFIG_MAP_BYTES} bytes"
        raise invalid(f"ConfigMap is invalid: []: {why}", operation)


def invalid(message: str, operation: str, status: int = 422) -> errors.Invalid:
    """Return the error for a malformed object."""
    return errors.Invalid(message, operation=operation, status=status, reason="Invalid")


def conflict(kind: Kind, name: str, operation: str) -> errors.Conflict:
    """Return the error for an object that has changed."""
    return errors.Conflict(
        f'Operation cannot be fulfilled on {kind[1]} "{name}":'
        " the object has been modified",
        operation=operation,
        status=409,
        reason="Conflict",
    )
