"""Lines of code of a Python file: neither blank, nor docstring, nor import."""

import ast
from collections.abc import Iterator


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of the lines of code."""
    left = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        documented = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, documented) and ast.get_docstring(node):
            left |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and number not in left:
            yield number


def count(text: str) -> int:
    """Return the number of lines of code."""
    return sum(1 for _ in numbers(text))
