"""csi-sanity with `--cloud=dvp` on both programs, twice on one state."""

import os
import pathlib
import re
from collections.abc import Iterator, Mapping

import pytest

from lib.cloud.dvp.volumes import disk_serial
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi, csi_node
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import DISKS
from lib.lab.dvp.project import Project
from lib.lab.storage import attached_disks, file_system_tools, loop_disks
from tests.harness import testing
from tests.harness.csi import csi_front, csi_sanity
from tests.harness.dvp import csi_dvp
from tests.harness.dvp.dvp_parent import DvpParent

NODE = "sanity-1"
SPECS = 56
MAY_BE_SKIPPED = re.compile(
    csi_sanity.MAY_BE_SKIPPED.pattern
    + "|GetCapacity|ModifyVolume|source volume|volume attribute class"
)
"""Besides that: capacity, changes of type and clones, which DVP lacks."""


@pytest.fixture(scope="module")
def ground(
    parent: DvpParent, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[csi_sanity.Ground]:
    """Run both programs for a VM, whose disks this process plugs."""
    if reason := loop_disks.unavailable():
        pytest.skip(reason)
    programs.build(parent.where, [csi.SANITY_GROUP], testing.shown())
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(parent.where, os.environ, step)
    parent.machines(project, [NODE])
    loop_disks.enter_private_mounts()
    tools: Mapping[str, str] = file_system_tools.environment(parent.where, os.environ)
    state = tmp_path_factory.mktemp("csi")
    root = tmp_path_factory.mktemp("machine")
    with (
        loop_disks.machine(root) as machine,
        csi_dvp.running(state, parent.where, project) as driver,
    ):
        disks = attached_disks.AttachedDisks(
            parent.attachments(NODE), machine, csi_sanity.late(), attached_disks.scsi
        )
        settings = csi_node.CsiNodeSettings(
            pexes.beside("csi-node"),
            machine.dev,
            machine.sys,
            machine.kubelet,
            "",
            tools,
        )
        try:
            words = ("--cloud=dvp", f"--node-name={NODE}")
            csi_node.start(driver.where, settings, words)
            node = csi_node.address(settings)
            front = csi_front.CsiFront(csi.address(driver.where), node)
            socket = driver.where.state / "both.sock"
            with attached_disks.followed(disks), front.opened(socket):
                yield csi_sanity.Ground(
                    driver.where,
                    socket,
                    front,
                    disks,
                    machine,
                    {csi_dvp.CLASS_KEY: projects.STORAGE_AT_ONCE},
                    SPECS,
                    MAY_BE_SKIPPED,
                )
        finally:
            csi_node.stop(driver.where)


@pytest.mark.parametrize("number", [1, 2])
def test_every_spec_passes(
    ground: csi_sanity.Ground, tmp_path: pathlib.Path, number: int
) -> None:
    """With mounted volumes; all but those of what DVP does not offer."""
    csi_sanity.require_every_spec(ground, tmp_path / f"mount-{number}", "mount")


def test_nothing_remains(
    ground: csi_sanity.Ground, parent: DvpParent, project: Project
) -> None:
    """Neither attached disks nor mounts, and no volume in the parent."""
    assert set(ground.disks.disks) <= set(_boot_serials(parent, project))
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    assert f"{ground.machine.kubelet}" not in mounts


def _boot_serials(parent: DvpParent, project: Project) -> Iterator[str]:
    """Yield the serials of the disks of machines."""
    for disk in parent.objects(project).all(DISKS):
        assert disk["metadata"]["name"].endswith("-boot"), disk
        yield disk_serial.of_uid(disk["metadata"]["uid"])
