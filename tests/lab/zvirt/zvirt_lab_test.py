"""`mooring lab up --cloud zvirt` to `down`: engine, control plane, faults, restart."""

import json
from collections.abc import Iterator

import pytest

from lib.lab.run import waiting
from lib.lab.slots import leases
from tests.harness.daemons.lab_tool import LabTool, environment

OFFSET = 400
"""Of the ports, from those of the slot."""


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[LabTool]:
    """Return the packaged tool with places of its own; end its lab in any case."""
    mine = lease.apart("lab", OFFSET)
    opened = LabTool(mine, environment(mine, 150), waiting.LIMIT_S)
    try:
        yield opened
    finally:
        opened.run("down", "--wipe")


def test_a_lab_of_zvirt(tool: LabTool) -> None:
    """VMs become servers and Nodes; objects survive a restart of the lab."""
    code, text = tool.run("up", "--cloud", "zvirt")
    assert code == 0, text
    assert "lab zvirt counts" in text
    code, text = tool.run("status")
    assert code == 0, text
    for name in ("zvirt-engine", "kube-apiserver", "simulated-kubelets"):
        assert name in text
    assert text.count("ACTIVE") == 3
    assert "not running" not in text
    assert "Request" in text
    code, text = tool.run("env")
    assert code == 0, text
    assert "ZVIRT_API_URL=https://127.0.0.1:" in text
    assert "ZVIRT_PASSWORD_FILE=" in text
    rule = "html GET api/vms* 503 5"
    for words in (("rules", rule), ("rules",), ("lose-tokens",), ("advance", "60")):
        code, text = tool.run("zvirt", *words)
        assert code == 0, text
    code, text = tool.run("zvirt", "rules", "wheels")
    assert code != 0
    assert "invalid rule" in text
    code, text = tool.run("zvirt", "counts")
    assert code == 0, text
    assert isinstance(json.loads(text[text.index("{") :]), dict)
    assert tool.run("down")[0] == 0
    code, text = tool.run("up", "--cloud", "zvirt")
    assert code == 0, text
    code, text = tool.run("status")
    assert text.count("ACTIVE") == 3, text
