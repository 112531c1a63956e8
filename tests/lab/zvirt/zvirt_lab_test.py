"""`mooring lab up --cloud zvirt` to `down`: components, faults, restart, the tool."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from lib.lab.artifacts import pexes
from lib.lab.run import waiting
from lib.lab.slots import leases
from tests.harness.daemons.lab_tool import LabTool, environment

OFFSET = 400
"""Of the ports, from those of the slot."""
SCENES = (
    "Stop the server mooring-lab-2",
    "Start the server mooring-lab-2 again",
    "Migrate the server mooring-lab-1",
    "Delete the server mooring-lab-3",
    "Make a server mooring-lab-3 again",
    "storageDomains discovered",
    "claim created: bound",
    "claim expanded: 1Gi to 2Gi",
    "claim deleted",
)
ROWS = (
    *(rf"server mooring-lab-{n} +[\d.]+ +" for n in (1, 2, 3)),
    *(rf"Node mooring-lab-{n} +[\d.]+ +zvirt://[0-9a-f-]+" for n in (1, 2, 3)),
    r"storageDomains discovered +[\d.]+ +iscsi-1, nfs-1",
    r"claim default/mooring-lab: bound +[\d.]+ +volume pvc-",
)


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[LabTool]:
    """Return the packaged tool with places of its own; end its lab in any case."""
    mine = lease.apart("lab", OFFSET)
    opened = LabTool(mine, environment(mine, 150), waiting.LIMIT_S)
    try:
        yield opened
    finally:
        opened.run("down", "--wipe")


def up(tool: LabTool) -> str:
    folder = str(pexes.beside(pexes.TOOL).parent)
    code, text = tool.run("up", "--cloud", "zvirt", "--pex-folder", folder)
    assert code == 0, text
    return text


def test_a_lab_of_zvirt(tool: LabTool) -> None:
    """VMs become servers and Nodes; objects survive a restart of the lab."""
    text = up(tool)
    assert "lab zvirt counts" in text
    rows = [line.strip() for line in text.splitlines()]
    for pattern in ROWS:
        assert any(re.match(pattern, row) for row in rows), pattern
    code, text = tool.run("status")
    assert code == 0, text
    for name in (
        "zvirt-engine",
        "zvirt-ccm",
        "csi-controller",
        "cloud-data-discoverer",
    ):
        assert name in text
    assert text.count("ACTIVE") == 3
    assert "not running" not in text
    assert "Request" in text
    check_the_tool(tool)
    code, text = tool.run("demo")
    missing = [scene for scene in SCENES if scene not in text]
    assert (code, missing) == (0, [])
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
    up(tool)
    code, text = tool.run("status")
    assert text.count("ACTIVE") == 3, text


def variables(tool: LabTool) -> Mapping[str, str]:
    """Return the environment in which the lab is used."""
    code, text = tool.run("env")
    assert code == 0, text
    assert "ZVIRT_API_URL=https://127.0.0.1:" in text
    assert "ZVIRT_PASSWORD_FILE=" in text
    words = [word for line in text.splitlines() for word in shlex.split(line)]
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return {**os.environ, **tool.env, **dict(pairs)}


def check_the_tool(tool: LabTool) -> None:
    """Run the commands that read cluster and engine."""
    env = variables(tool)

    def run(*words: str) -> tuple[int, str]:
        command = (*pexes.command(pexes.beside(pexes.TOOL)), *words)
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        print(words, done.returncode, done.stdout, done.stderr, sep="\n")
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    code, text = run("doctor", "--cloud", "zvirt")
    assert code == 0
    for line in ("authenticated as", "none of 2 is close to its limit", "zvirt-ccm"):
        assert line in text
    assert "no problem of the instances of 3 Nodes" in text
    code, text = run("plan", "nodes", "--cloud", "zvirt")
    assert (code, "No changes: 3 Nodes checked" in text) == (0, True)
    code, text = run("get", "nodes", "--cloud", "zvirt")
    assert code == 0
    assert text.count("mooring-lab-") >= 3
    code, text = run("orphans", "--cloud", "zvirt")
    assert code == 0
