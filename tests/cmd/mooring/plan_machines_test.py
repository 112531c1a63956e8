"""How plans of machines are printed, and which cloud has none."""

import pathlib

import click.testing
import pytest

from lib.capi import previews_machines
from lib.cloud.machines import Reason
from lib.cloud.steps import Problem, Verb
from lib.machines.preview import MachineChange, MachinePlanState, MachineRow
from mooring.commands import plan_machines

ROWS = (
    MachineRow(
        "x/one",
        MachinePlanState.WOULD_CREATE,
        changes=(
            MachineChange("VirtualMachine one", Verb.CREATE, "it is absent"),
            MachineChange("VirtualDisk one-boot", Verb.CREATE, "absent", True),
        ),
    ),
    MachineRow(
        "x/two",
        MachinePlanState.INVALID,
        problems=(Problem(Reason.INVALID_SPEC, "memory: not set", is_fatal=True),),
    ),
    MachineRow("x/three", MachinePlanState.WAITING, "no bootstrap data yet"),
    MachineRow("x/four", MachinePlanState.UNKNOWN, "503"),
    MachineRow("x/five", MachinePlanState.IN_SYNC),
)


def test_a_line_for_each_change_and_problem(capsys: pytest.CaptureFixture[str]) -> None:
    plan_machines.show(previews_machines.MachinesPreview(ROWS), "wide")
    printed, failed = capsys.readouterr()
    print(printed)
    assert "create (afterwards)" in printed
    assert "InvalidMachineSpec: memory: not set" in printed
    assert "no bootstrap data yet" in printed
    assert "x/five" not in printed
    assert printed.splitlines()[-1].startswith("5 machines checked: 1 WouldCreate")
    assert printed.count("503") == 1
    assert failed == ""


def test_nothing_to_do() -> None:
    plan = previews_machines.MachinesPreview(ROWS[-1:])
    assert plan_machines.summary(plan) == "No changes: 1 machine checked."
    assert plan_machines.document(plan)["totals"] == {"InSync": 1}


def test_a_cloud_without_machines_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(
        "[Global]\nauth-url = https://keystone.example:5000/v3\nusername = u\n"
        "password = p\nuser-domain-name = d\ntenant-id = p\n"
    )
    arguments = ["--cloud-config", str(file)]
    run = click.testing.CliRunner().invoke(plan_machines.machines, arguments)
    print(run.output)
    assert run.exit_code == 1
    assert "--cloud: openstack has no machines" in run.output
