"""The published schemas are those of the documents, and output is validated by them."""

import json
import pathlib

import jsonschema
import pytest
import yaml

from mooring.commands import documents, schemas
from tests.harness.daemons.tool import mooring

PAGE = pathlib.Path("docs/reference/output-schemas.json")


def test_the_published_schemas_are_current() -> None:
    """To write them again: see mooring/commands/schemas.py."""
    assert json.loads(PAGE.read_text()) == json.loads(json.dumps(schemas.whole()))


@pytest.mark.parametrize("command", sorted(documents.DOCUMENTS))
def test_each_schema_rejects_another_document(command: str) -> None:
    """It is a valid schema, and a document without the keys is invalid."""
    schema = schemas.of_command(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({}, schema)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_output_without_a_cluster_is_valid(
    output: str, nowhere: tuple[str, ...]
) -> None:
    for words, command in (
        (("version",), "mooring version"),
        (("doctor", *nowhere), "mooring doctor"),
    ):
        result = mooring(*words, f"--output={output}")
        document = yaml.safe_load(result.stdout)
        jsonschema.validate(document, schemas.of_command(command))
        assert document
