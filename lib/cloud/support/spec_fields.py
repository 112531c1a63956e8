"""Reads fields of a spec, and collects what is wrong with them. Pure."""

from collections.abc import Collection, Iterator, Mapping

from lib.process import config

Json = Mapping[str, object]


class SpecFields:
    """The spec of one object. problems: of all fields that were read so far."""

    def __init__(self, spec: Json) -> None:
        self._spec = spec
        self.problems: list[config.FieldProblem] = []

    def reject(self, field: str, value: object, expected: str) -> None:
        """Note the problem of a field. expected: read after "must be"."""
        text = "" if value is None else str(value)
        self.problems.append(config.required(f"spec.{field}", text, expected))

    def at(self, field: str) -> object:
        """Return the value at a path with dots; None without one."""
        value: object = self._spec
        for name in field.split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
        return value

    def text(self, field: str, expected: str) -> str:
        """Return a text that is required."""
        value = self.at(field)
        if isinstance(value, str) and value:
            return value
        self.reject(field, value, expected)
        return ""

    def optional(self, field: str, expected: str) -> str:
        """Return a text; empty without one."""
        return self.text(field, expected) if self.at(field) not in (None, "") else ""

    def choice(self, field: str, values: Collection[str], default: str = "") -> str:
        """Return one of some words."""
        value = self.at(field)
        if value in (None, ""):
            return default
        if isinstance(value, str) and value in values:
            return value
        self.reject(field, value, f"one of {', '.join(values)}")
        return default

    def number(self, field: str, default: int) -> int:
        """Return a whole number above 0."""
        value = self.at(field)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        self.reject(field, value, "a whole number above 0")
        return default

    def words(self, field: str) -> dict[str, str]:
        """Return a map of texts."""
        value = self.at(field)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            words = {str(key): item for key, item in value.items()}
            texts = {k: item for k, item in words.items() if isinstance(item, str)}
            if texts == words:
                return texts
        self.reject(field, value, "a map of texts")
        return {}

    def rows(self, field: str) -> Iterator[tuple[str, Json]]:
        """Yield each object of a list, with its path."""
        value = self.at(field)
        if value is not None and not isinstance(value, list | tuple):
            self.reject(field, value, "a list")
            return
        for number, row in enumerate(value or ()):
            if isinstance(row, Mapping):
                yield f"{field}[{number}]", row
            else:
                self.reject(f"{field}[{number}]", row, "an object")
