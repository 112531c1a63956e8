"""csi-node and cinder-csi-plugin on one machine of loop devices.

They share their socket and the kubelet's folder: one of them runs at a time.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import grpc
from google.protobuf import message

from lib.csi.spec import csi_pb2
from lib.lab import errors, places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi_node
from lib.lab.run import waiting
from lib.lab.storage import loop_disks, metadata_service
from lib.process import unix_sockets
from tests.harness import testing
from tests.harness.csi import csi_wire
from tests.harness.node import reference_node

M = TypeVar("M", bound=message.Message)

CALL_S = 180.0
SERVER = "83679162-1378-4288-a2d4-70e13ec132aa"
OURS, REFERENCE = csi_node.NAME, reference_node.PROGRAM
_Capability = csi_pb2.VolumeCapability


@dataclasses.dataclass
class NodePluginProcess:
    """One of the two programs. words: its command. endpoint: of both."""

    name: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    endpoint: pathlib.Path
    log: pathlib.Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = reference_node.start(self.words, self.env, self.log)
        waiting.until(f"{self.name} listens", self._listens)

    def _listens(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise errors.LabError(f"{self.name} ended: {self.log.read_text()[-3000:]}")
        return unix_sockets.is_served(self.endpoint)

    def kill(self) -> None:
        """Kill it; fine when it does not run."""
        if self.process is not None:
            reference_node.kill(self.process)
            self.process = None

    def call(self, method: str, request: message.Message, kind: type[M]) -> M:
        """Call a method of the node service, without "Node".

        Raises:
            LabError: with code and details.
        """
        return self.request(f"Node/Node{method}", request, kind)

    def request(self, method: str, request: message.Message, kind: type[M]) -> M:
        """Call a method, such as "Controller/CreateVolume".

        Raises:
            LabError: with code and details.
        """
        caller = csi_wire.Caller(self.endpoint)
        try:
            return caller(method, request, kind, CALL_S)
        except grpc.RpcError as error:
            raise errors.LabError(f"{self.name}, {method}: {error}") from error
        finally:
            caller.close()


@dataclasses.dataclass
class MountedVolume:
    """One volume, and the calls that a kubelet makes for it.

    kind: a type of file system, or "block".
    """

    id: str
    kind: str
    kubelet: pathlib.Path

    @property
    def staging(self) -> str:
        """Return the staging path."""
        return str(self.kubelet / "staging" / self.id)

    @property
    def target(self) -> pathlib.Path:
        """Return the target path."""
        return self.kubelet / "pods" / self.id

    @property
    def file(self) -> pathlib.Path:
        """Where a pod writes."""
        return self.target if self.kind == "block" else self.target / "data"

    @property
    def capability(self) -> csi_pb2.VolumeCapability:
        """Return the capability: one node writes."""
        mode = _Capability.AccessMode(mode=_Capability.AccessMode.SINGLE_NODE_WRITER)
        if self.kind == "block":
            block = _Capability.BlockVolume()
            return _Capability(block=block, access_mode=mode)
        mount = _Capability.MountVolume(fs_type=self.kind)
        return _Capability(mount=mount, access_mode=mode)

    def mount(self, plugin: NodePluginProcess) -> None:
        """Stage and publish. The kubelet creates the parents of these paths."""
        self.stage(plugin)
        self.publish(plugin)

    def stage(self, plugin: NodePluginProcess) -> None:
        """Stage."""
        pathlib.Path(self.staging).mkdir(parents=True, exist_ok=True)
        stage = csi_pb2.NodeStageVolumeRequest(
            volume_id=self.id,
            staging_target_path=self.staging,
            volume_capability=self.capability,
        )
        plugin.call("StageVolume", stage, csi_pb2.NodeStageVolumeResponse)

    def publish(self, plugin: NodePluginProcess) -> None:
        """Publish."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        publish = csi_pb2.NodePublishVolumeRequest(
            volume_id=self.id,
            staging_target_path=self.staging,
            target_path=str(self.target),
            volume_capability=self.capability,
        )
        plugin.call("PublishVolume", publish, csi_pb2.NodePublishVolumeResponse)

    def unmount(self, plugin: NodePluginProcess) -> None:
        """Unpublish and unstage."""
        unpublish = csi_pb2.NodeUnpublishVolumeRequest(
            volume_id=self.id, target_path=str(self.target)
        )
        plugin.call("UnpublishVolume", unpublish, csi_pb2.NodeUnpublishVolumeResponse)
        unstage = csi_pb2.NodeUnstageVolumeRequest(
            volume_id=self.id, staging_target_path=self.staging
        )
        plugin.call("UnstageVolume", unstage, csi_pb2.NodeUnstageVolumeResponse)

    def total_bytes(self, plugin: NodePluginProcess) -> int:
        """Return the size by NodeGetVolumeStats."""
        request = csi_pb2.NodeGetVolumeStatsRequest(
            volume_id=self.id, volume_path=str(self.target)
        )
        kind = csi_pb2.NodeGetVolumeStatsResponse
        usage = plugin.call("GetVolumeStats", request, kind).usage
        return next(each.total for each in usage if each.unit == each.BYTES)

    def expand(self, plugin: NodePluginProcess, size_bytes: int) -> None:
        """Expand while mounted."""
        request = csi_pb2.NodeExpandVolumeRequest(
            volume_id=self.id,
            volume_path=str(self.target),
            staging_target_path=self.staging,
            volume_capability=self.capability,
            capacity_range=csi_pb2.CapacityRange(required_bytes=size_bytes),
        )
        plugin.call("ExpandVolume", request, csi_pb2.NodeExpandVolumeResponse)


