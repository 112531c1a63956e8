"""csi-controller on a simulated parent, and a caller of it."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import psutil

from lib.csi.spec import csi_pb2 as pb
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import csi
from lib.lab.dvp.project import STORAGE_AT_ONCE, Project
from lib.lab.run import processes
from tests.harness.csi import csi_wire
from tests.harness.dvp.dvp_parent import CLUSTER

DRIVER = "csi.dvp.deckhouse.io"
UID_KEY = "mooring.io/virtual-disk-uid"
CLASS_KEY = "dvpStorageClass"
GIB = 2**30
CALL_S = 120.0
_MODE = pb.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER")


def capability() -> pb.VolumeCapability:
    """Return the capability of a file system of one node."""
    mount = pb.VolumeCapability.MountVolume(fs_type="ext4")
    return pb.VolumeCapability(mount=mount, access_mode=_MODE)


class CsiDvp:
    """Starts csi-controller for a project, and calls it.

    where: places of its files and its log.
    """

    def __init__(
        self, where: places.Places, project: Project, cluster: str = CLUSTER
    ) -> None:
        self.where = where
        self.project = project
        self.env = {"DVP_NAMESPACE": project.namespace, "CLUSTER_UUID": cluster}
        self._caller = csi_wire.Caller(csi.address(where))

    def start(self, extra: Sequence[str] = ()) -> None:
        """Start it, unless it runs; return when it listens."""
        words = ("--cloud=dvp", f"--parent-kubeconfig={self.project.kubeconfig}")
        pex = pexes.beside("csi-controller")
        csi.start(self.where, pex, (*words, *extra), self.env)

    def kill(self) -> None:
        """Kill it, as the machine's failure does."""
        process = self.process()
        process.kill()
        process.wait(10)

    def process(self) -> psutil.Process:
        """Return the running process."""
        process = processes.find(self.where, csi.NAME)
        assert process is not None
        return process

    def stop(self) -> None:
        """End it, and the connection to it."""
        self._caller.close()
        processes.stop(self.where, [csi.NAME])

    def call(self, method: str, request: Any, kind: Any) -> Any:
        """Call a method of the controller service."""
        return self._caller(f"Controller/{method}", request, kind, CALL_S)

    def create(self, name: str, size: int = GIB, **parameters: str) -> pb.Volume:
        """Create a volume, by default in a class that binds at once."""
        request = pb.CreateVolumeRequest(
            name=name,
            capacity_range=pb.CapacityRange(required_bytes=size),
            volume_capabilities=[capability()],
            parameters=parameters or {CLASS_KEY: STORAGE_AT_ONCE},
        )
        answer = self.call("CreateVolume", request, pb.CreateVolumeResponse)
        volume: pb.Volume = answer.volume
        return volume

    def publish(self, volume_id: str, node: str) -> dict[str, str]:
        """Attach a volume; return the publish context."""
        request = pb.ControllerPublishVolumeRequest(
            volume_id=volume_id, node_id=node, volume_capability=capability()
        )
        kind = pb.ControllerPublishVolumeResponse
        answer = self.call("ControllerPublishVolume", request, kind)
        return dict(answer.publish_context)

    def unpublish(self, volume_id: str, node: str) -> None:
        """Detach a volume."""
        request = pb.ControllerUnpublishVolumeRequest(volume_id=volume_id, node_id=node)
        kind = pb.ControllerUnpublishVolumeResponse
        self.call("ControllerUnpublishVolume", request, kind)

    def expand(self, volume_id: str, size: int) -> int:
        """Expand a volume; return its size in bytes."""
        request = pb.ControllerExpandVolumeRequest(
            volume_id=volume_id,
            capacity_range=pb.CapacityRange(required_bytes=size),
            volume_capability=capability(),
        )
        kind = pb.ControllerExpandVolumeResponse
        answer = self.call("ControllerExpandVolume", request, kind)
        return int(answer.capacity_bytes)

    def delete(self, volume_id: str) -> None:
        """Delete a volume."""
        request = pb.DeleteVolumeRequest(volume_id=volume_id)
        self.call("DeleteVolume", request, pb.DeleteVolumeResponse)

    def published(self) -> dict[str, list[str]]:
        """Return the published nodes of each listed volume."""
        kind = pb.ListVolumesResponse
        answer = self.call("ListVolumes", pb.ListVolumesRequest(), kind)
        return {
            entry.volume.volume_id: list(entry.status.published_node_ids)
            for entry in answer.entries
        }


@contextlib.contextmanager
def running(
    state: pathlib.Path,
    where: places.Places,
    project: Project,
    cluster: str = CLUSTER,
) -> Iterator[CsiDvp]:
    """Run csi-controller while the block runs. state: folder of its files."""
    state.mkdir(parents=True, exist_ok=True)
    place = places.Places(where.cache, state, where.port("cloud-1"))
    driver = CsiDvp(place, project, cluster)
    try:
        driver.start()
        yield driver
    finally:
        driver.stop()
