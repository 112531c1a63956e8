"""csi-sanity against csi-controller and csi-node, on the real Cinder and Nova.

Attached volumes are loop devices, half of which appear late. A file of tests runs one
access type of volumes.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi, csi_node
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.storage import (
    attached_disks,
    file_system_tools,
    loop_disks,
    metadata_service,
)
from tests.harness import testing
from tests.harness.csi import csi_front

GIB = 2**30
ZONE = "nova"
DELAY_S = 1.5
MAY_BE_SKIPPED = re.compile(
    "[Ss]napshot|^GroupController|VolumeHealth|StorageHealth"
    "|node max attach limit|already published but is incompatible"
)
"""What is not offered (snapshots, groups, health, publishing read-only), and the limit,
which is Nova's and has a test of its own."""
SPECS = 67
"""Of csi-sanity 5.6.0: identity, controller and node."""
OPTIONS = "-I 512 -m 1"


MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Spec = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """What csi-sanity runs against. socket: of both programs.

    parameters: of the StorageClass. specs: how many pass. may_be_skipped: which others.
    """

    where: places.Places
    socket: pathlib.Path
    front: csi_front.CsiFront
    disks: attached_disks.AttachedDisks
    machine: loop_disks.Machine
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    specs: int = SPECS
    may_be_skipped: re.Pattern[str] = MAY_BE_SKIPPED


@pytest.fixture(scope="module")
def tools(where: places.Places) -> Mapping[str, str]:
    """Return an environment with the programs of all file systems.

    OpenStack, which outlives this process, runs already: it must not be in the mount
    namespace of this process.
    """
    if reason := loop_disks.unavailable():
        pytest.skip(reason)
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(where, os.environ, step)
    loop_disks.enter_private_mounts()
    return file_system_tools.environment(where, os.environ)


def late() -> Callable[[str], float]:
    """Return delays of which every second one is not zero."""
    count = iter(range(10**6))
    return lambda volume_id: DELAY_S if next(count) % 2 else 0.0


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    project: MakeProject,
    csi_pex: pathlib.Path,
    csi_programs: None,
    tools: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    """Run both programs for a real server, whose disks this process plugs."""
    del csi_programs
    account, mine = project("csi-sanity")
    server = mine.boot_all(["sanity"])["sanity"]
    folder = tmp_path_factory.mktemp("sanity")
    conf = folder / "cloud.conf"
    conf.write_text(accounts.cloud_conf(where, account))
    root = tmp_path_factory.mktemp("machine")
    with (
        loop_disks.machine(root) as machine,
        metadata_service.served(server.id, ZONE) as metadata,
    ):
        attachments = layout.attachments(where, server.id)
        disks = attached_disks.AttachedDisks(attachments, machine, late())
        settings = csi_node.CsiNodeSettings(
            pexes.beside("csi-node"),
            machine.dev,
            machine.sys,
            machine.kubelet,
            metadata,
            tools,
        )
        try:
            csi.start_driver(where, csi_pex, conf, "sanity")
            csi_node.start(where, settings)
            node = csi_node.address(settings)
            front = csi_front.CsiFront(csi.address(where), node)
            socket = where.state / "both.sock"
            with attached_disks.followed(disks), front.opened(socket):
                yield Ground(where, socket, front, disks, machine)
        finally:
            csi_node.stop(where)
            csi.stop(where)


def _run(ground: Ground, folder: pathlib.Path, access: str) -> tuple[int, list[Spec]]:
    """Run csi-sanity once; return its exit code and its report of each spec."""
    folder.mkdir()
    report, parameters = folder / "report.json", folder / "parameters.yaml"
    values = {"mooring.io/mkfs-options": OPTIONS, **ground.parameters}
    parameters.write_text(
        "".join(f'{key}: "{value}"\n' for key, value in values.items())
    )
    below = ground.machine.kubelet / folder.name
    below.mkdir(exist_ok=True)
    done = subprocess.run(
        [
            programs.path(ground.where, "csi-sanity"),
            f"--csi.endpoint=unix://{ground.socket}",
            f"--csi.mountdir={below}/mount",
            f"--csi.stagingdir={below}/staging",
            f"--csi.testvolumesize={GIB}",
            f"--csi.testvolumeexpandsize={2 * GIB}",
            f"--csi.testvolumeaccesstype={access}",
            f"--csi.testvolumeparameters={parameters}",
            "--ginkgo.no-color",
            "--ginkgo.timeout=8m",
            f"--ginkgo.json-report={report}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    print(done.stdout[-8000:])
    return done.returncode, json.loads(report.read_bytes())[0]["SpecReports"]


def _name(spec: Spec) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])


def require_every_spec(ground: Ground, folder: pathlib.Path, access: str) -> None:
    """Run csi-sanity once: all specs but those of snapshots and groups pass.

    access: mount or block. folder: of the reports, must not exist yet.
    """
    late = ground.disks.late
    code, specs = _run(ground, folder, access)
    report = {_name(spec): spec["State"] for spec in specs}
    for spec in sorted(specs, key=_name):
        seconds = spec["RunTime"] / 10**9
        print(f"{_name(spec)[:100]:100} {spec['State']:8} {seconds:6.1f} s")
    passed = [title for title, state in report.items() if state == "passed"]
    skipped = [title for title, state in report.items() if state == "skipped"]
    late = ground.disks.late - late
    counts = f"{len(passed)} passed, {len(skipped)} skipped, {late} disks late"
    print(f"{folder.name}: {counts}")
    assert code == 0
    unexpected = [t for t in skipped if not ground.may_be_skipped.search(t)]
    assert unexpected == []
    assert len(passed) == ground.specs
    assert set(report.values()) <= {"passed", "skipped", "pending"}
    assert late > 0


def require_nothing_left(ground: Ground) -> None:
    """No disk is attached, and nothing is mounted."""
    assert ground.disks.disks == {}
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    assert f"{ground.machine.kubelet}" not in mounts
