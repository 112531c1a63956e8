"""XML of the API: read and written by the SDK; links and checks are added here.

The SDK's Reader drops what it does not know, and its Writer writes no links. So a
request is written again and compared, and links are inserted into what is written.
"""

import enum
import inspect
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import ovirtsdk4
from ovirtsdk4 import reader, types, writer

from lib.lab.zvirt import kinds
from lib.lab.zvirt.records import Entity

_OPENED = re.compile(r'<([a-z_]+) href="(/ovirt-engine/api/[^"]*)" id="([^"]*)">')
"""An object with content. A reference without content is closed in its first tag."""


class Malformed(ValueError):
    """A body is no document of the expected type."""


def read(body: bytes, tag: str) -> tuple[Entity, ElementTree.Element]:
    """Return the object of a request, and its XML.

    Raises:
        Malformed: with the reason.
    """
    if not body.strip():
        raise Malformed("the body is empty")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 # the lab is on loopback
    except ElementTree.ParseError as error:
        raise Malformed(f"the body is not XML: {error}") from error
    if root.tag != tag:
        raise Malformed(f"expected element {tag}, found {root.tag}")
    try:
        return reader.Reader.read(body), root
    except (ovirtsdk4.Error, ValueError) as error:
        raise Malformed(str(error)) from error


def lost(entity: Entity, root: ElementTree.Element) -> Iterator[tuple[str, str, bool]]:
    """Yield what the Reader did not understand: path, text, and whether it is an enum.

    Each: the element has no place in its type, or its value is not of an enumeration.
    """
    # Without a root, an empty Action would be written as nothing.
    text = writer.Writer.write(entity, root=root.tag)
    written = ElementTree.fromstring(text)  # noqa: S314 # written here
    known = set(_paths(written, ""))
    for path, text in _leaves(root, ""):
        if path not in known:
            yield path, text, _is_enum(type(entity), path.split("/"))


def _paths(element: ElementTree.Element, prefix: str) -> Iterator[str]:
    for child in element:
        path = f"{prefix}{child.tag}"
        yield path
        yield from _paths(child, f"{path}/")


def _leaves(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for child in element:
        path = f"{prefix}{child.tag}"
        if len(child):
            yield from _leaves(child, f"{path}/")
        elif child.tag != "link" and (child.text or child.attrib):
            yield path, (child.text or "").strip()


def _is_enum(kind: type, names: Sequence[str]) -> bool:
    """Report whether a path leads to an enumeration, by the SDK's own setters."""
    attribute = inspect.getattr_static(kind, names[0], None)
    if not isinstance(attribute, property) or attribute.fset is None:
        return False
    for name in attribute.fset.__code__.co_names:
        member = getattr(types, name, None)
        if not inspect.isclass(member) or name == "Struct":
            continue
        if issubclass(member, enum.Enum):
            return len(names) == 1
        return len(names) > 1 and _is_enum(member, names[1:])
    return False


def elements(root: ElementTree.Element) -> set[str]:
    """Return the names of all elements directly in a document."""
    return {child.tag for child in root} - {"link", "actions"}


def write(entity: Entity, followed: Collection[str] = ()) -> bytes:
    """Return the document of one object. followed: collections that it contains."""
    return _linked(writer.Writer.write(entity), followed)


def write_list(
    entities: Sequence[Entity], root: str, followed: Collection[str] = ()
) -> bytes:
    """Return the document of a collection. root: its tag."""
    return _linked(writer.Writer.write(list(entities), root=root), followed)


def _linked(text: str, followed: Collection[str]) -> bytes:
    def insert(match: re.Match[str]) -> str:
        kind = kinds.KINDS.get(match[1])
        return match[0] + ("" if kind is None else _links(kind, match[2], followed))

    return _OPENED.sub(insert, text).encode()


def _links(kind: kinds.Kind, href: str, followed: Collection[str]) -> str:
    actions = "".join(
        f'<link href="{href}/{action}" rel="{action}"/>' for action in kind.actions
    )
    links = "".join(
        f'<link href="{href}/{link}" rel="{link}"/>'
        for link in kind.links
        if link not in followed
    )
    return f"<actions>{actions}</actions>{links}" if actions else links


def fault(reason: str, detail: str) -> bytes:
    """Return the document of a refusal."""
    document: str = writer.Writer.write(types.Fault(reason=reason, detail=detail))
    return document.encode()


def refer(entity: Entity, parent: str = "", parent_kind: str = "") -> Entity:
    """Set the paths of an object and of all that it refers to; return it.

    parent, parent_kind: what it is in.
    """
    kind = kinds.BY_TYPE.get(type(entity).__name__)
    if kind is not None and entity.id is not None:
        entity.href = kinds.path(kind.name, entity.id, parent, parent_kind)
    return refer_members(entity)


def refer_members(entity: Entity) -> Entity:
    """Set the paths of all that an object refers to; return it."""
    for member in tuple(vars(entity).values()):
        for value in member if isinstance(member, list) else (member,):
            _refer_member(value)
    return entity


def _refer_member(value: Any) -> None:
    if not isinstance(value, ovirtsdk4.Struct):
        return
    kind = kinds.BY_TYPE.get(type(value).__name__)
    if kind is not None and value.id is not None and not kind.parent:
        value.href = kinds.path(kind.name, value.id)
