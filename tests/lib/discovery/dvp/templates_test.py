"""The published templates are a complete set, and of the contract's fields alone."""

import pathlib

import yaml

from lib.discovery.dvp import checksums, templates


def test_no_file_is_omitted() -> None:
    """A template that joins the folder joins the Secrets."""
    folder = pathlib.Path(templates.__file__).parent / "templates" / "capi"
    assert tuple(sorted(item.name for item in folder.iterdir())) == templates.FILES


def test_contracts_have_the_fields_that_a_strict_reader_knows() -> None:
    """An unknown key would make the node controller refuse the whole file."""
    cluster = yaml.safe_load(templates.text("cluster.yaml"))
    assert (set(cluster), cluster["version"]) == ({"version", "template"}, "v1")
    machine = yaml.safe_load(templates.text("template.yaml"))
    assert set(machine) == {"version", "rolloutFields", "template"}
    assert machine["version"] == "v2"
    assert tuple(machine["rolloutFields"]) == checksums.ROLLOUT_FIELDS
