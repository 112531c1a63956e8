"""`mooring lab up --cloud dvp --charts` as its user runs it, to `down`.

Parent with its simulator, child with the real kubelet, containerd and core of Cluster
API: the daemons run in pods of the umbrella chart for DVP.
"""

import json
import re
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import grounds, parent, pod_values
from lib.lab.images import images
from lib.lab.pods import host_keeper, pod_host
from lib.lab.run import processes, waiting
from lib.lab.slots import leases
from lib.lab.whole import record, whole
from tests.harness import testing
from tests.harness.daemons import node_tool
from tests.harness.images import building

LIMIT_S = 600
OFFSET = 400
MACHINE = "workers-[a-z0-9]+-[a-z0-9]+"
FILE = "pod default/mooring-lab: its file"
EVIDENCE = {
    **{f"server {name}": rf"{name}-[0-9a-f]+ in zone" for name in record.NAMES},
    **{f"Node {name}": rf"dvp://{name}-[0-9a-f]+, " for name in record.NAMES},
    f"Node {record.NODE}": rf"dvp://{record.NODE}-[0-9a-f]+, ",
    "Service default/mooring-lab: address": r"192\.0\.2\.\d+",
    f"driver on {record.NODE}": grounds.DRIVER,
    "claim default/mooring-lab: bound": "volume ",
    FILE: "/data/lines written",
    "Cluster machines/lab": r"[\d.]+:\d+",
    "MachineDeployment machines/workers: Machines created": rf"{MACHINE}, {MACHINE}",
    "Machine 1: server": rf"{MACHINE}: [\d.]+",
    "Machine 2: server": rf"{MACHINE}: [\d.]+",
    "Machine 1: Node": rf"dvp://{MACHINE}, generic",
    "Machine 2: Node": rf"dvp://{MACHINE}, generic",
    "MachineDeployment machines/workers: Machines Running": rf"{MACHINE}, {MACHINE}",
}
"""Beginning of what is observed, by row."""
SCENES = (
    "Migrate the server mooring-lab-1",
    "Delete the server mooring-lab-3",
    "storageClasses discovered",
    "Service deleted",
    "rolling update: complete",
    "scaled to 2",
)


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[node_tool.NodeTool]:
    """Return the tool with its images; end what it has left."""
    if reason := pod_host.unavailable(lease.where):
        pytest.skip(reason)
    mine = lease.apart("d", OFFSET)
    with node_tool.short_environment(mine, 150) as env:
        where = places.default(env)
        folder, names = where.state.parent / "images", list(pod_values.COMPONENTS)
        images.build(lease.where, building.source(), names, folder, testing.shown())
        yield node_tool.NodeTool(where, env, LIMIT_S)
        whole.down(where, grounds.DvpGrounds(), testing.shown(), wipe=True)


def test_a_lab_of_pods_from_up_to_down(tool: node_tool.NodeTool) -> None:
    """Each row of the table and of the demo; each pod has its ServiceAccount."""
    pex_folder = pexes.beside(pexes.TOOL).parent
    folders = (
        f"--pex-folder={pex_folder}",
        f"--image-folder={tool.where.state.parent / 'images'}",
    )
    code, printed = tool.run("up", "--cloud", "dvp", "--charts", *folders)
    assert code == 0
    _, _, table = printed.rpartition("Observed")
    rows = [line.strip() for line in table.splitlines()]
    missing = [
        row
        for row, text in EVIDENCE.items()
        if not any(re.match(rf"{re.escape(row)} +[\d.]+ +{text}", x) for x in rows)
    ]
    assert missing == []
    code, printed = tool.run("status", "-o", "json")
    assert code == 0
    document = json.loads(printed)
    programs = {row["program"] for row in document["programs"]}
    assert programs >= {host_keeper.NAME, "kubelet", "cluster-api", parent.SIMULATOR}
    assert not programs & set(pod_values.COMPONENTS)
    pods = {row["component"]: row for row in document["pods"]}
    assert tuple(pods) == pod_values.COMPONENTS
    assert {(row["state"], row["node"]) for row in pods.values()} == {
        ("Ready", record.NODE)
    }
    assert len({row["service_account"] for row in pods.values()}) == len(pods)
    code, printed = tool.run("demo")
    assert (code, [scene for scene in SCENES if scene not in printed]) == (0, [])
    assert tool.run("down", "--wipe")[0] == 0
    waiting.until("no loop device and no mount is left", tool.is_clean)
    assert processes.names(tool.where) == ()
    assert tool.of_the_node() == []
