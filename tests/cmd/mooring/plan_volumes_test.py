"""How refused volumes are printed, and the exit codes."""

import json
import pathlib

import click.testing
import pytest

from lib.migration.changed_items import ChangedItem
from lib.migration.refused_volumes import RefusedVolumes
from mooring.commands import plan_volumes

DRIVER = "cinder.csi.openstack.org"
ITEM = ChangedItem("PersistentVolume a of claim shop/data", "ReadWriteMany", "refused")
READ = RefusedVolumes(
    7, (ITEM, ChangedItem("PersistentVolumeClaim shop/waits", "the same", "refused"))
)


def test_a_row_for_each_refused_object(capsys: pytest.CaptureFixture[str]) -> None:
    plan_volumes.show(READ, DRIVER, "wide")
    printed = capsys.readouterr().out
    print(printed)
    assert "PersistentVolume a of claim shop/data" in printed
    assert printed.splitlines()[-1] == f"2 refused: 7 objects of {DRIVER} checked."


def test_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    plan_volumes.show(RefusedVolumes(7, ()), DRIVER)
    printed = capsys.readouterr().out
    assert printed == f"Nothing refused: 7 objects of {DRIVER} checked.\n"


def test_documents_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    plan_volumes.show(READ, DRIVER, "json")
    document = json.loads(capsys.readouterr().out)
    assert document["checked"] == 7
    assert document["refused"][0] == {
        "object": ITEM.subject,
        "cause": "ReadWriteMany",
        "reason": "refused",
    }
    plan_volumes.show(READ, DRIVER, "name")
    names = capsys.readouterr().out.split()
    assert names == ["persistentvolume/a", "persistentvolumeclaim/shop/waits"]


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: pathlib.Path) -> None:
    run = click.testing.CliRunner().invoke(
        plan_volumes.volumes, ["--kubeconfig", str(tmp_path / "absent")]
    )
    print(run.output)
    assert run.exit_code == 1
    assert "absent" in run.output