@contextlib.contextmanager
def ours(
    machine: loop_disks.Machine,
    env: Mapping[str, str],
    folder: pathlib.Path,
    metadata: str = "",
) -> Iterator[NodePluginProcess]:
    """Return csi-node, which does not run yet. In the end it is killed.

    env: where programs of file systems are found. folder: for its log. metadata: URL of
    the metadata service; one is served if empty.
    """
    with contextlib.ExitStack() as stack:
        if not metadata:
            metadata = stack.enter_context(metadata_service.served(SERVER, "nova"))
        settings = _settings(machine, env, metadata, None)
        process = _process(OURS, csi_node.arguments(settings), settings, folder)
        process.endpoint.parent.mkdir(parents=True)
        try:
            yield process
        finally:
            process.kill()


def _settings(
    machine: loop_disks.Machine,
    env: Mapping[str, str],
    metadata: str,
    registration: pathlib.Path | None,
) -> csi_node.CsiNodeSettings:
    pex = pexes.beside("csi-node")
    dev, sys, kubelet = machine.dev, machine.sys, machine.kubelet
    return csi_node.CsiNodeSettings(pex, dev, sys, kubelet, metadata, env, registration)


def _process(
    name: str,
    words: tuple[str, ...],
    settings: csi_node.CsiNodeSettings,
    folder: pathlib.Path,
) -> NodePluginProcess:
    env = {**settings.env, **pexes.environment(places.default())}
    endpoint = csi_node.address(settings)
    return NodePluginProcess(name, words, env, endpoint, folder / f"{name}.log")


@contextlib.contextmanager
def both(
    machine: loop_disks.Machine,
    env: Mapping[str, str],
    folder: pathlib.Path,
    instance_id: str = SERVER,
) -> Iterator[Mapping[str, NodePluginProcess]]:
    """Return both programs; neither runs yet. In the end both are killed.

    env: where programs of file systems are found. folder: for sockets and logs.
    instance_id: of the machine.
    """
    where = places.default()
    programs.build(where, [reference_node.GROUP], testing.shown())
    kubelet = str(machine.kubelet)
    subprocess.run(["mount", "--bind", kubelet, kubelet], check=True)
    subprocess.run(["mount", "--make-rshared", kubelet], check=True)
    with metadata_service.served(instance_id, "nova") as metadata:
        settings = _settings(machine, env, metadata, folder)
        endpoint = csi_node.address(settings)
        endpoint.parent.mkdir(parents=True)
        program = programs.path(where, REFERENCE)
        words = {
            REFERENCE: reference_node.command(
                program, machine, folder, endpoint, instance_id
            ),
            OURS: csi_node.arguments(settings),
        }
        plugins = {
            name: _process(name, command, settings, folder)
            for name, command in words.items()
        }
        try:
            yield plugins
        finally:
            for plugin in plugins.values():
                plugin.kill()


class OpenFiles:
    """A file of each volume that stays open while the node plugin is replaced."""

    CONTENT = b"first.second"

    def __init__(self, volumes: Sequence[MountedVolume]) -> None:
        """Open the files, and write the first half of their content."""
        self._volumes = volumes
        self._files = [volume.file.open("w+b", buffering=0) for volume in volumes]
        for file in self._files:
            file.write(self.CONTENT[:6])

    def finish(self) -> None:
        """Write the second half into the files as they are open, and close them."""
        for file in self._files:
            file.write(self.CONTENT[6:])
            os.fsync(file.fileno())
            file.close()

    def read(self) -> list[bytes]:
        """Open each file again, and return what was written."""
        contents = []
        for volume in self._volumes:
            with volume.file.open("rb") as reader:
                contents.append(reader.read(len(self.CONTENT)))
        return contents


def mounts(kubelet: pathlib.Path) -> list[str]:
    """Return ids and targets of all mounts of volumes.

    Source: proc_pid_mountinfo(5); the id stays for as long as the mount exists.
    """
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    fields = [line.split(" ") for line in lines]
    return [f"{f[0]} {f[4]}" for f in fields if f[4].startswith(f"{kubelet}/")]


def each(
    what: str,
    volumes: Sequence[MountedVolume],
    act: Callable[[MountedVolume], object],
) -> None:
    """Do something with each volume, and print a row for it."""
    for volume in volumes:
        act(volume)
        print(f"{what:56} {volume.kind}")
