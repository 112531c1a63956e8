"""`mooring lab up --node` and `lab demo` as their user runs them; nothing is left.

Also when everything is killed while a volume is mounted, and when only the keeper of
the mount namespace is.
"""

import contextlib
import re
from collections.abc import Iterator

import psutil
import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import cluster, control_plane, kube_objects, kubelet
from lib.lab.openstack import grounds
from lib.lab.run import waiting
from lib.lab.slots import leases
from lib.lab.storage import loop_disks, node_keeper, storage_node, volume_client
from lib.lab.whole import record, whole
from tests.harness import testing
from tests.harness.daemons import lab_tool, node_tool

LIMIT_S = waiting.LIMIT_S
OFFSET = 400

STEPS = (
    "claim and pod created: bound",
    "attached to the server",
    "staged on the node",
    "the pod writes",
    "expanded while mounted",
    "pod deleted: unmounted",
    "another pod reads the same data",
    "pod and claim deleted",
    "nothing remains",
)


class VolumeTool(node_tool.NodeTool):
    """The packaged tool, with a lab whose node has volumes."""

    def up(self) -> None:
        """Start what does not run."""
        folder = pexes.beside(pexes.TOOL).parent
        assert self.run("up", "--node", f"--pex-folder={folder}")[0] == 0


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[VolumeTool]:
    """Return the tool; end what it has left."""
    if reason := kubelet.unavailable(lease.where) or loop_disks.unavailable():
        pytest.skip(reason)
    mine = lease.apart("n", OFFSET)
    env = lab_tool.environment(mine, 120)
    where = places.default(env)
    yield VolumeTool(where, env, LIMIT_S)
    whole.down(where, grounds.OpenStackGrounds(), testing.shown(), wipe=True)


@pytest.fixture(scope="module")
def up(tool: VolumeTool) -> None:
    """Start the lab with its real node."""
    tool.up()


@pytest.mark.usefixtures("up")
def test_all_programs_run_and_it_may_be_repeated(tool: VolumeTool) -> None:
    code, printed = tool.run("status")
    assert code == 0
    for name in (node_keeper.NAME, *kubelet.PROGRAMS, *storage_node.PROGRAMS):
        assert re.search(rf"^ *{name} .*running", printed, re.MULTILINE), name
    pid = tool.keeper().pid
    tool.up()
    assert tool.keeper().pid == pid


@pytest.mark.usefixtures("up")
def test_the_demo_shows_the_life_of_a_volume(tool: VolumeTool) -> None:
    """One row for each step in the table, none of them still waited for."""
    code, printed = tool.run("demo")
    _, _, table = printed.partition("A volume of csi-controller and csi-node")
    rows = [line.strip() for line in table.partition("Observed")[2].splitlines()]
    for step in STEPS:
        (row,) = (line for line in rows if line.startswith(step))
        assert re.search(r" \d+\.\d {2,}\S", row), row
        assert "waiting" not in row
    assert code == 0
    assert loop_disks.backed_by(tool.where.state) == []
    assert [mount for mount in tool.mounts() if "kubernetes.io~csi" in mount] == []


def user(tool: VolumeTool) -> volume_client.VolumeClient:
    api = cluster.connect(control_plane.admin_kubeconfig(tool.where))
    view = storage_node.NodeView(tool.where, tool.keeper().pid)
    objects = kube_objects.Objects(api, "default")
    return volume_client.VolumeClient(objects, view, record.NODE)


@pytest.mark.usefixtures("up")
def test_killed_with_a_mounted_volume_it_leaves_nothing(tool: VolumeTool) -> None:
    """SIGKILL for all processes of the node; the next start finds the data."""
    client = user(tool)
    client.add_class("xfs")
    client.claim("kept", "xfs")
    client.pod("writer", "kept")
    waiting.until("the pod has written", lambda: client.has_written("writer"))
    assert loop_disks.backed_by(tool.where.state) != []
    assert tool.mounts() != []
    for _ in range(3):  # the keeper may have started another
        for process in tool.of_the_node():
            with contextlib.suppress(psutil.Error):
                process.kill()
    waiting.until("no loop device and no mount is left", tool.is_clean)
    assert tool.run("status")[0] == 1
    tool.up()
    client = user(tool)
    client.delete("writer")
    client.pod("reader", "kept")
    waiting.until("the next pod has written", lambda: client.has_written("reader"))
    assert client.lines("reader") == ["writer", "written"]


@pytest.mark.usefixtures("up")
def test_down_leaves_nothing_of_a_node_without_its_keeper(tool: VolumeTool) -> None:
    """The keeper is killed, a volume is mounted: the lab's folder is removed."""
    tool.check_down_without_keeper()
