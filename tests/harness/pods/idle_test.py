"""A table of an idle hour has a row for each program, and fails on work."""

import pytest

from tests.harness.kube import audit
from tests.harness.pods import idle

ACCOUNT = ("child", "csi-controller")
PROVISIONER = (*ACCOUNT, "csi-provisioner")
ATTACHER = (*ACCOUNT, "csi-attacher")
NODE = ("child", "csi-node", idle.NO_PROGRAM)
ALL = (PROVISIONER, ATTACHER, NODE)


def request(
    program: str, verb: str = "get", resource: str = "persistentvolumes"
) -> audit.Row:
    return audit.Row(
        verb=verb,
        group="",
        resource=resource,
        subresource="",
        name="",
        agent=f"{program}/v0.0.0 (linux/amd64) kubernetes/$Format",
        code=200,
        credential="",
        received="",
        body={},
    )


START = [request("csi-provisioner", "list"), request("csi-attacher", "list")]
HARMLESS = [
    request("csi-provisioner", "watch"),
    request("csi-provisioner", "update", "leases"),
    request("csi-provisioner", "get", ""),
]


def table(*requests: audit.Row) -> idle.Rows:
    """Return the table of an hour with some requests."""
    others: idle.Log = {("child", "csi-node"): []}
    before = {ACCOUNT: START, **others}
    return idle.between(before, {ACCOUNT: [*START, *requests], **others})


def test_each_program_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    idle.check(table(*HARMLESS), ALL)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[2] for row in rows] == ["csi-attacher", "csi-provisioner", "-"]
    assert [row[3::2] for row in rows] == [list("0000"), list("1110"), list("0000")]


def test_work_is_reported_with_its_program() -> None:
    with pytest.raises(AssertionError, match="csi-attacher"):
        idle.check(table(*HARMLESS, request("csi-attacher")), ALL)


def test_a_missing_and_an_additional_program_are_reported() -> None:
    resizer = (*ACCOUNT, "csi-resizer")
    with pytest.raises(AssertionError, match="csi-resizer"):
        idle.check(table(), (*ALL, resizer))
    with pytest.raises(AssertionError, match="csi-resizer"):
        idle.check(table(request("csi-resizer", "watch")), ALL)
