"""Volumes of a simulated engine as tests need them."""

import time
from collections.abc import Callable

from lib.cloud.model import InstanceId
from lib.cloud.support import cluster_witnesses
from lib.cloud.zvirt import client, home
from lib.cloud.zvirt.volumes import class_parameters, cloud
from lib.lab.zvirt import seed
from tests.contract import volumes
from tests.harness.zvirt.vms_of_nodes import Vms

GIB = 2**30


class Ground:
    """Implements the `Ground` of tests/contract/volumes.py."""

    device_key = ""
    two: tuple[InstanceId, InstanceId]
    traits = volumes.Traits(
        features=cloud.FEATURES,
        type_key=class_parameters.DOMAIN,
        parameters={class_parameters.DOMAIN: seed.NFS},
        has_zones=False,
        has_unique_names=True,
        is_watched=True,
        unknown_type=(f'{class_parameters.DOMAIN}: unsupported value "gold"', seed.NFS),
        has_devices=False,
        shows_quota=False,
        is_shareable=False,
    )

    def __init__(
        self,
        vms: Vms,
        access: client.EngineClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vms = vms
        self._made = 0
        self._breaks = False
        place = home.EngineHome(access, clock=clock)
        cluster = cluster_witnesses.OfCluster(volumes.CLUSTER, lambda: self.two)
        self.volumes = cloud.EngineVolumes(access, place, cluster, clock=clock)
        self.two = (self.boot(), self.boot())

    def types(self) -> tuple[str, str]:
        return seed.NFS, seed.ISCSI

    def boot(self) -> InstanceId:
        self._made += 1
        return InstanceId(self._vms.boot(f"contract-{self._made}", 0))

    def kill(self, instance_id: InstanceId) -> None:
        """Delete a VM as zvirt's reference does: its data disk stays."""
        self._vms.stop(instance_id)
        path = f"vms/{instance_id}/diskattachments"
        for row in self._vms.attached(instance_id):
            self._vms.request("DELETE", f"{path}/{row}")
        self._vms.delete(instance_id)

    def break_next(self) -> str:
        self._vms.rules("fail disk-ready")
        self._breaks = True
        return ""

    def quota(self, size_bytes: int | None) -> None:
        if size_bytes is None:
            self._vms.rules()
            return
        used = self._vms.provisioned_gib(seed.NFS)
        self._vms.rules(f"quota {seed.NFS} {used + size_bytes // GIB}")

    def let_pass(self) -> None:
        self._vms.advance(0.5)
        if self._breaks and self._has_illegal():
            self._vms.rules()
            self._breaks = False
        time.sleep(0.001)

    def _has_illegal(self) -> bool:
        rows = self._vms.service.engine.records.all("disk")
        return any(row.entity.status.value == "illegal" for row in rows)
