"""Each case of the tables of bad input has a row in docs/troubleshooting.md.

A row names the fixed part of a message. A case has a row when one of the texts that its
test expects contains such a part. Where a test expects only values, `PARTS` names the
part; `test_each_part_is_a_text_of_the_programs` keeps both from going stale.
"""

import ast
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping

from tests.harness.structure.sources import tree

PAGE = pathlib.Path("docs/troubleshooting.md")
FIELD = re.compile(r"^(\S+: )?(--[a-z-]+|\[\w+\] [\w-]+): .+")
FORMS = re.compile(
    r"invalid value|unsupported value|not set|unknown flag|no such file|is a directory"
    r"|must not be set together|not YAML|not a text file|connection refused"
    r"|can't be reached|refuses the credentials|is not accepted"
)
ROW = re.compile(r"^\| `([^`]+)` \|(?: `([^`]+)` \|)?", re.MULTILINE)
OVERLAP_MIN = 10
"""An expected text of fewer characters, such as "mount", is too short for a row."""
NODE = "tests/lab/node/bad_input_test.py"
OSDPL = "tests/lab/osdpl/bad_input_test.py"
SERVICES = "tests/lab/services/load_balancer_bad_input_test.py"
ROUTES = "tests/lab/routes"
REASONS = ("lib/cloud/routes.py", "lib/cloud/openstack/routes/desire.py")
CASES_MIN = 140

Cases = Mapping[str, tuple[str, ...]]
"""Expected texts by the name of a case."""

PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    NODE: {
        "unknown flag": ("unknown flag",),
        "disk smaller than required": ("once it has grown",),
        "serial mismatch": ("searched for",),
        "two disks match": ("several match",),
        "corrupt xfs": ("Structure needs cleaning",),
        "staging path is a file": (", must be",),
        "mkfs missing": ("must be one whose programs are installed",),
        "no identity source": ("identity of the node",),
        "endpoint too long": ("a path of at most",),
        "registration socket too long": ("a path of at most",),
    },
    OSDPL: {
        "wrong enum": ("Unsupported value",),
        "wrong type": ("must be of type",),
        "missing field": ("Required value",),
        "unknown service": ("Unsupported value",),
        "unknown field": ("unknown field",),
        "version without images": ("a version with images",),
        "merge of different types": ("the type of the layer below",),
        "reference to an absent key": ("a key of Secret",),
        "source that does not answer": ("cannot connect",),
        "version that no contract covers": ("a version of openstack-helm from",),
        "version that the source lacks": ("one of the repository's versions",),
        "digest of another chart": ("must be the pinned",),
        "chart that does not render": ("execution error at",),
        "test_a_missing_permission_is_named": (": permission denied:",),
        "test_a_helm_that_cannot_be_used_is_named": (
            "must be an executable helm",
            "helm version: invalid value",
        ),
        "test_a_namespace_that_does_not_exist_is_named": ("Lease request failed",),
        "test_another_namespace_is_named": ("the namespace of this osdpl-controller",),
    },
    SERVICES: {
        "unknown-class": ("the name of a [LoadBalancerClass",),
        "subnet-missing": ("not found, or not accessible",),
        "member-subnet": ("not found, or not accessible",),
        "subnet-ambiguous": ("no subnet is configured",),
        "floating-subnet": ("no subnet of floating network",),
        "network-missing": ("does not exist, or may not be used",),
        "port-missing": ("does not exist, or may not be used",),
        "flavor-missing": ("does not exist, or may not be used",),
        "zone-missing": ("does not exist, or may not be used",),
        "address-taken": ("not available: already in use",),
        "vip-taken": ("is already in use or not available",),
        "address-no-address": ("invalid value",),
        "port-collision": ("in use by listeners that the Service does not own",),
        "load-balancer-missing": ("which the Service names: not found",),
        "proxy-and-header": ("false together with",),
    },
}
"""By case, where the test expects values, or a text that also another message has."""

EXTERNAL: Mapping[str, str] = {
    "Unsupported value": "API server, validation by the schema",
    "must be of type": "API server, validation by the schema",
    "Required value": "API server, validation by the schema",
    "Structure needs cleaning": "strerror(EUCLEAN)",
    "Input/output error": "strerror(EIO)",
    "execution error at": "helm, errors of templates",
    "Invalid kube-config file": "the kubernetes package, its reader of kubeconfigs",
    "is forbidden: User": "API server, authorization",
    "Unauthorized": "API server, authentication",
}
"""Parts that no program of this repository writes, and what does."""

ROW_MAKERS = {"content", "on_socket"}
"""Functions that make rows of a table, and add texts which all of these expect."""

DRIVERS = {
    "test_a_mistake_is_named",
    "test_each_case_has_its_code_and_message",
    "test_each_wrong_service_is_told_once_and_served_when_put_right",
    "test_no_annotation_is_without_a_wrong_value",
}
"""Tests that run a table of their file, or check it."""


def strings(node: ast.AST) -> tuple[str, ...]:
    """Return the texts below a node; of f-strings the fixed parts."""
    return tuple(
        below.value
        for below in ast.walk(node)
        if isinstance(below, ast.Constant) and isinstance(below.value, str)
    )


def assigned(path: str, name: str) -> ast.expr:
    """Return the value of a constant of a module."""
    for node in tree(path).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                pass
            case _:
                continue
        if target == name:
            return value
    raise AssertionError(f"{path} has no {name}")


