"""The tables of variables and outputs of layouts, from the .tf files."""

import pathlib
import re
from collections.abc import Iterator

from tests.reference import sheets

TREE = pathlib.Path("terraform/openstack")
LAYOUTS = (
    "standard",
    "standard-with-no-router",
    "simple",
    "simple-with-internal-network",
)
STEPS = "base-infrastructure", "master-node", "static-node"
_BLOCK = re.compile(r'^(variable|output) "(\w+)" {\n(.*?)^}', re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r'^  description\s+= "(.*)"$', re.MULTILINE)
_TYPE = re.compile(r"^  type\s+= (.*)$", re.MULTILINE)
_DEFAULT = re.compile(r"^  default\s+= (.*)$", re.MULTILINE)
Row = tuple[str, ...]


def tables() -> sheets.Tables:
    """Return the tables of all variables and outputs."""
    variables = dict.fromkeys(_of_all("variable", LAYOUTS[:1]))
    outputs: dict[Row, list[str]] = {}
    for layout in LAYOUTS:
        for step, name, _, _, text in _of_all("output", (layout,)):
            outputs.setdefault((name, step, text), []).append(layout)
    heads = ("variable", "root", "type", "default", "meaning")
    return {
        "variables": sheets.table(heads, _merged(variables)),
        "outputs": sheets.table(
            ("output", "root", "layouts", "meaning"),
            [
                (
                    f"`{name}`",
                    step,
                    "all" if len(some) == len(LAYOUTS) else ", ".join(some),
                    text,
                )
                for (name, step, text), some in outputs.items()
            ],
        ),
    }


def _merged(rows: dict[Row, None]) -> list[Row]:
    """Return one row for each variable, with all steps that have it."""
    steps: dict[Row, list[str]] = {}
    for step, *rest in rows:
        steps.setdefault(tuple(rest), []).append(step)
    return [
        (
            f"`{name}`",
            "all" if len(some) == len(STEPS) else ", ".join(some),
            kind,
            default,
            text,
        )
        for (name, kind, default, text), some in steps.items()
    ]


def _of_all(kind: str, layouts: tuple[str, ...]) -> Iterator[Row]:
    """Yield step, name, type, default and description of each block of a kind."""
    for layout in layouts:
        for step in STEPS:
            for file in sorted((TREE / "layouts" / layout / step).glob("*.tf")):
                for word, name, body in _BLOCK.findall(file.read_text()):
                    if word == kind:
                        yield (step, name, *_described(body))


def _described(body: str) -> Row:
    default = _value(_DEFAULT, body)
    shown = f"`{default}`" if default else "required"
    return _value(_TYPE, body), shown, _value(_TEXT, body)


def _value(pattern: re.Pattern[str], body: str) -> str:
    match = pattern.search(body)
    return match[1] if match else ""
