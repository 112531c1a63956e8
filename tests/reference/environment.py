"""Environment variables that the programs read, collected from their code."""

import ast
import functools
import re
from collections.abc import Iterator

from tests.reference import sheets

_RECEIVER = re.compile(r"(^|[._])env(iron)?$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TABLES = {
    "lib/cloud/zvirt/config.py": "_VARIABLES",
    "lib/cloud/openstack/config/environment.py": "_FIELDS",
    "lib/helm/command.py": "_PASSED_ON",
}
"""Constants with names of variables that are read one by one."""
TWINS = "lib/discoverer/options.py"
"""Its flags have variables: `get(FLAG, "VARIABLE")`."""
INDIRECT = frozenset({"_", "name", "variable", "metrics.COMMIT"})
"""Keys that are covered elsewhere: by TABLES, TWINS, and by lib/process/metrics.py. The
shell sets `_`, the path of the program."""
LAB = (
    "lib/lab/places.py",
    "lib/lab/artifacts/program_archive.py",
    "lib/lab/artifacts/published_programs.py",
)


@functools.cache
def variables() -> frozenset[str]:
    """Return the names of all variables that the programs read."""
    trees = {**sheets.product(), **{path: sheets.parsed(path) for path in LAB}}
    return frozenset(
        name for path, tree in trees.items() for name in _names(path, tree)
    )


def _names(path: str, tree: ast.Module) -> Iterator[str]:
    values = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for key in _keys(tree):
        name = str(key.value) if isinstance(key, ast.Constant) else ast.unparse(key)
        resolved = str(values.get(name, name))
        assert _VARIABLE.fullmatch(resolved) or name in INDIRECT, f"{path}: {name}"
        if name not in INDIRECT:
            yield resolved
    if path in TABLES:
        yield from _table(tree, TABLES[path])
    if path == TWINS:
        for _, function, call in sheets.calls(tree):
            if function == "get" and len(call.args) == 2:
                yield from filter(_VARIABLE.fullmatch, sheets.texts(call.args[1:]))


def _keys(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the keys of reads such as `env.get(KEY)` and `os.environ[KEY]`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *_]):
                pass
            case ast.Subscript(value=value, slice=key, ctx=ast.Load()):
                pass
            case _:
                continue
        if _RECEIVER.search(ast.unparse(value)):
            yield key


def _table(tree: ast.Module, name: str) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                if target == name:
                    keys = value.keys if isinstance(value, ast.Dict) else [value]
                    texts = (
                        text
                        for key in keys
                        if key is not None
                        for text in sheets.texts(ast.walk(key))
                    )
                    yield from filter(_VARIABLE.fullmatch, texts)
