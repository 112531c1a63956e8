"""A change of a cluster's configuration that destroys resources. Pure."""

import dataclasses
from collections.abc import Mapping

from lib.discovery import findings


@dataclasses.dataclass(frozen=True, slots=True)
class UnsafeChange:
    """One change that may have been made by accident.

    before, after: as shown to the user; "nothing" for a field that is not set.
    """

    field: str
    before: str
    after: str
    effect: str

    def __str__(self) -> str:
        return f"{self.field}: from {self.before} to {self.after}: {self.effect}"


def at(document: Mapping[str, object], field: str) -> object:
    """Return the value of a field, such as "provider.region"; None: not set."""
    value: object = document
    for part in field.split("."):
        value = value.get(part) if findings.is_document(value) else None
    return value


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    return "nothing" if value is None else repr(value)
