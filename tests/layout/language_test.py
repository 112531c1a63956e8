"""Names, docstrings, messages and documents use the terms of Kubernetes and OpenStack.

One pattern for each word or phrase that a reader of this field does not search for,
with its replacement. Texts of the reference daemons and of clouds are exempt by exact
strings with a reason.
"""

import ast
import dataclasses
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.harness.structure import sources

OPENING = re.compile(
    r"(give|say|tell|let|hand|be told|name (a|an|the|what|which|who))\b", re.IGNORECASE
)
NAMES = frozenset(
    "one found seen there wanted told said given made wish wishes ours theirs nobody"
    " somebody whoever around".split()
)
"""Names of variables, parameters and attributes that do not name their content."""
PATTERNS: Mapping[str, str] = {
    r"\banew\b": "again, recreate",
    r"\b(tell|tells|told|telling)\b": "report, return, log",
    r"\b(is|are|was|were|be|been) said\b": "reported",
    r"\b(says|say) (so|why|what|which|whose|who|by|of|more)\b": "shows, describes",
    r"\b((can't|cannot|not to|is to|are to|to) be had)\b": "available, supported",
    r"\bputs? right\b|\bput right\b": "correct, repair",
    r"\bleft alone\b|\bleaves? \w+ alone\b": "not changed, skipped, ignored",
    r"\bleft (out|behind)\b": "omitted, skipped, remains",
    r"\blook(s|ed|ing)? (at|for|again|after)\b|\bone look\b|\blooks\b": "check, read",
    r"\b(nobody|somebody|anybody|everybody|whoever)\b": "no user, another client",
    r"\bwho (runs|asks|waits|reads|watches|holds|may)\b": "name the role",
    r"\bforeign\b(?!_pre_chain| key)": "not owned; of another provider",
    r"(?<!pytest\.)(?<!pytest )\bmarks?\b(?!down)": "ownership tag",
    r"\b(wish|wishes|wished|wanted)\b": "request, desired",
    r"\bat once\b": "in parallel; immediately",
    r"\bso many\b": "give the number or the name of the limit",
    r"\bthat (is|are) none\b": "invalid, malformed",
    r"\b(does not|doesn't|do not|don't) count\b": "is ignored",
    r"\blets? (go|in)\b|\bnot let\b": "detach, release, reject",
    r"\bis at it\b|\bat which \w+ is\b|\bat another change\b": "in progress",
    r"\bin (peace|trouble)\b": "delete, or name the state",
    r"\bodd(ity|ities)?\b": "invalid, unexpected, warning",
    r"\bbroke\b": "failed unexpectedly",
    r"\bbelieved?\b": "cached, trusted, plausible",
    r"\b(log|logs|logged|logging) in\b|\blog-in\b": "authenticate",
    r"\bhollow\b": "simulated",
    r"\b(dies|died|death|deaths)\b": "crashes, is killed, exits",
    r"\b(heed|heeds|heeded|obey|obeys|obeyed)\b": "respect, apply",
    r"\bagain and again\b": "repeatedly",
    r"\bmeanwhile\b": "in the meantime, since then",
    r"\b(weigh|fares?|reckons?|swallow|swallows)\b": "size, state, compute, drop",
    r"\b(disown|disowns|disowned)\b": "orphan",
    r"; want (a|an|one|at|the|\d|it)\b|\bwant a known\b": 'invalid value "v": must be',
    r"; it must be\b": 'invalid value "v": must be',
    r"\ballowed is\b": 'unsupported value "v": must be one of',
    r"\band end\.?$": "and exit",
    r"^(a (text|list|number|time|duration)|true or false)\.": "describe the flag",
    r"\b(an|the) own\b": "our, its; the operator's",
    r"\bfor so long\b|\bas of `": "for this long; see",
    r"^What (is|was|has)\b": "begin with the noun",
    r"^(By|Of|With) what\b": "begin with the noun",
    r": (it|there) is none\b": "None if there is none; an error: none exists",
    r": it was\.": "empty if it was",
}
"""Pattern, in any case, and what to write in its place."""
_PATTERNS = {re.compile(p, re.IGNORECASE): text for p, text in PATTERNS.items()}
_ANY = re.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS), re.IGNORECASE)
WORDS_MIN = 4
"""A string literal with fewer words is no message."""
GENERATED = ("lib/csi/spec/", "lib/lab/openstack/guest/spec/")
PROSE = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/examples/*.md",
    "docs/explanation/*.md",
    "docs/how-to/*.md",
    "docs/reference/*.md",
    "docs/tutorials/*.md",
    "cmd/*/README.md",
    "cmd/*/CHANGELOG.md",
    "charts/*/README.md",
    "charts/*/CHANGELOG.md",
    "charts/*/Chart.yaml",
    "charts/*/values.yaml",
    "charts/*/files/alerts.yaml",
    "charts/*/templates/NOTES.txt",
)
"""Decision records are history and may quote what they replaced."""
EXEMPT: Mapping[str, str] = {
    "byte order mark": "the name of a character",
}
"""Exact part of a line or a literal that a pattern matches, and the reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hit:
    """A banned word. path: of the file; rule: what to write in its place."""

    path: str
    line: int
    kind: str
    text: str
    rule: str

    @property
    def folder(self) -> str:
        """Folder of the file; the file itself at the top."""
        return self.path.rpartition("/")[0] or self.path

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text} -> {self.rule}"


# --------------------------------------------------------------------- Python files


def in_python(path: str, source: str, tree: ast.Module) -> Iterator[Hit]:
    """Yield banned names and docstring openings, and messages of lib and cmd."""
    lines = source.splitlines()
    has_messages = path.startswith(("lib/", "cmd/"))
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.arg):
            if name := _banned_name(node):
                yield Hit(path, node.lineno, "name", name, "the thing that it holds")
        elif isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            if has_messages:
                yield from _in_message(path, node.lineno, _joined(node), lines)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if has_messages and id(node) not in parts:
                yield from _in_message(path, node.lineno, node.value, lines)
        elif opening := _opening(node):
            yield Hit(path, opening[0], "docstring", opening[1], "a standard verb")


def _banned_name(node: ast.Name | ast.Attribute | ast.arg) -> str:
    if isinstance(node, ast.arg):
        name = node.arg
    elif not isinstance(node.ctx, ast.Store):
        return ""
    else:
        name = node.id if isinstance(node, ast.Name) else node.attr
    return name if name in NAMES else ""


def _joined(node: ast.JoinedStr) -> str:
    return "".join(
        str(value.value) if isinstance(value, ast.Constant) else "{}"
        for value in node.values
    )


def _opening(node: ast.AST) -> tuple[int, str] | None:
    if not isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    ):
        return None
    text = ast.get_docstring(node)
    if not text or not OPENING.match(text):
        return None
    return node.body[0].lineno, text.splitlines()[0]


def _in_message(path: str, line: int, text: str, lines: list[str]) -> Iterator[Hit]:
    if len(text.split()) < WORDS_MIN or not _ANY.search(text):
        return
    if any(exempt in text for exempt in EXEMPT):
        _used.update(exempt for exempt in EXEMPT if exempt in text)
        return
    for pattern, rule in _PATTERNS.items():
        if match := pattern.search(text):
            at = line + text[: match.start()].count("\n")
            shown = lines[at - 1].strip() if at <= len(lines) else text
            yield Hit(path, at, match[0], shown, rule)


# --------------------------------------------------------------------- prose

_used: set[str] = set()


def in_prose(path: str, text: str) -> Iterator[Hit]:
    """Yield each banned pattern of each line."""
    for number, line in enumerate(text.splitlines(), 1):
        if not _ANY.search(line):
            continue
        if exempt := {exempt for exempt in EXEMPT if exempt in line}:
            _used.update(exempt)
            continue
        for pattern, rule in _PATTERNS.items():
            if match := pattern.search(line):
                yield Hit(path, number, match[0], line.strip(), rule)


@functools.cache
def hits() -> tuple[Hit, ...]:
    """Return all hits, each file read once."""
    return tuple(_all())


def _all() -> Iterator[Hit]:
    for folder in ("lib", "cmd", "tests", "build-support"):
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            name = path.as_posix()
            if not name.startswith(GENERATED) and "_pb2" not in name:
                yield from in_python(name, path.read_text(), sources.tree(name))
    for pattern in PROSE:
        for path in sorted(pathlib.Path().glob(pattern)):
            yield from in_prose(path.as_posix(), path.read_text())


# --------------------------------------------------------------------- tests


def test_no_text_and_no_name_has_a_banned_word() -> None:
    """Prints each hit with its file and line."""
    print("\n".join(map(str, hits())))
    assert hits() == ()


def test_every_exemption_is_used() -> None:
    hits()
    assert set(EXEMPT) - _used == set()
    assert all(EXEMPT.values())


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("found = 1\n", {"name"}),
        ("def f(one): ...\n", {"name"}),
        ("self.told = 1\n", {"name"}),
        ('def f():\n    """Give the number."""\n', {"docstring"}),
        ('class C:\n    """Tells."""\n', set()),
        ('"""Say what it is."""\n', {"docstring", "Say what"}),
        ('x = "it is left alone by us"\n', {"left alone"}),
        ('x = f"{y} is left alone by {z}"\n', {"left alone"}),
        ('x = "left alone"\n', set()),
        ("listener = snapshot.found\n", set()),
    ],
)
def test_each_kind_of_hit_is_noticed(source: str, kinds: set[str]) -> None:
    hits_of_source = in_python("lib/x.py", source, ast.parse(source))
    assert {hit.kind for hit in hits_of_source} == kinds


def test_lines_of_prose_are_numbered() -> None:
    (hit,) = in_prose("README.md", "# A\n\nThe Node is left alone.\n")
    assert (hit.line, hit.kind) == (3, "left alone")
