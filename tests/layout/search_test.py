"""A behaviour is found by the term of its documentation, in paths and docstrings.

A reader who searches lib for the term of Kubernetes, OpenStack or CSI has to get the
right file among the first five. Files are ordered by hits: in the path, in the
docstring of the module, in other docstrings.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.harness.structure import sources

IN_PATH, IN_MODULE, IN_DOCSTRING = 10, 5, 1
"""Weights of a hit."""
FIRST = 5
TERMS: Mapping[str, str] = {
    "drift": "lib/balancers/flow.py",
    "backoff": "lib/reconcile/queue.py",
    "finalizer": "lib/balancers/decide.py",
    "ownership": "lib/cloud/openstack/load_balancers/read/owned.py",
    "health monitor": "lib/cloud/openstack/load_balancers/plan/bodies.py",
    "floating IP": "lib/cloud/openstack/load_balancers/plan/floating.py",
    "leader election": "lib/kube/election.py",
    "circuit breaker": "lib/cloud/support/circuit.py",
    "deletion budget": "lib/nodes/deletion_budget.py",
    "staging": "lib/node_volumes/decide_stage.py",
    "orphan": "lib/orphans/decide.py",
    "liveness": "lib/process/probes.py",
}
"""Term, and the file that has to be among the first FIRST."""


@functools.cache
def docstrings() -> Mapping[str, tuple[str, ...]]:
    """Return the docstrings of each file of lib, that of the module first."""
    return {
        path.as_posix(): tuple(_docstrings(sources.tree(path.as_posix())))
        for path in sorted(pathlib.Path("lib").rglob("*.py"))
        if not path.as_posix().startswith("lib/lab/") and "fake" not in path.parts
    }


def _docstrings(tree: ast.Module) -> Iterator[str]:
    yield ast.get_docstring(tree) or ""
    for node in sources.definitions(tree):
        if not isinstance(node, ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def score(path: str, texts: tuple[str, ...], term: str) -> int:
    """Return the weighted number of hits of a term in a file."""
    pattern = re.compile(re.escape(term).replace(r"\ ", r"[\s_-]+"), re.IGNORECASE)
    words = {word.removesuffix("s") for word in re.split(r"[/_.]", path)}
    hits = sum(bool(pattern.search(text)) for text in texts[1:])
    in_path = any(word.lower() in words for word in term.split())
    return (
        IN_PATH * in_path
        + IN_MODULE * bool(pattern.search(texts[0]))
        + IN_DOCSTRING * hits
    )


@pytest.mark.parametrize("term", TERMS)
def test_the_right_file_comes_among_the_first(term: str) -> None:
    """Prints the first five files; a tie is broken by the path."""
    scores = {path: score(path, texts, term) for path, texts in docstrings().items()}
    order = sorted((p for p in scores if scores[p]), key=lambda p: (-scores[p], p))
    print("\n".join(f"{scores[path]:4} {path}" for path in order[:5]))
    assert order, f"no docstring of lib has the term {term}"
    assert TERMS[term] in order[:FIRST]


def test_a_hit_in_the_name_weighs_most() -> None:
    assert score("lib/a/backoff.py", ("", ""), "backoff") == IN_PATH
    assert score("lib/a/b.py", ("Backoff.", "the backoff"), "backoff") == 6
    assert score("lib/a/b.py", ("", ""), "backoff") == 0
