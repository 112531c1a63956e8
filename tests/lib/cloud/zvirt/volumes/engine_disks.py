"""A simulated engine whose clock is that of csi-controller's calls."""

import collections
import threading
import time
from collections.abc import Mapping
from typing import Any

from lib.cloud.model import InstanceId
from lib.cloud.support import absence_scope, cluster_witnesses
from lib.cloud.volumes import VolumeId, VolumeRequest, VolumeSpec
from lib.cloud.zvirt import client, home, http
from lib.cloud.zvirt.volumes import class_parameters, cloud, disk_paths
from lib.lab.zvirt import seed
from lib.volumes import callers, flow, model
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.stage import Stage

GIB = 2**30
CLUSTER = "cluster-a"
NAME = "pvc-0f0e0d0c-0000-4000-8000-000000000001"
ID = VolumeId(disk_paths.disk_id(CLUSTER, NAME))
PARAMETERS = {class_parameters.DOMAIN: seed.NFS}


FASTER = 10.0


class Killed(BaseException):
    """The process ends here."""


class World:
    """One engine with two VMs, and processes of csi-controller.

    die_at: number of the request at which the process is killed; None: never.
    is_before: before the request is carried out, else after that.
    """

    def __init__(self, *lines: str) -> None:
        self.stage = Stage()
        self.vms = Vms(self.stage.service)
        self.node = InstanceId(self.vms.boot("node-1", 0))
        self.other = InstanceId(self.vms.boot("node-2", 0))
        self.vms.rules(*lines)
        self.now_s = 1000.0
        self.sent: list[str] = []
        self.die_at: int | None = None
        self.is_before = True
        self.is_threaded = False
        self._real_s = 0.0
        self._lock = threading.Lock()
        self._simulated = Simulated(self.stage)

    def begin_threads(self) -> None:
        """Begin to have time pass by itself."""
        self.is_threaded, self._real_s = True, time.monotonic()

    # Requests.

    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        path, _, query = url.partition("/ovirt-engine/")[2].partition("?")
        number = len(self.sent)
        is_api = path.startswith("api")
        if is_api:
            self.sent.append(f"{method} {_kind(path.removeprefix('api'))}")
        is_turn = is_api and number == self.die_at
        if is_turn and self.is_before:
            raise Killed
        response = self._simulated(method, url, headers, body, timeout_s)
        if is_turn:
            raise Killed
        return response

    @property
    def counts(self) -> collections.Counter[str]:
        """Requests by kind."""
        return collections.Counter(self.sent)

    # Processes.

    def open(
        self, memory: absence_scope.HomeMemory | None = None, **settings: Any
    ) -> cloud.EngineVolumes:
        """Return the volumes as a process opens them."""
        access = client.EngineClient(
            lambda: SETTINGS,
            self._exchange,
            clock=lambda: self.now_s,
            wall_clock=lambda: 1_700_000_000.0,
        )
        place = home.EngineHome(access, "", memory, lambda: self.now_s)
        nodes = settings.pop("nodes", lambda: (self.node, self.other))
        cluster = settings.pop("cluster", CLUSTER)
        return cloud.EngineVolumes(
            access,
            place,
            cluster_witnesses.OfCluster(cluster, nodes),
            clock=lambda: self.now_s,
            **settings,
        )

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Advance the time; for several threads FASTER times as fast as it passes."""
        if not self.is_threaded:
            self.pass_s(seconds)
            return
        condition.wait(seconds / FASTER)
        with self._lock:
            elapsed_s = FASTER * (time.monotonic() - self._real_s)
            self._real_s = time.monotonic()
        self.pass_s(elapsed_s)

    def pass_s(self, seconds: float) -> None:
        """Move the clocks of the engine and of all processes."""
        with self._lock:
            self.now_s += seconds
            self.vms.advance(seconds)

    def flow(self, volumes: cloud.EngineVolumes) -> flow.VolumesFlow:
        """Return the flow of a process that was started long ago."""
        effects = callers.CallEffects(lambda: self.now_s, self.wait)
        return flow.VolumesFlow(lambda: volumes, effects, started=float("-inf"))

    def settle(
        self,
        request: model.Request,
        volumes: cloud.EngineVolumes | None = None,
        patience_s: float = 300.0,
    ) -> Any:
        """Settle a request; without volumes as a new process."""
        process = self.flow(self.open() if volumes is None else volumes)
        return process.settle(request, callers.Caller(self.now_s + patience_s))

    # The state of the engine.

    def disks(self) -> list[Any]:
        """Return the disks of volumes: not those of templates and boot disks."""
        attached = self.stage.engine.records.all("disk_attachment")
        boot = {row.entity.id for row in attached if row.entity.bootable}
        rows = self.stage.engine.records.all("disk")
        return [row.entity for row in rows if row.key not in boot]

    def attachments(self) -> list[tuple[str, str, bool]]:
        """Return disk, VM and whether it is active, without boot disks."""
        rows = self.stage.engine.records.all("disk_attachment")
        return [
            (row.entity.id, row.entity.vm.id, row.entity.active)
            for row in rows
            if row.entity.vm is not None and not row.entity.bootable
        ]

    def add_disk(self, name: str = NAME, **parts: str) -> VolumeId:
        """Create a disk as the reference does, without a tag; return its ID."""
        inner = "".join(f"<{key}>{value}</{key}>" for key, value in parts.items())
        body = (
            f"<disk><alias>{name}</alias><format>raw</format><sparse>true</sparse>"
            f"<provisioned_size>{GIB}</provisioned_size>{inner}"
            f"<storage_domains><storage_domain id='{seed.identifier(seed.NFS)}'/>"
            "</storage_domains></disk>"
        )
        before = {disk.id for disk in self.disks()}
        self.vms.request("POST", "disks", body)
        self.pass_s(5)
        (id_,) = {disk.id for disk in self.disks()} - before
        return VolumeId(id_)

    def add_attachment(self, disk: str, vm: str, is_active: bool = True) -> None:
        """Attach a disk as the reference does."""
        body = (
            f"<disk_attachment><active>{str(is_active).lower()}</active>"
            "<bootable>false</bootable><interface>virtio_scsi</interface>"
            f"<disk id='{disk}'/></disk_attachment>"
        )
        self.vms.request("POST", f"vms/{vm}/diskattachments", body)


def _kind(path: str) -> str:
    """Return a path without IDs."""
    parts = path.strip("/").split("/")
    return "/".join("{}" if disk_paths.is_id(part) else part for part in parts)


def spec(volumes: cloud.EngineVolumes, name: str = NAME, **parts: Any) -> VolumeSpec:
    """Return the spec of a volume."""
    values: dict[str, Any] = {
        "size_bytes": GIB,
        "cluster": CLUSTER,
        "parameters": PARAMETERS,
    }
    parsed = volumes.parse(VolumeRequest(name, **(values | parts)))
    assert isinstance(parsed, VolumeSpec), parsed
    return parsed


def made(world: World, **parts: Any) -> VolumeId:
    """Create a volume; return its ID."""
    volumes = world.open()
    volume = world.settle(model.Make(spec(volumes, **parts)), volumes)
    return VolumeId(volume.id)
