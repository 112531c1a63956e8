"""Collects the problems of many documents, so that all are reported together."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeGuard, TypeVar

from lib.process import config

Document = Mapping[str, object]

_Read = TypeVar("_Read")


class SourceFindings:
    """Problems so far; each names its document."""

    def __init__(self) -> None:
        self._problems: list[config.FieldProblem] = []

    def add(self, label: str, problems: Iterable[config.FieldProblem]) -> None:
        """Note problems of one document; label: its name for the user."""
        for problem in problems:
            field = f"{label} {problem.field}".strip()
            self._problems.append(dataclasses.replace(problem, field=field))

    def part(self, label: str, read: Callable[[], _Read]) -> _Read | None:
        """Read one document; None, with its problems noted, when it is invalid."""
        try:
            return read()
        except config.ConfigError as error:
            known = [
                problem
                for problem in error.problems
                if isinstance(problem, config.FieldProblem)
            ]
            self.add(label, known)
            return None

    def require(self) -> None:
        """Raise if there are problems.

        Raises:
            ConfigError: with all of them.
        """
        config.require(self._problems)


def is_document(value: object) -> TypeGuard[Document]:
    """Report whether a decoded value is an object."""
    return isinstance(value, Mapping)


def part_of(document: Document, *path: str) -> Document:
    """Return an object inside an object; an empty one when it is absent."""
    value: object = document
    for name in path:
        value = value.get(name) if is_document(value) else None
    return value if is_document(value) else {}


def text_of(document: Document, name: str) -> str:
    """Return a text; empty when it is absent."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def name_of(document: Document) -> str:
    """Return metadata.name."""
    return text_of(part_of(document, "metadata"), "name")
