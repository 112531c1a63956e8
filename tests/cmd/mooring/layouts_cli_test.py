"""`mooring layouts`, run as its users run it."""

import json
import pathlib

import jsonschema
import pytest
import yaml

from mooring.commands import schemas
from tests.harness.daemons import tool
from tests.harness.layouts import inputs, reference_states


def layouts(*words: object) -> tool.Said:
    return tool.mooring("layouts", *map(str, words))


def write(folder: pathlib.Path, **changes: object) -> pathlib.Path:
    """Write the inputs of a cluster of layout Standard; return the file."""
    file = folder / "cluster.yaml"
    document = inputs.document("Standard", inputs.NO_CLOUD, **changes)
    cluster = {"kind": "ClusterConfiguration", **inputs.cluster("prod")}
    file.write_text(yaml.safe_dump_all([document, cluster]))
    return file


def plan(folder: pathlib.Path, *actions: str) -> pathlib.Path:
    file = folder / "plan.json"
    volume = {
        "address": "module.kubernetes_data.openstack_blockstorage_volume_v3.it",
        "mode": "managed",
        "type": "openstack_blockstorage_volume_v3",
        "change": {"actions": list(actions), "before": {"size": 1}, "after": None},
    }
    document = {"format_version": "1.2", "resource_changes": [volume]}
    file.write_text(json.dumps(document))
    return file


def test_the_layouts_are_listed() -> None:
    result = layouts("list", "-o", "name")

    assert result.returncode == 0
    assert result.stdout.split() == [f"layout/{name}" for name in inputs.LAYOUTS]


def test_the_objects_of_valid_inputs_are_printed(tmp_path: pathlib.Path) -> None:
    result = layouts("check", write(tmp_path), "-o", "json")

    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, schemas.of_command("mooring layouts check"))
    assert {
        "root": "base-infrastructure",
        "kind": "router",
        "name": "prod",
    } in document["objects"]


def test_all_problems_are_printed_together(tmp_path: pathlib.Path) -> None:
    file = write(tmp_path, top={"tags": {"a": "x" * 60}, "zones": ["az7"]})

    result = layouts("check", file)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("2 problems:")
    assert inputs.NO_CLOUD["password"] not in result.stderr


def test_a_file_without_the_cluster_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("kind: OpenStackClusterConfiguration")

    result = layouts("check", file)

    assert result.returncode == 1
    assert "no document of kind ClusterConfiguration" in result.stderr


@pytest.mark.parametrize(
    ("actions", "code"),
    [(("delete", "create"), 3), (("delete",), 3), (("create",), 0), (("no-op",), 0)],
)
def test_a_plan_that_destroys_a_volume_ends_with_3(
    tmp_path: pathlib.Path, actions: tuple[str, ...], code: int
) -> None:
    result = layouts("review", plan(tmp_path, *actions), "-o", "json")

    assert result.returncode == code, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, schemas.of_command("mooring layouts review"))


def test_what_is_lost_is_printed(tmp_path: pathlib.Path) -> None:
    result = layouts("review", plan(tmp_path, "delete"))

    assert "the volume and its content" in " ".join(result.stdout.split())


def test_a_cloud_that_does_not_answer_is_one_sentence(tmp_path: pathlib.Path) -> None:
    provider = {**inputs.NO_CLOUD, "authURL": "http://127.0.0.1:1/v3"}
    file = write(tmp_path, top={"provider": provider})

    result = layouts("check", file, "--online")

    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    assert inputs.NO_CLOUD["password"] not in result.stderr


def state(folder: pathlib.Path) -> pathlib.Path:
    file = folder / "terraform.tfstate"
    file.write_text(json.dumps(reference_states.master()))
    return file


def test_blocks_for_a_state_are_printed_as_a_file(tmp_path: pathlib.Path) -> None:
    result = layouts("recover", state(tmp_path))

    assert result.returncode == 0, result.stderr
    assert "#   tofu state rm module.master.openstack_compute" in result.stdout
    address = "openstack_networking_floatingip_v2.floating_ip[0]"
    block = f'import {{\n  to = module.floating_ip[0].{address}\n  id = "f"\n}}\n'
    assert block in result.stdout


def test_blocks_are_printed_as_a_document_or_a_table(tmp_path: pathlib.Path) -> None:
    document = json.loads(layouts("recover", state(tmp_path), "-o", "json").stdout)
    table = layouts("recover", state(tmp_path), "-o", "table").stdout

    jsonschema.validate(document, schemas.of_command("mooring layouts recover"))
    assert [each["block"] for each in document["blocks"]] == [
        *["state rm"] * 2,
        *["import"] * 2,
    ]
    for each in document["blocks"]:
        assert each["address"] in table


PLANS = {
    "no layout's": ({"resource_changes": []}, "no variable provider"),
    "without credentials": (
        {
            "resource_changes": [],
            "variables": {"providerClusterConfiguration": {"value": {}}},
        },
        "OS_AUTH_URL",
    ),
    "neither plan nor state": ({}, "neither a plan"),
}


@pytest.mark.parametrize("row", PLANS.values(), ids=PLANS.keys())
def test_a_plan_without_a_cloud_is_refused(
    tmp_path: pathlib.Path, row: tuple[object, str]
) -> None:
    document, text = row
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))

    result = layouts("recover", file)

    assert (result.returncode, result.stdout) == (1, "")
    assert text in result.stderr


@pytest.mark.parametrize("text", ["{}", "no JSON", "[]"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)

    result = layouts("review", file)

    assert result.returncode == 1
    assert str(file) in result.stderr
