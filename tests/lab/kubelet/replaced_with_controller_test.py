"""cinder-csi-plugin and our two programs replace each other, controller and node.

Volumes of the real Cinder are attached and mounted all the time. The disks are loop
devices, see `attached_disks.py`.
"""

import dataclasses
import secrets
from collections.abc import Iterator, Mapping

import pytest

from lib.csi.spec import csi_pb2
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.storage import attached_disks, loop_disks, storage_node
from tests.harness.node import node_plugins
from tests.harness.node.node_plugins import (
    OURS,
    REFERENCE,
    MountedVolume,
    NodePluginProcess,
    OpenFiles,
    each,
    mounts,
)

GIB = 2**30
KINDS = ("xfs", "ext4", "ext2", "block")


@dataclasses.dataclass(frozen=True, slots=True)
class Driver:
    """A whole driver: its controller service and its node service."""

    controller: NodePluginProcess
    node: NodePluginProcess
    instance_id: str

    def start(self) -> None:
        """Start both."""
        self.controller.start()
        self.node.start()

    def kill(self) -> None:
        """Kill both."""
        self.controller.kill()
        self.node.kill()

    def create(self, kind: str, volume: MountedVolume) -> MountedVolume:
        """Create a volume like the given one, which has no id yet."""
        request = csi_pb2.CreateVolumeRequest(
            name=f"pvc-{secrets.token_hex(4)}",
            capacity_range=csi_pb2.CapacityRange(required_bytes=GIB),
            volume_capabilities=[volume.capability],
        )
        created = self.controller.request(
            "Controller/CreateVolume", request, csi_pb2.CreateVolumeResponse
        )
        return dataclasses.replace(volume, id=created.volume.volume_id, kind=kind)

    def attach(self, volume: MountedVolume) -> None:
        """Attach to the instance."""
        self.controller.request(
            "Controller/ControllerPublishVolume",
            csi_pb2.ControllerPublishVolumeRequest(
                volume_id=volume.id,
                node_id=self.instance_id,
                volume_capability=volume.capability,
            ),
            csi_pb2.ControllerPublishVolumeResponse,
        )

    def expand(self, volume: MountedVolume) -> None:
        """Expand the attached volume, then its file system."""
        size_bytes = 2 * GIB
        self.controller.request(
            "Controller/ControllerExpandVolume",
            csi_pb2.ControllerExpandVolumeRequest(
                volume_id=volume.id,
                capacity_range=csi_pb2.CapacityRange(required_bytes=size_bytes),
                volume_capability=volume.capability,
            ),
            csi_pb2.ControllerExpandVolumeResponse,
        )
        volume.expand(self.node, size_bytes)

    def detach(self, volume: MountedVolume) -> None:
        """Detach from the instance."""
        self.controller.request(
            "Controller/ControllerUnpublishVolume",
            csi_pb2.ControllerUnpublishVolumeRequest(
                volume_id=volume.id, node_id=self.instance_id
            ),
            csi_pb2.ControllerUnpublishVolumeResponse,
        )

    def delete(self, volume: MountedVolume) -> None:
        """Delete the volume."""
        request = csi_pb2.DeleteVolumeRequest(volume_id=volume.id)
        kind = csi_pb2.DeleteVolumeResponse
        self.controller.request("Controller/DeleteVolume", request, kind)


@pytest.fixture()
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[loop_disks.Machine]:
    """Return a machine without disks."""
    with loop_disks.machine(tmp_path_factory.mktemp("m")) as new_machine:
        yield new_machine


@pytest.fixture()
def drivers(
    where: places.Places,
    storage_settings: storage_node.StorageNodeSettings,
    machine: loop_disks.Machine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, Driver]]:
    """Return both drivers, which do not run yet; disks follow their attachments."""
    folder = tmp_path_factory.mktemp("d")
    endpoint = folder / "controller.sock"
    flags = (f"--endpoint=unix://{endpoint}", f"--cloud-config={storage_settings.conf}")
    attachments = storage_settings.attachments
    disks = attached_disks.AttachedDisks(attachments, machine)
    id_ = storage_settings.instance_id
    with (
        node_plugins.both(machine, storage_settings.env, folder, id_) as nodes,
        attached_disks.followed(disks),
    ):
        program = str(programs.path(where, REFERENCE))
        commands = {
            REFERENCE: (program, *flags, "--provide-node-service=false", "--v=4"),
            OURS: (
                *pexes.command(storage_settings.controller),
                "--cloud=openstack",
                *flags,
            ),
        }
        new_drivers = {}
        for name, words in commands.items():
            env, log = nodes[name].env, folder / f"{name}-controller.log"
            command = (*words, "--cluster=replaced")
            process = NodePluginProcess(name, command, env, endpoint, log)
            new_drivers[name] = Driver(process, nodes[name], id_)
        try:
            yield new_drivers
        finally:
            for driver in new_drivers.values():
                driver.kill()


@pytest.mark.parametrize(("before", "after"), [(REFERENCE, OURS), (OURS, REFERENCE)])
def test_replaced_with_its_controller(
    drivers: Mapping[str, Driver],
    machine: loop_disks.Machine,
    before: str,
    after: str,
) -> None:
    """Nothing is unmounted or detached, and writers of open files do not notice."""
    first, second = drivers[before], drivers[after]
    first.start()
    volumes = [
        first.create(kind, MountedVolume("", kind, machine.kubelet)) for kind in KINDS
    ]
    each(f"attached by {before}", volumes, first.attach)
    each(f"mounted by {before}", volumes, lambda v: v.mount(first.node))
    files = OpenFiles(volumes)
    shown = mounts(machine.kubelet)
    assert len(shown) == 7  # the raw disk is staged without a mount
    first.kill()
    second.start()
    each(f"attached again by {after}: no change", volumes, second.attach)
    assert mounts(machine.kubelet) == shown
    files.finish()
    # Called again, the reference binds a raw disk once more.
    again = [v for v in volumes if after == OURS or v.kind != "block"]
    each(f"mounted again by {after}: no change", again, lambda v: v.mount(second.node))
    assert mounts(machine.kubelet) == shown
    xfs, *_ = volumes  # ext4 requires CAP_SYS_RESOURCE
    each(f"expanded by {after}", [xfs], second.expand)
    assert xfs.total_bytes(second.node) > GIB
    each(f"unmounted by {after}", volumes, lambda v: v.unmount(second.node))
    assert mounts(machine.kubelet) == []
    each(f"detached by {after}", volumes, second.detach)
    each(f"attached by {after}", volumes, second.attach)
    each(f"mounted by {after}", volumes, lambda v: v.mount(second.node))
    assert files.read() == [b"first.second"] * len(volumes)
    each(f"unmounted by {after}", volumes, lambda v: v.unmount(second.node))
    each(f"detached by {after}", volumes, second.detach)
    each(f"deleted by {after}", volumes, second.delete)
    assert mounts(machine.kubelet) == []
