"""Documents of the API: read and written by the SDK, and what it loses is kept.

The SDK reads a value of an enumeration that it does not know as None.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import ovirtsdk4
from ovirtsdk4 import reader, readers, types, writer, writers

del readers, writers  # imported to register themselves

Entity = Any
"""An object of `ovirtsdk4.types`, which ships no types of its own."""


class Malformed(ValueError):
    """A body is no document of the API."""


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One object. status: as the engine sent it; empty: it sent none.

    Decisions are made by this text: one that no table lists is unknown.
    """

    entity: Entity
    status: str = ""

    @property
    def id(self) -> str:
        """ID of the object."""
        return str(self.entity.id)


def write(entity: Entity) -> bytes:
    """Return the document of an object; text is escaped by the SDK, and by it alone."""
    text: str = writer.Writer.write(entity)
    return text.encode()


def one(body: bytes) -> Item:
    """Read one object.

    Raises:
        Malformed: it is not one.
    """
    entity = _read(body)
    if not isinstance(entity, ovirtsdk4.Struct):
        raise Malformed("not one object")
    is_known = getattr(entity, "status", "") is not None
    return _item(entity, {} if is_known else _statuses(body))


def many(body: bytes) -> tuple[Item, ...]:
    """Read a collection.

    Raises:
        Malformed: it is malformed.
    """
    entities = _read(body)
    if not isinstance(entities, list):
        raise Malformed("not a collection")
    is_known = all(getattr(entity, "status", "") is not None for entity in entities)
    statuses = {} if is_known else _statuses(body)
    return tuple(_item(entity, statuses) for entity in entities)


def _read(body: bytes) -> Any:
    try:
        return reader.Reader.read(body)
    except Exception as error:  # the SDK raises bare exceptions for malformed XML
        raise Malformed(str(error)) from error


def _item(entity: Entity, statuses: Mapping[str | None, str]) -> Item:
    status = getattr(entity, "status", None)
    text = getattr(status, "value", status)
    if not isinstance(text, str):  # the root of the API has no ID
        text = statuses.get(getattr(entity, "id", None), "")
    return Item(_slim(entity), text)


def _statuses(body: bytes) -> Mapping[str | None, str]:
    """Return the texts of all statuses by ID of their object."""
    root = ElementTree.fromstring(body)  # noqa: S314 # libexpat limits expansion
    elements = (root, *root)
    return {
        element.get("id"): text.strip()
        for element in elements
        if (text := element.findtext("status"))
    }


def _set_defaults() -> None:
    """Have each type of the SDK hold the defaults that its objects repeat.

    A VM has 140 members, and nearly all are None.
    """
    for kind in vars(types).values():
        if isinstance(kind, type) and issubclass(kind, ovirtsdk4.Struct):
            for name, member in tuple(vars(kind).items()):
                if isinstance(member, property):
                    setattr(kind, f"_{name}", None)


_set_defaults()


def _slim(entity: Entity) -> Entity:
    """Remove the unset members of an object; return it."""
    members = {name: value for name, value in vars(entity).items() if value is not None}
    entity.__dict__ = members
    for value in members.values():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, ovirtsdk4.Struct):
                _slim(item)
    return entity
