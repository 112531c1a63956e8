"""Syntax trees of the repository's Python files, each parsed once in a process."""

import ast
import functools
import gc
import pathlib
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@functools.cache
def tree(path: str) -> ast.Module:
    """Return the syntax tree of a file; it must not be changed.

    The nodes stay until the process exits, so the garbage collector never reads them:
    that would take three times as long as the parser.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        parsed = ast.parse(pathlib.Path(path).read_text())
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
    return parsed


def definitions(node: ast.AST) -> Iterator[Definition]:
    """Yield the functions and classes below a node, without reading expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from definitions(child)
