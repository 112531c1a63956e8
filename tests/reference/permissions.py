"""Tables of permissions in Kubernetes: the rules of the charts with their comments."""

import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tests.reference import sheets

FILES = "charts/*/files/rbac*.yaml"
HEADS = ("role", "namespace", "API group", "resources", "names", "verbs", "purpose")
_RULE = re.compile(r"^  - apiGroups:")
_COMMENT = re.compile(r"^ *# (.*)$")


def tables() -> sheets.Tables:
    """Return a table per file of a chart."""
    paths = sorted(pathlib.Path().glob(FILES))
    return {
        f"{path.parts[1]} {path.name}": sheets.table(HEADS, list(rows(path)))
        for path in paths
    }


def rows(path: pathlib.Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each rule of a file."""
    text = path.read_text()
    purposes = iter(comments(text))
    for document in yaml.safe_load_all(text):
        for rule in document.get("rules") or ():
            yield _row(document["metadata"], rule, next(purposes))


def _row(
    about: Mapping[str, str], rule: Mapping[str, Any], purpose: str
) -> tuple[str, ...]:
    groups = [group or "core" for group in rule.get("apiGroups", ())]
    resources = rule.get("resources") or rule.get("nonResourceURLs", ())
    return (
        sheets.code(about["name"]),
        about.get("namespace", "all"),
        ", ".join(groups),
        _codes(resources),
        _codes(rule.get("resourceNames", ())),
        ", ".join(rule["verbs"]),
        purpose,
    )


def _codes(texts: Sequence[str]) -> str:
    return ", ".join(map(sheets.code, texts))


def comments(text: str) -> Iterator[str]:
    """Yield the comment above each rule, or within it; empty: it has none."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _RULE.match(line) or line.startswith("  - nonResourceURLs:"):
            yield " ".join((*_above(lines, number), *_within(lines, number)))


def _above(lines: Sequence[str], number: int) -> Sequence[str]:
    above: list[str] = []
    for line in reversed(lines[:number]):
        if not (match := _COMMENT.match(line)) or not line.startswith("  #"):
            break
        above.insert(0, match[1])
    return above


def _within(lines: Sequence[str], number: int) -> Iterator[str]:
    for line in lines[number + 1 :]:
        if not line.startswith("    "):
            return
        if match := _COMMENT.match(line):
            yield match[1]
