"""Calls to OpenStack, collected from the code that declares them.

Each call is an argument list of `Get`, `Write`, `Listing` or `Single`, each step of a
load balancer an `actions.create`, `change` or `delete`. Texts and names in them are
resolved; what cannot be resolved fails, so that no call is overlooked.
"""

import ast
import dataclasses
import functools
import importlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud.openstack.http.client import Service
from lib.cloud.openstack.load_balancers.plan import actions, requests
from lib.cloud.steps import Step, Verb
from tests.reference import sheets

ROOM = "lib/cloud/openstack/"
PLAN = f"{ROOM}load_balancers/plan/"
REQUESTS = f"{PLAN}requests.py"
CHECKUP = f"{ROOM}checkup.py"
GENERAL = f"{ROOM}http/"
"""It sends what others declare."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "Get": ("service", "path", "operation"),
    "Listing": ("service", "path", "operation"),
    "Single": ("service", "path", "operation"),
    "Write": ("service", "method", "path", "operation"),
}
"""The first arguments of each declaration."""
SENDING = frozenset({"get", "request", "post", "put", "patch", "delete", "head"})
OF_KEYSTONEAUTH = frozenset({"get_endpoint_data", "get_access", "get_token"})
_SESSION = re.compile(r"(^|[._])session$")
VERBS = {"create": Verb.CREATE, "change": Verb.CHANGE, "delete": Verb.DELETE}
Names = Mapping[str, ast.expr]


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Call:
    """One kind of request. path: below the version, {} for each ID in it.

    place: the file that declares it, below lib/cloud/openstack.
    """

    service: str
    method: str
    path: str
    operation: str
    place: str


@functools.cache
def calls() -> frozenset[Call]:
    """Return every call that the programs may make to a service, but Keystone."""
    trees = {
        path: tree
        for path, tree in sheets.product().items()
        if path.startswith(ROOM) and not path.startswith(GENERAL)
    }
    return frozenset(
        call
        for path, tree in trees.items()
        for call in itertools.chain(declared(path, tree), _stepped(path, tree))
    ) | frozenset(_quotas())


def raw() -> Mapping[str, int]:
    """Return how often a file calls a service other than by these declarations.

    keystoneauth1 itself requests tokens and version documents.
    """
    counts: dict[str, int] = {}
    for path, tree in sheets.product().items():
        for receiver, function, _ in sheets.calls(tree):
            is_sent = function in SENDING and _SESSION.search(receiver)
            if is_sent or function in OF_KEYSTONEAUTH:
                counts[path] = counts.get(path, 0) + 1
    return counts


# ------------------------------------------------------------ declarations


def declared(path: str, tree: ast.Module) -> Iterator[Call]:
    """Yield the calls that a file declares.

    Raises:
        ValueError: a part of one of them is not resolved.
    """
    for node, function in _with_functions(tree):
        name = _called(node)
        if name not in FIELDS or path == REQUESTS:
            continue
        for names in _callers(tree, function, FIELDS[name], node):
            yield _call(path, name, _Scope(path, tree, function, node.lineno, names))


def _with_functions(
    tree: ast.Module,
) -> Iterator[tuple[ast.Call, ast.FunctionDef | None]]:
    """Yield every call with the function around it; None: at the module's level."""
    inside: dict[ast.AST, ast.FunctionDef] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inside |= dict.fromkeys(ast.walk(function), function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, inside.get(node)


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


@dataclasses.dataclass(frozen=True, slots=True)
class _Scope:
    """Where an expression is evaluated. names: expressions by parameter or field."""

    path: str
    tree: ast.Module
    function: ast.FunctionDef | None
    line: int
    names: Names


def _callers(
    tree: ast.Module,
    function: ast.FunctionDef | None,
    fields: Sequence[str],
    node: ast.Call,
) -> Iterator[Names]:
    """Yield the fields of a declaration, once for each caller of its function.

    Only callers of a function that passes a parameter on differ from each other.
    """
    own = dict(zip(fields, node.args, strict=False))
    own |= {k.arg: k.value for k in node.keywords if k.arg in fields and k.arg}
    used = {n.id for v in own.values() for n in ast.walk(v) if isinstance(n, ast.Name)}
    parameters = [a.arg for a in function.args.args] if function else []
    passed = used & set(parameters) - {"self", "api", "batch"}
    if function is None or not passed & {"path", "operation", "method", "kind"}:
        yield own
        return
    for other, caller in _with_functions(tree):
        if arguments := _arguments(other, function.name, parameters):
            resolved = {
                name: _substituted(value, _local(caller, other.lineno))
                for name, value in arguments.items()
            }
            yield own | resolved


def _arguments(
    node: ast.Call, function: str, parameters: Sequence[str]
) -> dict[str, ast.expr]:
    """Return the arguments of a call of a function, by name; empty: of another."""
    names = [name for name in parameters if name != "self"]
    values = node.args
    if ast.unparse(node.func) == "functools.partial":
        if ast.unparse(values[0]) != function:
            return {}
        values = values[1:]
    elif ast.unparse(node.func).removeprefix("self.") != function:
        return {}
    keywords = {k.arg: k.value for k in node.keywords if k.arg}
    return dict(zip(names, values, strict=False)) | keywords


def _local(function: ast.FunctionDef | None, line: int) -> dict[str, ast.expr]:
    """Return the last values of local names before a line."""
    return dict(_assigned(function, line))


def _assigned(
    function: ast.FunctionDef | None, line: int
) -> Sequence[tuple[str, ast.expr]]:
    """Return the values of local names before a line, in their order."""
    assignments = [
        node
        for node in (ast.walk(function) if function else ())
        if isinstance(node, ast.Assign) and node.lineno <= line
    ]
    return [
        (target.id, node.value)
        for node in sorted(assignments, key=lambda node: node.lineno)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _substituted(node: ast.expr, values: Names) -> ast.expr:
    return values.get(node.id, node) if isinstance(node, ast.Name) else node


def _call(path: str, kind: str, scope: _Scope) -> Call:
    texts = {
        field: _text(_substituted(scope.names[field], scope.names), scope)
        for field in FIELDS[kind]
        if field != "service"
    }
    return Call(
        _service(scope.names["service"], scope).value,
        texts.get("method", "GET"),
        texts["path"],
        texts["operation"],
        path.removeprefix(ROOM),
    )


def _text(node: ast.expr, scope: _Scope) -> str:
    """Return a text with {} for each part that is known only when it is sent."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, scope) + _text(right, scope)
        case ast.JoinedStr(values=values):
            return "".join(_text(value, scope) for value in values)
        case ast.FormattedValue(value=value):
            return _text(value, scope)
        case ast.Name(id=name):
            known = _value(name, scope)
            return "{}" if known is None else _text(known, scope)
        case ast.Call():
            return "{}"
    raise ValueError(f"{scope.path}:{scope.line}: {ast.unparse(node)} is not resolved")


def _value(name: str, scope: _Scope) -> ast.expr | None:
    """Return what a name stands for; None: an argument that holds an ID."""
    value = scope.names.get(name)
    if value is None or isinstance(value, ast.Name):
        value = _local(scope.function, scope.line).get(name)
    return None if isinstance(value, ast.Subscript | ast.Name) else value


def _service(node: ast.expr, scope: _Scope) -> Service:
    local = _local(scope.function, scope.line)
    expression = ast.unparse(_substituted(node, local))
    module = importlib.import_module(scope.path.removesuffix(".py").replace("/", "."))
    service: object = functools.reduce(getattr, expression.split("."), module)
    if not isinstance(service, Service):
        raise TypeError(f"{scope.path}:{scope.line}: {expression} is no service")
    return service


# ------------------------------------------------------------ load balancers


def _stepped(path: str, tree: ast.Module) -> Iterator[Call]:
    """Yield the requests of the steps that a file creates, as `requests` sends them."""
    if not path.startswith(PLAN) or path == f"{PLAN}actions.py":
        return
    for node, function in _with_functions(tree):
        receiver, _, name = ast.unparse(node.func).rpartition(".")
        if receiver == "actions" and name in VERBS:
            assigned = _assigned(function, node.lineno)
            action = _substituted(node.args[2], dict(assigned))
            kinds = set(_kinds(tree, node.args[2], assigned))
            if not kinds:
                raise ValueError(f"{path}:{node.lineno}: the kind is not resolved")
            fails_over = "fails_over=True" in ast.unparse(action)
            for kind in kinds:
                yield _request(path, VERBS[name], kind, fails_over)


def _kinds(
    tree: ast.Module, node: ast.expr, assigned: Sequence[tuple[str, ast.expr]]
) -> Sequence[actions.Kind]:
    """Return the kinds that an action may be of: named in it, or where it comes from.

    assigned: local names and values before it, of which the last with a kind counts.
    """
    if named := list(_named_kinds(node)):
        return named
    if isinstance(node, ast.Call) and (
        named := list(_kinds_of_function(tree, ast.unparse(node.func)))
    ):
        return named
    parts = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for place, (name, value) in reversed(list(enumerate(assigned))):
        if name in parts and (named := [*_kinds(tree, value, assigned[:place])]):
            return named
    return []


def _named_kinds(node: ast.AST) -> Iterator[actions.Kind]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "Kind":
            yield actions.Kind[part.attr]


def _kinds_of_function(tree: ast.Module, name: str) -> Iterator[actions.Kind]:
    if name.endswith(".setting"):  # of tree.TreePlace
        tree, name = sheets.parsed(f"{PLAN}tree.py"), "setting"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from _named_kinds(node)


def _request(path: str, verb: Verb, kind: actions.Kind, fails_over: bool) -> Call:
    id_ = "" if verb is Verb.CREATE else "ID"
    action = actions.Action(kind, id_, fails_over=fails_over)
    (write, *_) = requests.writes(Step(verb, ("object",), "", action))
    return Call(
        write.service.value,
        write.method,
        write.path.replace("ID", "{}"),
        write.operation,
        path.removeprefix(ROOM),
    )


# ------------------------------------------------------------ quotas


def _quotas() -> Iterator[Call]:
    """Yield the reads of the doctor, which lists them by service."""
    for node in ast.walk(sheets.parsed(CHECKUP)):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            for _, function, call in sheets.calls(value):
                if function == "_get" and isinstance(key, ast.Constant):
                    path = _shown_path(call.args[0])
                    service = str(key.value)
                    operation = f"read the quotas of the {service} service"
                    yield Call(service, "GET", path, operation, "checkup.py")


def _shown_path(node: ast.expr) -> str:
    text = ast.unparse(node)[2:-1].removeprefix("{url}/")
    return re.sub(r"\{\w+\}", "{}", text.partition("?")[0])
