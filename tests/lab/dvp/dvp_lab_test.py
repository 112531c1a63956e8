"""`mooring lab up --cloud dvp` to `down`: VMs, Nodes, a Service's address, a claim."""

import json
import re
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import parent
from lib.lab.run import ports, waiting
from lib.lab.slots import leases
from tests.harness.daemons.lab_tool import LabTool, environment

OFFSET = 400
"""Of the ports, from those of the slot."""
LIMIT_S = waiting.LIMIT_S
STEPS = (
    "Stop the server mooring-lab-2",
    "Start the server mooring-lab-2 again",
    "Migrate the server mooring-lab-1",
    "Delete the server mooring-lab-3",
    "Make a server mooring-lab-3 again",
    "storageClasses discovered",
    "Service created: address",
    "Service deleted",
    "claim created: bound",
    "claim expanded: 1Gi to 2Gi",
    "claim deleted",
    "scaled to 3",
    "rolling update: 1 of 3 replaced",
    "rolling update: 2 of 3 replaced",
    "rolling update: 3 of 3 replaced",
    "rolling update: complete",
    "scaled to 2",
)


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[LabTool]:
    """Return the packaged tool with places of its own; end its lab in any case."""
    mine = lease.apart("lab", OFFSET)
    opened = LabTool(mine, environment(mine, 150), LIMIT_S)
    try:
        yield opened
    finally:
        opened.run("down", "--wipe")


def check_path(text: str) -> None:
    """Fail unless `up` shows VMs, Nodes, address and claim in one table."""
    _, _, path = text.partition("From a server to a volume")
    _, header, table = path.partition("Observed")
    assert header
    rows = [line.strip() for line in table.partition("Look around")[0].splitlines()]
    for number in (1, 2, 3):
        vm = rf"mooring-lab-{number}-[0-9a-f]+"
        assert_row(
            rows, rf"server mooring-lab-{number} +[\d.]+ +{vm} in zone [abc]: 10"
        )
        assert_row(
            rows, rf"Node mooring-lab-{number} +[\d.]+ +dvp://{vm}, generic, zone"
        )
    assert_row(rows, r"Service default/mooring-lab: address +[\d.]+ +192\.0\.2\.\d+")
    assert_row(rows, r"claim default/mooring-lab: bound +[\d.]+ +volume pvc-")
    machine = r"workers-[a-z0-9]+-[a-z0-9]+"
    assert_row(rows, r"Cluster machines/lab +[\d.]+ +[\d.]+:\d+")
    for number in (1, 2):
        assert_row(rows, rf"Machine {number}: server +[\d.]+ +{machine}: 10")
        assert_row(rows, rf"Machine {number}: Node +[\d.]+ +dvp://{machine}, generic")
    assert_row(
        rows,
        rf"MachineDeployment machines/workers: Machines Running +[\d.]+"
        rf" +{machine}, {machine}",
    )


def assert_row(rows: list[str], pattern: str) -> None:
    assert [row for row in rows if re.match(pattern, row)], (pattern, rows)


def test_a_lab_from_up_to_down(tool: LabTool) -> None:
    """The demo stops, migrates and deletes VMs; each step is observed."""
    folder = str(pexes.beside(pexes.TOOL).parent)
    code, text = tool.run("up", "--cloud", "dvp", "--pex-folder", folder)
    assert code == 0
    check_path(text)
    code, text = tool.run("status", "-o", "json")
    assert code == 0
    programs = {row["program"] for row in json.loads(text)["programs"]}
    print(", ".join(sorted(programs)))
    expected = {"parent kube-apiserver", parent.SIMULATOR, "dvp-ccm", "csi-controller"}
    assert programs >= expected | {"cluster-api", "capdvp"}
    code, text = tool.run("demo")
    missing = [step for step in STEPS if step not in text]
    assert (code, missing) == (0, [])
    assert "openstack" not in text.lower()
    code, text = tool.run("server", "expose", "mooring-lab-1")
    assert code != 0
    assert "cannot expose" in text
    code, _ = tool.run("down", "--wipe")
    assert code == 0
    own = places.Places(tool.where.cache, tool.where.state, tool.where.port_base)
    for program in ("apiserver", "etcd", "cloud-1", "cloud-2"):
        assert ports.free(own.port(program)), program
