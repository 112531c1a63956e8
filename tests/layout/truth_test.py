"""Each row of the truth of DVP's simulator has a source, and tests that exist."""

import ast
import pathlib

from tests.harness.dvp import truth

TESTS = pathlib.Path("tests")


def functions(file: pathlib.Path) -> set[str]:
    """Return the names of the tests of a file."""
    tree = ast.parse(file.read_text())
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}


def test_every_row_has_a_source_and_its_tests() -> None:
    """Prints each row with its tests; a test that does not exist is missing."""
    missing = []
    for row in truth.ROWS:
        print(f"{row.behaviour}\n    {row.source}")
        assert row.source
        assert row.tests
        for test in row.tests:
            name, _, function = test.partition("::")
            is_there = function in functions(TESTS / name)
            print(f"    {test}{'' if is_there else ' MISSING'}")
            missing += [] if is_there else [test]
    assert missing == []
