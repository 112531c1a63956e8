"""Limits of a spec: within them each step over it takes seconds. Pure."""

from collections.abc import Iterator

from lib.process import config

DEPTH_MAX = 64
"""Objects and lists within each other; the deepest field of a chart has 15."""
ITEMS_MAX = 10_000
"""Items of a list, or fields of an object."""
_EXPECTED_DEPTH = f"at most {DEPTH_MAX} objects and lists within each other"
_EXPECTED_ITEMS = f"at most {ITEMS_MAX} items"


def problems(spec: object) -> Iterator[config.FieldProblem]:
    """Yield where a spec is too deep or too long; without recursion."""
    left: list[tuple[str, int, object]] = [("spec", 0, spec)]
    while left:
        path, depth, node = left.pop()
        if not isinstance(node, dict | list):
            continue
        if depth == DEPTH_MAX:
            yield config.FieldProblem(path, None, _EXPECTED_DEPTH)
            continue
        if len(node) > ITEMS_MAX:
            yield config.FieldProblem(path, str(len(node)), _EXPECTED_ITEMS)
            continue
        members = (
            [(f"{path}.{key}", value) for key, value in node.items()]
            if isinstance(node, dict)
            else [(f"{path}[{index}]", value) for index, value in enumerate(node)]
        )
        left += [(below, depth + 1, value) for below, value in members]
