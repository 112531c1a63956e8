"""Tables in Markdown, built from rows of the code, and the pages that they fill."""

import ast
import dataclasses
import functools
import pathlib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence

from lib.process.documented import Documented
from tests.harness.structure import sources

Rows = Sequence[Sequence[str]]
Tables = Mapping[str, str]
"""The generated parts of a page by name: tables, some with headings."""

COMMAND = "./pants run tests/reference/generate.py"
_PART = re.compile(r"(<!-- table: ([^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, tables: Tables) -> str:
    """Return the text of a page with its tables replaced; the rest is by hand.

    Raises:
        ValueError: a table has no place in the page, or several, or a place no table.
    """
    places = [match[2] for match in _PART.finditer(text)]
    if sorted(places) != sorted(tables):
        lacking, surplus = set(tables) - set(places), set(places) - set(tables)
        raise ValueError(f"page without {lacking}, with {surplus} or one twice")
    return _PART.sub(lambda match: match[1] + tables[match[2]] + match[3], text)


def table(heads: Sequence[str], rows: Rows) -> str:
    """Return a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        "|" + "|".join(line) + "|\n" if line[0] == "---" else f"{_row(line)}\n"
        for line in lines
    )


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def code(text: str) -> str:
    """Return a text in code font; nothing for an empty text."""
    return f"`{text}`" if text else ""


def names(text: str) -> list[str]:
    """Return the first cell of each row of a page, without code font."""
    cells = (line[2:].split(" | ")[0] for line in text.splitlines() if line[:2] == "| ")
    return [cell.strip("`") for cell in cells if cell.startswith("`")]


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a module with its text. text: None: it has none."""

    name: str
    value: str
    text: Documented | None


def constants(module: types.ModuleType) -> Iterator[Constant]:
    """Yield the constants of a module whose values are texts."""
    hints = typing.get_type_hints(module, include_extras=True)
    for name, value in vars(module).items():
        if name.isupper() and not name.startswith("_") and isinstance(value, str):
            yield Constant(name, value, documented(hints.get(name)))


def named(module: types.ModuleType, name: str) -> Constant:
    """Return one constant of a module."""
    return next(constant for constant in constants(module) if constant.name == name)


def documented(hint: object) -> Documented | None:
    """Return the text of an annotated type."""
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Documented):
            return extra
    return None


def parsed(path: str) -> ast.Module:
    """Return the syntax tree of a file."""
    return sources.tree(path)


def product() -> Mapping[str, ast.Module]:
    """Return the files of the programs: without the lab, fakes and generated code."""
    return {
        path.as_posix(): parsed(path.as_posix())
        for folder in ("lib", "cmd")
        for path in sorted(pathlib.Path(folder).rglob("*.py"))
        if not path.as_posix().startswith(("lib/lab/", "lib/csi/spec/"))
        and "fake" not in path.parts
    }


@functools.cache
def calls(tree: ast.AST) -> tuple[tuple[str, str, ast.Call], ...]:
    """Return receiver, function and call of every call in a tree."""
    return tuple(_calls(tree))


def _calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id=receiver), attr=name):
                    yield receiver, name, node
                case ast.Attribute(value=value, attr=name):
                    yield ast.unparse(value), name, node
                case ast.Name(id=name):
                    yield "", name, node


def texts(nodes: Sequence[ast.AST] | Iterator[ast.AST]) -> Iterator[str]:
    """Yield the values of constants that are texts."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    """Yield all arguments of a call."""
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)
