"""Tests mirror the tree: a file is named after the module, or package, that it tests.

`tree_switched_off_test.py` is a test of `tree.py`: who changes a module finds its tests
by name. The same holds for what tests of the lab share, in `tests/harness`.
"""

import pathlib
from collections.abc import Collection

import pytest

ROOT = pathlib.Path()
SUFFIX = "_test.py"


def subjects(folder: pathlib.Path) -> set[str]:
    """Return a package with the modules and packages below it."""
    modules = [path for path in folder.rglob("*.py") if not path.name.endswith(SUFFIX)]
    names = {path.stem for path in modules} - {"__init__", "conftest"}
    packages = {path.parent.name for path in modules}
    return names | packages


def is_named_after(test: str, names: Collection[str]) -> bool:
    """Report whether a test's name is one of a module, or begins with one."""
    stem = test.removesuffix(SUFFIX)
    return any(stem == name or stem.startswith(f"{name}_") for name in names)


def strays(tests: pathlib.Path, tree: pathlib.Path) -> list[str]:
    """Return the tests of a folder that are named after nothing in the tree."""
    return [
        path.as_posix()
        for path in sorted(tests.rglob(f"*{SUFFIX}"))
        if not is_named_after(
            path.name, subjects(tree / path.parent.relative_to(tests))
        )
    ]


@pytest.mark.parametrize(
    ("tests", "tree"),
    [("tests/lib", "lib"), ("tests/harness", "tests/harness")],
)
def test_each_test_is_named_after_its_module(tests: str, tree: str) -> None:
    count = len(list((ROOT / tests).rglob(f"*{SUFFIX}")))
    strays_found = strays(ROOT / tests, ROOT / tree)
    print(f"{tests}: {count} tests, without a module: {strays_found or 'none'}")
    assert count >= 5
    assert strays_found == []


def test_a_stray_is_noticed(tmp_path: pathlib.Path) -> None:
    for file in ("lib/a/tree.py", "tests/a/tree_moved_test.py", "tests/a/walk_test.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (strays_found,) = strays(tmp_path / "tests", tmp_path / "lib")
    assert strays_found.endswith("tests/a/walk_test.py")
