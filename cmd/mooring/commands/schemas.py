"""JSON Schema of the documents of `-o json` and `-o yaml`.

docs/reference/output-schemas.json contains it:
`python -m mooring.commands.schemas > docs/reference/output-schemas.json`.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.commands import documents

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def whole() -> Mapping[str, Any]:
    """Return all schemas: "commands" by command, which refer to "$defs"."""
    kinds = documents.DOCUMENTS
    schemas, definitions = msgspec.json.schema_components(
        kinds.values(), ref_template="#/$defs/{name}"
    )
    commands = dict(zip(kinds, schemas, strict=True))
    return {"$schema": DIALECT, "commands": commands, "$defs": definitions}


def of_command(command: str) -> Mapping[str, Any]:
    """Return the schema of one command, by its words; whole in itself."""
    schemas = whole()
    own: Mapping[str, Any] = schemas["commands"][command]
    return {"$schema": DIALECT, **own, "$defs": schemas["$defs"]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(whole(), indent=2) + "\n")
