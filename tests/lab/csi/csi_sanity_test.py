"""csi-sanity's controller specs against csi-controller on the real Cinder and Nova."""

import json
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.csi.spec import csi_pb2
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.daemons import csi
from lib.lab.openstack import accounts, tenant
from tests.harness import testing
from tests.harness.csi import csi_wire

GIB = 2**30
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"
MAY_BE_SKIPPED = re.compile(
    "[Ss]napshot|^GroupController|^Node Service|VolumeHealth|ListVolumeHealth"
    "|node max attach limit|already published but is incompatible"
)
"""What the controller does not offer (snapshots, groups, health, publishing read-only),
the node's own suite, and the limit, which is Nova's and has a test of its own."""
CONTROLLER_SPECS = 43
"""Of csi-sanity 5.6.0, with three of the identity service."""

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Spec = Mapping[str, Any]


@pytest.fixture(scope="module")
def node(
    where: places.Places,
    project: MakeProject,
    csi_pex: pathlib.Path,
    csi_programs: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pathlib.Path]:
    """Run the driver, and be the node plugin of a real server; give its socket."""
    del csi_programs
    account, mine = project("csi-sanity")
    server = mine.boot_all(["sanity"])["sanity"]
    conf = tmp_path_factory.mktemp("sanity") / "cloud.conf"
    conf.write_text(accounts.cloud_conf(where, account))
    csi.start_driver(where, csi_pex, conf, "sanity")
    info = csi_pb2.NodeGetInfoResponse(
        node_id=server.id,
        max_volumes_per_node=20,
        accessible_topology=csi_pb2.Topology(segments={ZONE_KEY: "nova"}),
    )
    address = where.state / "node.sock"
    with csi_wire.node(address, info, csi.address(where)):
        yield address
    csi.stop(where)


def run(
    where: places.Places, node: pathlib.Path, folder: pathlib.Path
) -> tuple[int, tuple[Spec, ...]]:
    """Run csi-sanity once; give its exit code and what it says of each spec."""
    report = folder / "report.json"
    done = subprocess.run(
        [
            programs.path(where, "csi-sanity"),
            f"--csi.endpoint=unix://{node}",
            f"--csi.controllerendpoint=unix://{csi.address(where)}",
            f"--csi.mountdir={folder}/mount",
            f"--csi.stagingdir={folder}/staging",
            f"--csi.testvolumesize={GIB}",
            f"--csi.testvolumeexpandsize={2 * GIB}",
            "--ginkgo.skip=Node Service",
            "--ginkgo.no-color",
            "--ginkgo.timeout=8m",
            f"--ginkgo.json-report={report}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    print(done.stdout[-8000:])
    return done.returncode, tuple(json.loads(report.read_bytes())[0]["SpecReports"])


def name(spec: Spec) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])


def test_every_controller_spec_passes_on_one_state(
    where: places.Places, node: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """All but those of snapshots; in the long tier twice on one state."""
    results = []
    for number in testing.by_tier(("first",), ("first", "second")):
        folder = tmp_path / number
        folder.mkdir()
        results.append(run(where, node, folder))
    specs = [{name(spec): spec["State"] for spec in found} for _, found in results]
    for title in sorted(specs[0]):
        states = [f"{found.get(title, '-'):8}" for found in specs]
        print(f"{title[:100]:100} {' '.join(states)}")
    assert {code for code, _ in results} == {0}
    for found in specs:
        passed = [title for title, state in found.items() if state == "passed"]
        skipped = [title for title, state in found.items() if state == "skipped"]
        assert len(passed) == CONTROLLER_SPECS
        assert [title for title in skipped if not MAY_BE_SKIPPED.search(title)] == []
        assert set(found.values()) <= {"passed", "skipped", "pending"}
