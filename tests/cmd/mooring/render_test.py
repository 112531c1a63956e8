"""`mooring render openstack`, run as its users run it."""

import base64
import json
import pathlib
from typing import Any

import pytest
import yaml

from tests.harness.daemons import tool

CONFIGURATION = """
apiVersion: deckhouse.io/v1
kind: OpenStackClusterConfiguration
layout: Simple
sshPublicKey: >-
  ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtpdmVraXZla2l2ZWtpdmVraXZla2l2ZWtpdmVraXZl
provider:
  authURL: https://keystone.example:5000/v3
  domainName: Default
  username: captain
  password: s3cr3t
  region: north
  tenantName: fleet
masterNodeGroup:
  replicas: 1
  instanceClass: {flavorName: m1.large, imageName: ubuntu}
  volumeTypeMap: {a: fast}
simple: {externalNetworkName: public}
zones: [a, b]
---
kind: InitConfiguration
"""
DISCOVERED = {
    "apiVersion": "deckhouse.io/v1",
    "kind": "OpenStackCloudDiscoveryData",
    "internalNetworkNames": ["found"],
    "podNetworkMode": "VXLAN",
    "zones": ["a"],
}


def render(*words: object) -> tool.Said:
    return tool.mooring("render", "openstack", *map(str, words))


@pytest.fixture()
def configuration(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "configuration.yaml"
    file.write_text(CONFIGURATION)
    return file


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_everything_is_printed(configuration: pathlib.Path) -> None:
    """Secrets, templates and values; remarks go elsewhere."""
    result = render("--cluster-configuration", configuration)
    assert result.returncode == 0, result.stderr
    kinds = [document.get("kind", "values") for document in documents(result.stdout)]
    assert kinds == ["Secret"] * 6 + ["OpenStackCluster", "values"]
    assert "InitConfiguration: ignored" in result.stderr
    assert "what the layout will make" in result.stderr
    assert "s3cr3t" not in result.stderr


def test_each_format_has_the_same_objects(configuration: pathlib.Path) -> None:
    """A stream of YAML documents by default; a List, names or a table otherwise."""
    words = ("--cluster-configuration", configuration)
    objects = documents(render(*words).stdout)
    listed = json.loads(render(*words, "-o", "json").stdout)
    assert (listed["kind"], listed["items"]) == ("List", objects)
    names = render(*words, "-o", "name").stdout.splitlines()
    assert (len(names), names[-1]) == (len(objects), "values")
    for output in ("table", "wide"):
        table = render(*words, "-o", output).stdout
        assert all(name.rpartition("/")[2] in table for name in names)
        assert "s3cr3t" not in table


def test_parts_are_printed_alone(configuration: pathlib.Path) -> None:
    """Each part by its name; together they are the whole."""
    whole = render("--cluster-configuration", configuration).stdout
    parts = ""
    for part in ("secrets", "templates", "values"):
        result = render("--cluster-configuration", configuration, "--only", part)
        parts += result.stdout
        assert {"kind" in document for document in documents(result.stdout)} == {
            part != "values"
        }
    assert parts == whole


def test_discovery_data_counts(
    configuration: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """What was found takes the place of what is likely."""
    discovery_data = tmp_path / "discovery.json"
    discovery_data.write_text(json.dumps(DISCOVERED))
    result = render(
        "--cluster-configuration", configuration, "--discovery-data", discovery_data
    )
    assert result.returncode == 0, result.stderr
    assert "what the layout will make" not in result.stderr
    secret = documents(result.stdout)[1]
    text = base64.b64decode(secret["data"]["cloud-config"]).decode()
    assert 'internal-network-name = "found"\n' in text
    stored = documents(result.stdout)[6]
    assert stored["metadata"]["name"] == "d8-provider-cluster-configuration"
    raw = base64.b64decode(stored["data"]["cloud-provider-discovery-data.json"])
    assert json.loads(raw) == DISCOVERED


def test_every_problem_is_told_and_no_secret(tmp_path: pathlib.Path) -> None:
    """Exit code 1, one line each, nothing printed, no traceback."""
    file = tmp_path / "bad.yaml"
    file.write_text(
        CONFIGURATION.replace("region: north", "tenantID: 7")
        .replace("password: s3cr3t", "passwort: s3cr3t")
        .replace("replicas: 1", "replicas: none")
    )
    result = render("--cluster-configuration", file)
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert lines[0] == "6 problems:"
    fields = [line.split(": ")[0].split(" ")[1] for line in lines[1:]]
    assert fields == [
        "masterNodeGroup.replicas",
        "provider",
        "provider.password",
        "provider.passwort",
        "provider.region",
        "provider.tenantID",
    ]
    assert "s3cr3t" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"password: *s3cr3t", "must be YAML that can be read (line 1, column 11)"),
        (b"\xffs3cr3t", "not a text file in UTF-8"),
        (
            b"",
            (
                "OpenStackClusterConfiguration: not set: must be a document of"
                " this kind"
            ),
        ),
        (b"s3cr3t", "document 1: invalid value: must be an object with a kind"),
    ],
)
def test_unreadable_files_are_one_sentence(
    tmp_path: pathlib.Path, content: bytes, words: str
) -> None:
    """Whatever is in the file is not shown."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    result = render("--cluster-configuration", file)
    assert (result.returncode, result.stdout) == (1, "")
    assert words in result.stderr
    assert "s3cr3t" not in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unsafe_change_prints_nothing(
    configuration: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Compared with the configuration in use, it is named with its effect."""
    words = ("--cluster-configuration", configuration, "--previous")
    assert render(*words, configuration).returncode == 0
    before = tmp_path / "before.yaml"
    before.write_text(CONFIGURATION.replace("north", "south"))
    result = render(*words, before)
    assert (result.returncode, result.stdout) == (1, "")
    assert (
        "unsafe: provider.region: from 'south' to 'north': all resources"
        in result.stderr
    )


def test_help_says_that_passwords_are_printed() -> None:
    """Whoever pipes the output knows what is in it."""
    result = render("--help")
    assert result.returncode == 0
    assert "The Secrets contain the passwords" in " ".join(result.stdout.split())
    assert render().returncode == 2