def functions(path: str) -> Mapping[str, ast.FunctionDef]:
    """Return the functions of a module by name."""
    body = tree(path).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def called(path: str, node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions of the module that are called below a node."""
    known = functions(path)
    for below in ast.walk(node):
        match below:
            case ast.Call(func=ast.Name(id=name)) if name in known:
                yield known[name]


def of_tests(path: str) -> dict[str, tuple[str, ...]]:
    """Return the tests of a file that are a case by themselves."""
    return {
        name: strings(node)
        for name, node in functions(path).items()
        if name.startswith("test_") and name not in DRIVERS
    }


# ------------------------------------------------------------------- tables


def of_messages(path: str) -> Cases:
    """Return the texts of a file that are messages of bad input, each as a case."""
    texts = [text for text in strings(tree(path)) if "\n" not in text]
    return {text: (text,) for text in texts if FIELD.match(text) or FORMS.search(text)}


def of_node(path: str) -> Cases:
    """Return the rows of a dictionary, with the texts of functions that make them."""
    table = assigned(path, "ROWS")
    assert isinstance(table, ast.Dict)
    cases = of_tests(path)
    for key, value in zip(table.keys, table.values, strict=True):
        makers = [node for node in called(path, value) if node.name in ROW_MAKERS]
        texts = [text for node in (value, *makers) for text in strings(node)]
        assert isinstance(key, ast.Constant)
        cases[str(key.value)] = tuple(texts)
    return cases


def of_named_rows(path: str) -> Cases:
    """Return the rows of a tuple of calls that have a name as first argument."""
    table = assigned(path, "ROWS")
    assert isinstance(table, ast.Tuple)
    cases = of_tests(path)
    for row in table.elts:
        name, *texts = strings(row)
        cases[name] = tuple(texts)
    return cases


def of_services(path: str) -> Cases:
    """Return the rows, the annotations with a type, and the tests of Services."""
    cases = dict(of_named_rows(path))
    for table in ("SERVED_ANYWAY", "FATAL", "PATTERN", "UNSURE"):
        values = assigned(path, table)
        assert isinstance(values, ast.Dict)
        for key, pair in zip(values.keys, values.values, strict=True):
            assert isinstance(key, ast.Attribute)
            value, allowed = strings(pair)
            kind = "unsupported" if allowed.startswith("one of ") else "invalid"
            cases[f"annotation {key.attr}"] = (f'{kind} value "{value}"',)
    for name, node in functions(path).items():
        if name in cases:
            for reader in called(path, node):
                cases[name] += strings(reader)
    return cases


def of_routes(folder: str) -> Cases:
    """Return all reasons of problems with routes; print those that no test names."""
    reasons = {
        text
        for path in REASONS
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and node.name in ("Reason", "NeutronReason")
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for text in strings(statement.value)
    }
    tested = {
        text
        for path in sorted(pathlib.Path(folder).glob("*_test.py"))
        for text in strings(tree(path.as_posix()))
    }
    print(f"reasons without a test in {folder}: {sorted(reasons - tested)}")
    assert reasons & tested
    return {reason: (reason,) for reason in reasons}


TABLES: Mapping[str, Callable[[str], Cases]] = {
    "tests/packages/pex_test.py": of_messages,
    "tests/lab/nodes/bad_input_test.py": of_messages,
    NODE: of_node,
    OSDPL: of_named_rows,
    SERVICES: of_services,
    ROUTES: of_routes,
}


# ------------------------------------------------------------------- tests


def parts_of_page() -> tuple[str, ...]:
    """Return the fixed parts of messages; of tables with a reason, that first."""
    rows = ROW.findall(PAGE.read_text())
    return tuple(part for row in rows for part in row if part)


def rows_of(path: str, name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of the page that belong to a case; empty: it has no row."""
    parts = parts_of_page()
    if named := PARTS.get(path, {}).get(name):
        return named if set(named) <= set(parts) else ()
    return tuple(part for part in parts if any(is_in(part, text) for text in texts))


def is_in(part: str, text: str) -> bool:
    return part in text or (len(text) >= OVERLAP_MIN and text in part)


def test_each_case_of_bad_input_has_a_row() -> None:
    """Prints each case with the fixed parts of its row; fails for one without."""
    lacking, count = [], 0
    for path, table in TABLES.items():
        cases = table(path)
        assert set(PARTS.get(path, {})) <= set(cases), path
        for name, texts in cases.items():
            rows, count = rows_of(path, name, texts), count + 1
            print(f"{path.rpartition('/')[2]:32} {name[:60]:60} {rows or 'NO ROW'}")
            if not rows:
                lacking.append((path, name))
    print(f"{count} cases, {len(parts_of_page())} parts")
    assert lacking == []
    assert count >= CASES_MIN


def test_each_part_is_a_text_of_the_programs() -> None:
    """A message that was changed has no row any more."""
    texts = [
        text
        for folder in ("lib", "cmd")
        for path in sorted(pathlib.Path(folder).rglob("*.py"))
        for text in strings(tree(path.as_posix()))
    ]
    unknown = [
        part
        for part in parts_of_page()
        if part not in EXTERNAL and not any(part in text for text in texts)
    ]
    assert unknown == []
    assert set(EXTERNAL) <= set(parts_of_page())
