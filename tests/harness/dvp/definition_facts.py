"""What a CustomResourceDefinition states, one line for each field; and a comparison.

    python -m tests.harness.dvp.definition_facts FOLDER

prints what the lab's definitions of a parent lack or have besides those of a folder,
such as crds/ of deckhouse/virtualization. FOLDER --write keeps the facts of that
folder, with which `tests/lib/lab/dvp/parent_kinds_test.py` compares.
"""

import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from lib.lab.dvp import parent_kinds

Json = Mapping[str, Any]
KEPT = pathlib.Path(__file__).parent / "definition_facts.txt"
_BELOW = ("properties", "items", "additionalProperties", "description", "example")


def facts(definitions: Iterable[Json]) -> Iterator[str]:
    """Yield the lines of some definitions, in order."""
    for definition in definitions:
        spec = definition["spec"]
        plural = spec["names"]["plural"]
        yield f"{plural}: {spec['scope']} {spec['names']['kind']}"
        for version in spec["versions"]:
            at = f"{plural} {version['name']}"
            flags = ("served", "storage", "deprecated")
            yield f"{at}: {' '.join(f for f in flags if version.get(f))}"
            yield from _fields(version["schema"]["openAPIV3Schema"], f"{at} ")


def _fields(schema: Json, path: str) -> Iterator[str]:
    yield f"{path} {' '.join(sorted(_stated(schema)))}"
    for name, below in (schema.get("properties") or {}).items():
        yield from _fields(below, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _fields(schema["additionalProperties"], f"{path}{{}}")


def _stated(schema: Json) -> Iterator[str]:
    """Yield what a schema states of a field; of rules in CEL, that there are some."""
    for key, value in schema.items():
        if key == "x-kubernetes-validations":
            yield "rules"
        elif key == "required":
            yield f"required={sorted(value)}".replace(" ", "")
        elif key not in _BELOW and not key.startswith("x-doc"):
            yield f"{key}={value}".replace(" ", "")


def read(folder: pathlib.Path) -> Sequence[Json]:
    """Return the definitions of a folder that the lab has, too."""
    names = {each["metadata"]["name"] for each in parent_kinds.definitions()}
    every = (yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml")))
    return [each for each in every if each and each["metadata"]["name"] in names]


def differences(real: Iterable[str]) -> Sequence[str]:
    """Return what the lab lacks (-) and has besides (+)."""
    known, own = set(real), set(facts(parent_kinds.definitions()))
    lacking = [f"- {line}" for line in sorted(known - own)]
    return [*lacking, *(f"+ {line}" for line in sorted(own - known))]


def main(folder: pathlib.Path, *, is_written: bool) -> int:
    """Compare, or write; return the exit code."""
    lines = sorted(facts(read(folder)))
    if is_written:
        KEPT.write_text("\n".join(lines) + "\n")
        return 0
    rows = differences(lines)
    print("\n".join(rows) or f"{len(lines)} facts, no difference")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), is_written="--write" in sys.argv))
