"""Definitions of modules that a program refers to, directly or through others.

A class is one definition, with all of its methods; annotations are no reference. So the
result may contain more than the program executes, and lacks only what is found by name
at run time.
"""

import ast
import functools
import typing
from collections.abc import Iterable, Iterator, Mapping

from tests.reference import sheets

Place = tuple[str, str]
"""Module and definition."""
PROGRAMS: Mapping[str, str] = {
    "openstack-ccm": "openstack_ccm.main",
    "dvp-ccm": "dvp_ccm.main",
    "capdvp": "capdvp.main",
    "capz": "capz.main",
    "zvirt-ccm": "zvirt_ccm.main",
    "csi-controller": "csi_controller.main",
    "csi-node": "csi_node.main",
    "cloud-data-discoverer": "cloud_data_discoverer.main",
    "osdpl-controller": "osdpl_controller.main",
}
TOOL = "mooring"
COMMANDS = "mooring.commands."
"""Prefix of the modules of `mooring`, whose functions are commands."""


class Module(typing.NamedTuple):
    """A file. definitions: statements by the name that they define."""

    path: str
    definitions: Mapping[str, list[ast.stmt]]
    imports: Mapping[str, str]


@functools.cache
def modules() -> Mapping[str, Module]:
    """Return the modules of the programs, without the lab and fakes, by name."""
    return {name(path): _module(path, tree) for path, tree in sheets.product().items()}


def name(path: str) -> str:
    """Return the name by which a file is imported."""
    parts = path.removeprefix("cmd/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(path: str, tree: ast.Module) -> Module:
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for defined in _names(statement):
            definitions.setdefault(defined, []).append(statement)
    return Module(path, definitions, dict(_imports(tree)))


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=defined) | ast.ClassDef(name=defined):
            return [defined]
        case ast.Assign(targets=targets):
            nodes = [node for target in targets for node in ast.walk(target)]
            return [node.id for node in nodes if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=defined)):
            return [defined]
    return []


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


@functools.cache
def of(program: str) -> frozenset[Place]:
    """Return the definitions that a program refers to; `mooring`: by its commands."""
    if program == TOOL:
        starts = [
            (module, definition)
            for module, content in modules().items()
            if module.startswith(COMMANDS)
            for definition in content.definitions
        ]
    else:
        starts = [(PROGRAMS[program], "main")]
    return frozenset(_closure(starts))


def _closure(starts: Iterable[Place]) -> set[Place]:
    reached: set[Place] = set()
    pending = list(starts)
    while pending:
        place = pending.pop()
        module = modules().get(place[0])
        if module is None or place in reached:
            continue
        if place[1] in module.definitions:
            reached.add(place)
            pending += references(place)
        elif place[1] in module.imports:
            pending.append(_split(module.imports[place[1]]))
    return reached


def _split(target: str) -> Place:
    module, _, definition = target.rpartition(".")
    return module, definition


@functools.cache
def references(place: Place) -> tuple[Place, ...]:
    """Return the definitions to which a definition refers."""
    module = modules()[place[0]]
    return tuple(
        target
        for statement in module.definitions[place[1]]
        for target in _targets(place[0], statement)
    )


def _targets(name_of_module: str, statement: ast.stmt) -> Iterator[Place]:
    module = modules()[name_of_module]
    imports = {**module.imports, **dict(_imports(statement))}
    for node in nodes(statement):
        match node:
            case ast.Name(id=used) if used in module.definitions:
                yield name_of_module, used
            case ast.Name(id=used) if used in imports:
                yield _split(imports[used])
            case ast.Attribute(value=ast.Name(id=used), attr=definition):
                yield imports.get(used, ""), definition


def nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without annotations."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                pending += [child for child in children if isinstance(child, ast.AST)]


def attributes(program: str, without: str) -> frozenset[str]:
    """Return the attributes that a program reads. without: prefix of ignored files."""
    return frozenset(
        node.attr
        for module, definition in of(program)
        if not modules()[module].path.startswith(without)
        for statement in modules()[module].definitions[definition]
        for node in nodes(statement)
        if isinstance(node, ast.Attribute)
    )
