"""`mooring lab up --charts` as its user runs it: components in pods of their images.

The packaged tool, the real helm, kubelet and containerd. Also when the process that
owns the namespaces of the node is killed; nothing is left in the end.
"""

import json
import re
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.images import images
from lib.lab.kube import kubelet
from lib.lab.openstack import grounds, pod_values
from lib.lab.pods import host_keeper, pod_host
from lib.lab.run import processes
from lib.lab.slots import leases
from lib.lab.whole import record, whole
from tests.harness import testing
from tests.harness.daemons import lab_tool, node_tool
from tests.harness.images import building

LIMIT_S = 600
OFFSET = 400
NODES = (*record.NAMES, record.NODE)
FILE = "pod default/mooring-lab: its file"
ROWS = (
    *(rf"server {name}" for name in NODES),
    *(rf"pod of {name}: Ready" for name in pod_values.COMPONENTS),
    *(rf"Node {name}" for name in NODES),
    "flavors discovered",
    "Service default/mooring-lab: address",
    f"driver on {record.NODE}",
    "claim default/mooring-lab: bound",
    FILE,
)
SCENES = (
    "Stop the server mooring-lab-2",
    "Delete the server mooring-lab-3",
    "Make a server mooring-lab-3 again",
    "flavors discovered",
    "Service created: address",
    "Service deleted",
    "the pod writes",
    "expanded while mounted",
    "another pod reads the same data",
    "nothing remains",
)


class ChartTool(node_tool.NodeTool):
    """The packaged tool, with a lab whose components run in pods."""

    def up(self) -> str:
        """Start what does not run; return what was printed."""
        code, printed = self.run("up", "--node", "--charts", *self.folders())
        assert code == 0
        return printed

    def folders(self) -> tuple[str, str]:
        """Return the options with the folders of PEX files and images."""
        pex_folder = pexes.beside(pexes.TOOL).parent
        return f"--pex-folder={pex_folder}", f"--image-folder={self.images}"

    @property
    def images(self) -> str:
        """The folder of the images."""
        return str(self.where.state.parent / "images")


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[ChartTool]:
    """Return the tool, without images; end what it has left."""
    if reason := pod_host.unavailable(lease.where):
        pytest.skip(reason)
    mine = lease.apart("c", OFFSET)
    with node_tool.short_environment(mine, 150) as env:
        where = places.default(env)
        yield ChartTool(where, env, LIMIT_S)
        whole.down(where, grounds.OpenStackGrounds(), testing.shown(), wipe=True)


def test_a_path_that_is_too_long_is_one_sentence(lease: leases.Lease) -> None:
    """In this folder of a test slot the socket of csi-node would have no path."""
    mine = lease.apart("long", OFFSET)
    env = lab_tool.environment(mine, 150)
    where = places.default(env)
    (where.state.parent / "images").mkdir(parents=True)
    tool = ChartTool(where, env, LIMIT_S)
    code, printed = tool.run("up", "--charts", *tool.folders())
    assert code == 1
    assert "must be at most 60: set XDG_STATE_HOME" in " ".join(printed.split())
    assert processes.names(where) == ()


def test_images_that_are_not_built_are_one_sentence(tool: ChartTool) -> None:
    """Before anything is started: which file, and the command that builds it."""
    (tool.where.state.parent / "images").mkdir(parents=True)
    code, printed = tool.run("up", "--charts", *tool.folders())
    assert code == 1
    assert f"{tool.images}/openstack-ccm.tar: not found" in printed
    words = " ".join(pod_values.COMPONENTS)
    assert f"mooring lab image {words} --output {tool.images}" in " ".join(
        printed.split()
    )
    assert processes.names(tool.where) == ()


@pytest.fixture(scope="module")
def table(tool: ChartTool) -> str:
    """Build the images, start the lab, and return the table of `lab up`."""
    where, folder = tool.where, tool.where.state.parent / "images"
    names = list(pod_values.COMPONENTS)
    images.build(where, building.source(), names, folder, testing.shown())
    return tool.up()


def evidence(printed: str, row: str) -> str:
    """Return what was observed in a row of the last table; empty without the row."""
    _, _, shown = printed.rpartition("Observed")
    lines = [line.strip() for line in shown.splitlines()]
    matches = (re.match(rf"{re.escape(row)} +[\d.]+ +(\S.*)", line) for line in lines)
    return next((match[1] for match in matches if match), "")


def test_one_table_shows_all_from_servers_to_the_file_of_a_pod(table: str) -> None:
    shown = {row: evidence(table, row) for row in ROWS}
    assert [row for row, text in shown.items() if text in ("", "waiting")] == []
    for name in pod_values.COMPONENTS:
        assert f" as {name}: " in shown[f"pod of {name}: Ready"]
    for name in NODES:
        assert shown[f"Node {name}"].startswith("openstack://")
    assert shown[FILE].startswith("/data/lines written")


def test_status_shows_programs_and_pods(tool: ChartTool, table: str) -> None:
    del table
    code, printed = tool.run("status", "-o", "json")
    assert code == 0
    document = json.loads(printed)
    states = {row["program"]: row["state"] for row in document["programs"]}
    expected = {host_keeper.NAME, *pod_host.PROGRAMS, *kubelet.PROGRAMS}
    assert expected <= states.keys()
    assert set(states.values()) == {"Running"}
    # None of them is a process of this machine.
    assert not states.keys() & set(pod_values.COMPONENTS)
    pods = {row["component"]: row for row in document["pods"]}
    assert tuple(pods) == pod_values.COMPONENTS
    for name, row in pods.items():
        assert (row["state"], row["node"]) == ("Ready", record.NODE)
        assert row["service_account"] == name
    code, printed = tool.run("status")
    assert code == 0
    assert all(row["pod"][:20] in printed for row in pods.values())


def test_the_demo_shows_what_the_pods_do(tool: ChartTool, table: str) -> None:
    """Servers, a Service, the life of a volume; the pods are not restarted."""
    del table
    code, printed = tool.run("demo")
    assert (code, [scene for scene in SCENES if scene not in printed]) == (0, [])
    _, printed = tool.run("status", "-o", "json")
    assert {row["restarts"] for row in json.loads(printed)["pods"]} == {0}


def test_a_killed_keeper_is_reported_and_replaced(tool: ChartTool, table: str) -> None:
    """The next `up` starts the node again; the pod finds what it has written."""
    del table
    tool.keeper().kill()
    assert tool.run("status")[0] == 1
    printed = tool.up()
    assert "after 1 of earlier pods" in evidence(printed, FILE)


def test_down_leaves_nothing_without_the_keeper(tool: ChartTool, table: str) -> None:
    """The keeper is killed, a volume is mounted: the lab's folder is removed."""
    del table
    tool.check_down_without_keeper()
