"""Each contract suite runs on each provider: the table is printed.

A provider is what a test of a suite imports: a subclass of the suite's `Contract` with
the fixture of one cloud.
"""

import ast
import pathlib
from collections.abc import Iterator

from tests.harness.structure import sources

SUITES = ("instances", "load_balancers", "volumes", "catalog")
PROVIDERS = ("fake", "openstack", "dvp", "zvirt")
LACKS = {
    "zvirt": {"load_balancers"},
}
"""Suites of what a provider does not have, or not yet."""
_PACKAGE = "tests.contract"


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the full name and the local name of each import of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, name.asname or name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield f"{node.module}.{name.name}", name.asname or name.name


def suites_of(tree: ast.Module) -> set[str]:
    """Return the suites whose rows a class of a module inherits."""
    local = {
        name: full.removeprefix(f"{_PACKAGE}.")
        for full, name in imported(tree)
        if full.startswith(f"{_PACKAGE}.")
    }
    return {
        local[base.value.id]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        for base in node.bases
        if isinstance(base, ast.Attribute)
        and base.attr == "Contract"
        and isinstance(base.value, ast.Name)
        and base.value.id in local
    }


def replaced(tree: ast.Module) -> set[str]:
    """Return the rows that a subclass replaces: it has a method of their name."""
    return {
        member.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and node.name.startswith("Test")
        and node.bases
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.name.startswith("test_")
    }


def provider_of(path: pathlib.Path, tree: ast.Module) -> str:
    """Return the cloud that a test opens, by its imports."""
    modules = {full for full, _ in imported(tree)}
    opened = [
        provider
        for provider in PROVIDERS
        if any(
            module.startswith((f"lib.cloud.{provider}.", f"tests.harness.{provider}."))
            for module in modules
        )
        or any(module == f"lib.cloud.{provider}" for module in modules)
    ]
    return opened[0] if opened else "dvp" if "dvp" in path.stem else ""


def rows_of(suite: str) -> list[str]:
    """Return the rows of a suite."""
    tree = sources.tree(f"tests/contract/{suite}.py")
    (contract,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "Contract"
    )
    return [
        member.name
        for member in contract.body
        if isinstance(member, ast.FunctionDef) and member.name.startswith("test_")
    ]


def runs() -> dict[tuple[str, str], list[str]]:
    """Return the test files by suite and provider; no row is replaced in any."""
    files: dict[tuple[str, str], list[str]] = {}
    for path in sorted(pathlib.Path("tests").rglob("*_test.py")):
        text = path.read_text()
        if _PACKAGE not in text:
            continue
        tree = sources.tree(path.as_posix())
        for suite in suites_of(tree):
            key = suite, provider_of(path, tree)
            assert not replaced(tree) & set(rows_of(suite)), path
            files.setdefault(key, []).append(str(path))
    return files


def test_each_suite_runs_on_each_provider() -> None:
    """All its rows; on a real service, except for the fake."""
    known = runs()
    for suite in SUITES:
        rows = rows_of(suite)
        assert rows, suite
        for provider in PROVIDERS:
            if suite in LACKS.get(provider, ()):
                continue
            files = known.get((suite, provider), [])
            print(f"{suite:15} {len(rows):3} rows {provider:10} {', '.join(files)}")
            assert files, (suite, provider)
            in_lab = any(name.startswith("tests/lab/") for name in files)
            assert in_lab or provider == "fake", (suite, provider)
