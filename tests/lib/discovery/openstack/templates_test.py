"""The Secrets with Go templates hold complete sets of files."""

import base64
import pathlib

import pytest
import yaml

from lib.discovery.openstack import templates


@pytest.mark.parametrize("engine", sorted(templates.ENGINES))
def test_each_engine_has_its_secret(engine: str) -> None:
    """All files of the engine by base name, found by two labels."""
    secret = templates.secret(engine)
    data = secret["data"]
    assert isinstance(data, dict)
    read = {name: base64.b64decode(text).decode() for name, text in data.items()}
    assert tuple(read) == templates.ENGINES[engine]
    assert read == {name: templates.text(engine, name) for name in read}
    assert secret["metadata"] == {
        "name": f"d8-cloud-provider-openstack-{engine}",
        "namespace": "kube-system",
        "labels": {
            "heritage": "deckhouse",
            "module": "cloud-provider-openstack",
            "cloud-provider.deckhouse.io/ephemeral-nodes-templates": engine,
            "cloud-provider.deckhouse.io/name": "openstack",
        },
    }


def test_no_file_is_left_out() -> None:
    """A template that joins the folder joins a Secret."""
    folder = pathlib.Path(templates.__file__).parent / "templates"
    kept = {item.name: {f.name for f in item.iterdir()} for item in folder.iterdir()}
    assert kept == {engine: set(names) for engine, names in templates.ENGINES.items()}


@pytest.mark.parametrize("name", templates.ENGINES["capi"])
def test_contracts_have_the_fields_that_a_strict_reader_knows(name: str) -> None:
    """An unknown key would make the node controller refuse the whole file."""
    read = yaml.safe_load(templates.text("capi", name))
    more = {"rolloutFields", "machineDeployment"} if name == "template.yaml" else set()
    assert set(read) == {"version", "template"} | more
    assert read["version"] == ("v2" if more else "v1")
