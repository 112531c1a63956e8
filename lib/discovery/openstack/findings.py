"""Gathers the problems of many documents, so that all are told at once."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeGuard, TypeVar

from lib.process import config

Document = Mapping[str, object]

_Read = TypeVar("_Read")


class SourceFindings:
    """What is wrong so far; each problem names the document it was found in."""

    def __init__(self) -> None:
        self._problems: list[config.FieldProblem] = []

    def add(self, label: str, problems: Iterable[config.FieldProblem]) -> None:
        """Note problems of one document; label: how the user knows it."""
        for problem in problems:
            field = f"{label} {problem.field}".strip()
            self._problems.append(dataclasses.replace(problem, field=field))

    def part(self, label: str, read: Callable[[], _Read]) -> _Read | None:
        """Read one document; None, with its problems noted, when it is wrong."""
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
        """Go on only without problems.

        Raises:
            ConfigError: with all of them.
        """
        config.require(self._problems)


def is_document(value: object) -> TypeGuard[Document]:
    """Report whether a decoded value is an object."""
    return isinstance(value, Mapping)


def part_of(document: Document, *path: str) -> Document:
    """Return an object inside an object; an empty one when it is not there."""
    value: object = document
    for name in path:
        value = value.get(name) if is_document(value) else None
    return value if is_document(value) else {}


def text_of(document: Document, name: str) -> str:
    """Return a text, an empty one when there is none."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def name_of(document: Document) -> str:
    """Return metadata.name."""
    return text_of(part_of(document, "metadata"), "name")
