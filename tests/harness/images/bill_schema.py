"""Schema of CycloneDX, from the Go module that contains it."""

import json
import pathlib
from typing import Any

import jsonschema

from lib.lab import places
from tests.harness import testing
from tests.harness.kube import definitions

_MODULE = "github.com/CycloneDX/cyclonedx-go"
_SCHEMA = "bom-1.6.schema.json"
_LICENCES = "spdx.schema.json"


def validator() -> jsonschema.Draft7Validator:
    """Return the validator of bills of materials; it is fetched once per machine."""
    folders = definitions.fetch(places.default(), testing.shown(), "schemas")
    folder = folders[_MODULE] / "schema"
    schema = read(folder / _SCHEMA)
    properties = schema["definitions"]["license"]["properties"]
    assert properties["id"]["$ref"] == _LICENCES
    # The only other file to which it refers is of signatures, which no bill has.
    properties["id"] = {"enum": read(folder / _LICENCES)["enum"]}
    return jsonschema.Draft7Validator(schema)


def read(file: pathlib.Path) -> dict[str, Any]:
    """Return a document of JSON."""
    return dict(json.loads(file.read_text()))
