"""csi-sanity with `--cloud=zvirt` on both programs, twice on one state."""

import os
import pathlib
import re
from collections.abc import Iterator, Mapping

import psutil
import pytest

from lib.kernel import dmi
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi, csi_node
from lib.lab.run import processes
from lib.lab.slots import leases
from lib.lab.storage import attached_disks, file_system_tools, loop_disks
from tests.harness import testing
from tests.harness.csi import csi_front, csi_sanity
from tests.harness.zvirt import csi_zvirt, engine_files
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.lab.zvirt.served import Served, serving

SPECS = 57
MAY_BE_SKIPPED = re.compile(
    csi_sanity.MAY_BE_SKIPPED.pattern
    + "|ModifyVolume|source volume|volume attribute class"
)
"""Besides that: changes of type and clones, which zVirt lacks."""
RSS_MB = {csi.NAME: 120, csi_node.NAME: 60}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("engine"), "delay * 0.1") as served:
        yield served


@pytest.fixture(scope="module")
def ground(
    lease: leases.Lease, engine: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[csi_sanity.Ground]:
    """Run both programs for a VM, whose disks this process plugs."""
    where = lease.where
    if reason := loop_disks.unavailable():
        pytest.skip(reason)
    programs.build(where, [csi.SANITY_GROUP], testing.shown())
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(where, os.environ, step)
    vm = Vms(engine.service).boot("sanity-1", 0)
    loop_disks.enter_private_mounts()
    tools: Mapping[str, str] = file_system_tools.environment(where, os.environ)
    files = engine_files.EngineFiles(
        engine.service, vm, tmp_path_factory.mktemp("disks")
    )
    with (
        loop_disks.machine(tmp_path_factory.mktemp("machine")) as machine,
        csi_zvirt.running(tmp_path_factory.mktemp("csi"), where, engine) as driver,
    ):
        identity = machine.sys / dmi.PATH
        identity.parent.mkdir(parents=True, exist_ok=True)
        identity.write_text(f"{vm}\n")
        disks = attached_disks.AttachedDisks(
            files.links, machine, csi_sanity.late(), attached_disks.scsi
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
            csi_node.start(driver.where, settings, ("--cloud=zvirt",))
            node = csi_node.address(settings)
            front = csi_front.CsiFront(csi.address(driver.where), node)
            socket = driver.where.state / "both.sock"
            with (
                engine_files.followed(files),
                attached_disks.followed(disks),
                front.opened(socket),
            ):
                yield csi_sanity.Ground(
                    driver.where,
                    socket,
                    front,
                    disks,
                    machine,
                    csi_zvirt.CLASS,
                    SPECS,
                    MAY_BE_SKIPPED,
                )
        finally:
            csi_node.stop(driver.where)


@pytest.mark.parametrize("number", [1, 2])
def test_every_spec_passes(
    ground: csi_sanity.Ground, tmp_path: pathlib.Path, number: int
) -> None:
    """With mounted volumes; all but those of what zVirt does not offer."""
    csi_sanity.require_every_spec(ground, tmp_path / f"mount-{number}", "mount")


def test_nothing_remains(ground: csi_sanity.Ground, engine: Served) -> None:
    """Neither attached disks nor mounts, and no volume in the engine."""
    assert ground.disks.disks == {}
    disks = engine.service.engine.records.all("disk")
    assert [row.entity.alias for row in disks if row.entity.description] == []
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    assert f"{ground.machine.kubelet}" not in mounts


def test_memory_stays_within_its_limit(ground: csi_sanity.Ground) -> None:
    for name, limit_mb in RSS_MB.items():
        process = processes.find(ground.where, name)
        assert process is not None
        rss = psutil.Process(process.pid).memory_info().rss / 2**20
        print(f"{name}: {rss:.0f} MB of {limit_mb}")
        assert rss <= limit_mb
