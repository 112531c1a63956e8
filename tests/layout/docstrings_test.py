"""Docstrings of functions begin with a standard verb.

Source: PEP 257, one-line docstrings, and the verbs of the Kubernetes and Python
documentation: Return, Report whether, Create, Delete, Read, Wait.
"""

import ast
import pathlib
import re
from collections.abc import Iterator

from tests.harness.structure import sources

OPENING = re.compile(
    r"(give|say|tell|let|hand|be told|name (a|an|the|what|which|who))\b",
    re.IGNORECASE,
)
ROOTS = ("lib", "cmd", "tests")
GENERATED = "lib/csi/spec/"


def openings(root: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """Yield each docstring of a function as path:line: text, and if it is wrong."""
    for folder in ROOTS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(GENERATED):
                for line, text in docstrings(sources.tree(path.as_posix())):
                    yield f"{name}:{line}: {text}", bool(OPENING.match(text))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and first line of the docstring of each function."""
    for node in sources.definitions(tree):
        if isinstance(node, ast.ClassDef):
            continue
        if text := ast.get_docstring(node):
            yield node.body[0].lineno, text.splitlines()[0]


def test_docstrings_begin_with_a_standard_verb() -> None:
    lines = list(openings(pathlib.Path()))
    wrong = [line for line, is_wrong in lines if is_wrong]
    print("\n".join(wrong))
    assert len(lines) > 5_000
    assert wrong == []


def test_each_form_is_noticed() -> None:
    for opening in ("Give the", "Say whether", "Tell", "Let it", "Name the"):
        source = f'def function():\n    """{opening} thing."""\n'
        ((line, text),) = docstrings(ast.parse(source))
        assert line == 2
        assert OPENING.match(text)
    assert not OPENING.match("Return the name of a thing.")
    assert not OPENING.match("Namespaces are listed.")
