"""No module imports itself by way of others, not even inside a function.

Pants' rules and mypy allow it within a package; a reader finds no place to begin.
"""

import ast
import pathlib
from collections.abc import Iterator, Mapping

import pytest

ROOT = pathlib.Path()
SOURCES = ("", "cmd")
"""Folders from which imports are resolved. Source: pants.toml, root_patterns."""
FOLDERS = ("lib", "cmd", "tests")


def modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the files of all modules and packages, by their names."""
    result = {}
    for folder in FOLDERS:
        start = root / ("cmd" if folder == "cmd" else "")
        for file in (root / folder).rglob("*.py"):
            parts = file.relative_to(start).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            result[name] = file
    return result


def imports(file: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import, also of those inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def graph(root: pathlib.Path) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    files = modules(root)
    result: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for module, attribute in imports(file):
            inner = f"{module}.{attribute}"
            result[name].add(inner if inner in files else module)
    return {name: (row & files.keys()) - {name} for name, row in result.items()}


def circles(edges: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that are part of a circle: what remains without any end.

    A module without imports, or without importers, is in none.
    """
    rest = {name: set(row) for name, row in edges.items()}
    while True:
        imported = set().union(*rest.values())
        ends = {name for name, row in rest.items() if not row or name not in imported}
        if not ends:
            return sorted(rest)
        rest = {name: row - ends for name, row in rest.items() if name not in ends}


def test_no_import_is_part_of_a_circle() -> None:
    edges = graph(ROOT)
    print(f"{len(edges)} modules, {sum(map(len, edges.values()))} imports")
    assert len(edges) > 1000
    assert circles(edges) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(
            {"a": "from lib import b", "b": "import lib.c", "c": ""},
            [],
            id="a chain is no circle",
        ),
        pytest.param(
            {"a": "from lib.b import f", "b": "def f():\n    from lib import a"},
            ["lib.a", "lib.b"],
            id="an import inside a function counts",
        ),
        pytest.param(
            {
                "a": "from lib import b",
                "b": "from lib import c",
                "c": "if 1:\n    import lib.b",
                "d": "import lib.a",
            },
            ["lib.b", "lib.c"],
            id="modules above and below a circle are not named",
        ),
    ],
)
def test_a_circle_is_noticed(
    tmp_path: pathlib.Path, texts: Mapping[str, str], expected: list[str]
) -> None:
    (tmp_path / "lib").mkdir()
    for name, text in texts.items():
        (tmp_path / "lib" / f"{name}.py").write_text(text)
    assert circles(graph(tmp_path)) == expected
