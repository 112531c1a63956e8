"""The objects of the engine: in memory, and on disk, so that a restart keeps them.

Rules: an object is a type of the SDK; what its API does not show is in `extra`. A
change replaces nested objects and never alters them, so that a refused request can be
undone. Not safe for several threads: the engine has one lock.
"""

import copy
import dataclasses
import json
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import ovirtsdk4
from ovirtsdk4 import reader, readers, types, writer, writers

del readers, writers  # imported to register themselves

Entity = Any
"""An object of `ovirtsdk4.types`, which ships no types of its own."""


def _set_defaults() -> None:
    """Have each type of the SDK hold the defaults that its objects repeat.

    A VM has 140 members, and nearly all are None: 5,000 of them need 190 MB otherwise.
    """
    for kind in vars(types).values():
        if isinstance(kind, type) and issubclass(kind, ovirtsdk4.Struct):
            for name, member in tuple(vars(kind).items()):
                if isinstance(member, property):
                    setattr(kind, f"_{name}", None)


_set_defaults()


def slim(entity: Entity) -> Entity:
    """Remove the unset members of an object; return it."""
    members = {name: value for name, value in vars(entity).items() if value is not None}
    entity.__dict__ = members
    for value in members.values():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, ovirtsdk4.Struct):
                slim(item)
    return entity


@dataclasses.dataclass(slots=True)
class EngineRecord:
    """One object. key: its ID, within its parent where it has one.

    extra: of JSON types.
    """

    kind: str
    key: str
    entity: Entity = None
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


class Records:
    """All objects by kind and key."""

    def __init__(self, path: pathlib.Path | None) -> None:
        """path: of the database; None: nothing is kept."""
        self._rows: dict[str, dict[str, EngineRecord]] = {}
        self._inner: dict[tuple[str, str], dict[str, EngineRecord]] = {}
        self._undo: dict[tuple[str, str], EngineRecord | None] = {}
        self._database = sqlite3.connect(
            ":memory:" if path is None else path,
            check_same_thread=False,
            isolation_level=None,
        )
        self._is_kept = path is not None
        # A killed process loses nothing by it, a machine without power might.
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("PRAGMA journal_mode=MEMORY")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS records (kind TEXT, key TEXT, document TEXT,"
            " extra TEXT, PRIMARY KEY (kind, key))"
        )
        self._load()

    def _load(self) -> None:
        rows = self._database.execute(
            "SELECT kind, key, document, extra FROM records ORDER BY rowid"
        )
        for kind, key, document, extra in rows:
            entity = slim(reader.Reader.read(document)) if document else None
            record = EngineRecord(kind, key, entity, json.loads(extra))
            self._set(record)

    def _set(self, record: EngineRecord) -> None:
        """Keep an object, also by what it is in."""
        self._rows.setdefault(record.kind, {})[record.key] = record
        place = record.kind, record.key.rpartition("/")[0]
        if place[1]:
            self._inner.setdefault(place, {})[record.key] = record

    def _drop(self, kind: str, key: str) -> None:
        self._rows.get(kind, {}).pop(key, None)
        self._inner.get((kind, key.rpartition("/")[0]), {}).pop(key, None)

    def within(self, kind: str, parent: str) -> Iterator[EngineRecord]:
        """Return the objects of a kind in another one, in the order of creation."""
        return iter(tuple(self._inner.get((kind, parent), {}).values()))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def is_empty(self) -> bool:
        """Report whether nothing was ever created."""
        return not any(self._rows.values())

    def all(self, kind: str) -> Iterator[EngineRecord]:
        """Return the objects of a kind in the order of creation."""
        return iter(tuple(self._rows.get(kind, {}).values()))

    def get(self, kind: str, key: str) -> EngineRecord | None:
        """Return an object; None: it does not exist."""
        return self._rows.get(kind, {}).get(key)

    def put(self, record: EngineRecord) -> EngineRecord:
        """Create an object, or replace it."""
        self._remember(record.kind, record.key)
        if record.entity is not None:
            slim(record.entity)
        self._set(record)
        return record

    def change(self, record: EngineRecord) -> EngineRecord:
        """Return an object to be changed: its attributes, not what those hold."""
        self._remember(record.kind, record.key)
        return record

    def remove(self, record: EngineRecord) -> None:
        """Remove an object; fine when it does not exist."""
        self._remember(record.kind, record.key)
        self._drop(record.kind, record.key)

    def _remember(self, kind: str, key: str) -> None:
        if (kind, key) in self._undo:
            return
        old = self.get(kind, key)
        if old is not None:
            entity, extra = copy.copy(old.entity), copy.deepcopy(old.extra)
            old = EngineRecord(kind, key, entity, extra)
        self._undo[kind, key] = old

    def commit(self) -> None:
        """Write all changes to the disk, together."""
        changed, self._undo = self._undo, {}
        if not changed or not self._is_kept:
            return
        self._database.execute("BEGIN")
        for kind, key in changed:
            self._write(kind, key)
        self._database.execute("COMMIT")

    def _write(self, kind: str, key: str) -> None:
        record = self.get(kind, key)
        if record is None:
            self._database.execute(
                "DELETE FROM records WHERE kind=? AND key=?", (kind, key)
            )
            return
        document = "" if record.entity is None else writer.Writer.write(record.entity)
        self._database.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT (kind, key)"
            " DO UPDATE SET document=excluded.document, extra=excluded.extra",
            (kind, key, document, json.dumps(record.extra)),
        )

    def rollback(self) -> None:
        """Undo all changes since the last commit."""
        changed, self._undo = self._undo, {}
        for (kind, key), old in changed.items():
            if old is None:
                self._drop(kind, key)
            else:
                self._restore(old)

    def _restore(self, old: EngineRecord) -> None:
        present = self.get(old.kind, old.key)
        if present is None:
            self._set(old)
            return
        present.entity, present.extra = old.entity, old.extra
