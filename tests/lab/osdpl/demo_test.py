"""`mooring lab osdpl` as its user runs it: up, status, up again, down.

A checkout of openstack-helm is installed, if MOORING_OPENSTACK_HELM names one.
"""

import json
import os
import subprocess
from collections.abc import Iterator

import jsonschema
import pytest

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.kube import control_plane
from lib.lab.osdpl import controller, deployment, lab
from lib.lab.run import processes
from lib.lab.slots import leases
from lib.osdpl.values import graph
from mooring.commands import schemas
from tests.harness import testing
from tests.harness.daemons import lab_tool
from tests.harness.daemons.lab_tool import LabTool

CHECKOUT = "MOORING_OPENSTACK_HELM"
LIMIT_S = 1500
REFUSAL = "The webhook refuses a downgrade"


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[LabTool]:
    """Return the tool; end what it has left."""
    mine = lease.apart("demo", 0)
    env = lab_tool.environment(mine, 160)
    where = lab.usual(places.default(env))
    yield LabTool(where, env, LIMIT_S)
    lab.down(where, testing.shown(), wipe=True)


@pytest.fixture(scope="module")
def up(tool: LabTool) -> str:
    """Start the lab; return what the tool printed."""
    folder = pexes.beside(pexes.OSDPL).parent
    checkout = os.environ.get(CHECKOUT)
    if not checkout:
        print(f"{CHECKOUT} is not set: the lab's own charts are installed")
    charts = (f"--charts={checkout}",) if checkout else ()
    code, printed = tool.run("osdpl", "up", f"--pex-folder={folder}", *charts)
    assert code == 0
    return printed


def test_it_installs_all_releases_and_shows_a_refused_change(up: str) -> None:
    releases = {name for pairs in graph.RELEASES.values() for name, _ in pairs}
    assert {name for name in releases if name not in up} == set()
    _, _, refusal = up.partition(REFUSAL)
    assert f"patch openstackdeployment {deployment.NAME} --type=merge" in refusal
    assert "spec.openstack_version" in refusal
    assert "there is no downgrade" in refusal


@pytest.mark.usefixtures("up")
def test_the_change_that_it_shows_is_refused_for_its_user(tool: LabTool) -> None:
    """The printed command, and not only as a dry run."""
    kubectl = programs.path(tool.where, "kubectl")
    done = subprocess.run(
        [
            *(kubectl, "-n", deployment.NAMESPACE, "patch", "openstackdeployment"),
            *(deployment.NAME, "--type=merge"),
            f"--patch={json.dumps(controller.CHANGE)}",
            f"--kubeconfig={control_plane.admin_kubeconfig(tool.where)}",
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stderr)
    assert done.returncode == 1
    assert "denied the request" in done.stderr


@pytest.mark.usefixtures("up")
def test_it_shows_all_as_good_and_may_be_repeated(tool: LabTool) -> None:
    folder = pexes.beside(pexes.OSDPL).parent
    before = processes.find(tool.where, controller.NAME)
    assert tool.run("osdpl", "status")[0] == 0
    code, printed = tool.run("osdpl", "status", "-ojson")
    document = json.loads(printed)
    jsonschema.validate(document, schemas.of_command("mooring lab osdpl status"))
    assert {row["state"] for row in document["programs"]} == {"Running"}
    ready = {row["workloads"] - row["workloads_ready"] for row in document["releases"]}
    assert (code, document["state"], ready) == (0, "APPLIED", {0})
    code, printed = tool.run("osdpl", "up", f"--pex-folder={folder}")
    assert (code, REFUSAL in printed) == (0, True)
    after = processes.find(tool.where, controller.NAME)
    assert before is not None
    assert after is not None
    assert before.pid == after.pid


@pytest.mark.usefixtures("up")
def test_nothing_is_left_of_it(tool: LabTool) -> None:
    assert tool.run("osdpl", "down", "--wipe")[0] == 0
    assert processes.names(tool.where) == ()
    assert not tool.where.state.exists()
    code, printed = tool.run("osdpl", "status")
    assert code == 1
    assert "lab osdpl up" in printed
