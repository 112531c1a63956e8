"""Makes names from a cloud or a cluster safe for a terminal."""

import dataclasses
import enum
from typing import TypeVar

T = TypeVar("T")


def text(value: str) -> str:
    """Return a text whose control characters are escaped, as "\\x1b"."""
    if value.isprintable():
        return value
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in value
    )


def deep(value: T) -> T:
    """Return a value in which every text is escaped: dataclasses and tuples too."""
    return _deep(value)  # type: ignore[return-value]  # the same type comes back


def _deep(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return tuple(map(_deep, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        changes = {field.name: _deep(getattr(value, field.name)) for field in fields}
        return dataclasses.replace(value, **changes)
    return value
