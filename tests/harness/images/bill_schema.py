"""Schema of CycloneDX, from the Go module that contains it."""

import json
import pathlib
from typing import Any

import jsonschema
import referencing
import referencing.jsonschema

from lib.lab import places
from tests.harness import testing
from tests.harness.kube import definitions

_MODULE = "github.com/CycloneDX/cyclonedx-go"
_SCHEMA = "bom-1.6.schema.json"


def validator() -> jsonschema.Draft7Validator:
    """Return the validator of bills of materials; it is fetched once per machine."""
    folders = definitions.fetch(places.default(), testing.shown(), "schemas")
    folder = folders[_MODULE] / "schema"
    schemas = [read(file) for file in sorted(folder.glob("*.json"))]
    pairs = [
        (schema["$id"], referencing.jsonschema.DRAFT7.create_resource(schema))
        for schema in schemas
        if "$id" in schema
    ]
    registry = referencing.Registry().with_resources(pairs)
    return jsonschema.Draft7Validator(read(folder / _SCHEMA), registry=registry)


def read(file: pathlib.Path) -> dict[str, Any]:
    """Return a document of JSON."""
    return dict(json.loads(file.read_text()))
