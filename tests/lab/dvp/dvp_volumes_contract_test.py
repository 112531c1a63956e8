"""Volumes of a simulated parent keep the contract of tests/contract/volumes.py."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from lib.cloud.dvp import config, quantity_bytes
from lib.cloud.dvp import parent as access
from lib.cloud.dvp.kinds import VIRTUAL_MACHINES
from lib.cloud.dvp.volumes import cloud, disk_names, disk_serial
from lib.cloud.model import InstanceId
from lib.kube import resources
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import DISKS, MACHINES
from lib.lab.dvp.project import Project
from tests.contract import volumes
from tests.harness.dvp.dvp_parent import DvpParent

QUOTA = resources.Resource("", "v1", "resourcequotas", "ResourceQuota", True)


class Parent:
    """A project of the parent, and DvpVolumes of its user."""

    device_key = disk_serial.DISK_UID
    two = (InstanceId("contract-1"), InstanceId("contract-2"))
    traits = volumes.Traits(
        features=cloud.FEATURES,
        type_key="dvpStorageClass",
        parameters={"dvpStorageClass": projects.STORAGE_AT_ONCE},
        has_zones=False,
        has_unique_names=True,
        is_watched=True,
        is_judged_late=True,
        unknown_type=('storage class "gold" not found',),
        is_shareable=False,
    )

    def __init__(self, parent: DvpParent, project: Project) -> None:
        self._parent, self._project = parent, project
        self._breaking = contextlib.ExitStack()
        env = {"DVP_NAMESPACE": project.namespace, "CLUSTER_UUID": volumes.CLUSTER}
        settings = config.read(str(project.kubeconfig), env)
        self.access = access.connect(settings, "contract")
        self.volumes = cloud.DvpVolumes(self.access)
        for instance in self.two:
            self._boot(instance)

    def types(self) -> tuple[str, str]:
        return projects.STORAGE_AT_ONCE, projects.STORAGE

    def boot(self) -> InstanceId:
        return self._boot(InstanceId(f"contract-{uuid.uuid4().hex[:6]}"))

    def _boot(self, name: InstanceId) -> InstanceId:
        self._parent.machines(self._project, [name], cluster=volumes.CLUSTER)
        self._parent.wait(f"{name} is watched", lambda: name in self._known())
        return name

    def _known(self) -> set[str]:
        machines = self.access.items(VIRTUAL_MACHINES).values()
        return {disk_names.hostname(machine) for machine in machines}

    def kill(self, instance_id: InstanceId) -> None:
        objects = self._parent.objects(self._project)
        objects.delete(MACHINES, instance_id)
        self._parent.wait(
            f"{instance_id} is deleted",
            lambda: objects.get(MACHINES, instance_id) is None
            and instance_id not in self._known(),
        )

    def break_next(self) -> str:
        """Have the next disk fail for good: its class alone is refused before."""
        line = "disk-claimed * ProvisioningFailedTerminally no pool"
        self._breaking.enter_context(self._parent.failing(line))
        return ""

    def _is_broken(self) -> bool:
        disks = self._parent.objects(self._project).all(DISKS)
        return any(disk.get("status", {}).get("phase") == "Failed" for disk in disks)

    def quota(self, size_bytes: int | None) -> None:
        """Leave so much for the claims of the project."""
        objects = self._parent.objects(self._project)
        if size_bytes is None:
            objects.delete(QUOTA, "contract")
            return
        claims = objects.all(resources.CLAIMS)
        used = sum(
            quantity_bytes.size_bytes(c["spec"]["resources"]["requests"]["storage"])
            for c in claims
        )
        hard = {"requests.storage": str(used + size_bytes)}
        objects.make(QUOTA, "contract", spec={"hard": hard})
        self._parent.wait("the quota is in force", self._is_in_force)

    def _is_in_force(self) -> bool:
        stored: Any = self._parent.objects(self._project).get(QUOTA, "contract")
        return bool((stored or {}).get("status", {}).get("used"))

    def let_pass(self) -> None:
        time.sleep(0.1)
        if self._is_broken():
            self._breaking.close()


class TestDvp(volumes.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, parent: DvpParent, project: Project) -> Iterator[Parent]:
        opened = Parent(parent, project)
        yield opened
        opened.access.close()


def test_waiting_costs_nothing(parent: DvpParent, project: Project) -> None:
    """All rows together: no request but writes, and reads of what is absent."""
    counts: dict[str, int] = {}
    for row in parent.requests(project):
        counts[f"{row.verb} {row.resource}"] = (
            counts.get(f"{row.verb} {row.resource}", 0) + 1
        )
    for title, count in sorted(counts.items()):
        print(f"{title:52} {count}")
    # A watch ends at times, and the store lists again after some failures.
    assert 0 < counts["list virtualdisks"] <= 5
    assert counts["watch virtualdisks"] <= 20
