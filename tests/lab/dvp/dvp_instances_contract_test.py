"""Instances of a real parent keep the contract of tests/contract/instances.py."""

from collections.abc import Callable, Iterator

import pytest

from lib.cloud import provider_id
from lib.cloud.dvp import config, kinds, parent
from lib.cloud.dvp.instances import cloud
from lib.cloud.model import AddressType
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.contract import instances
from tests.harness.dvp import dvp_manager, dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent

VMS = kinds.VIRTUAL_MACHINES


class RealParent:
    region = "parent"
    unknown = provider_id.dvp("none")
    foreign = ("openstack:///id-1", "zvirt://id-1")
    address_types = frozenset(
        {AddressType.HOSTNAME, AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP}
    )

    def __init__(self, lab: DvpParent, project: Project) -> None:
        self._lab = lab
        self._project = project
        self._created = 0
        settings = config.read(
            str(project.kubeconfig), dvp_manager.environment(project)
        )
        self.access = parent.connect(settings, "contract")
        self.instances = cloud.ParentInstances(self.access)

    def provider_id(self, instance_id: str) -> str:
        return provider_id.dvp(instance_id)

    def boot(self, name: str) -> str:
        self._created += 1
        placed = {
            "topology.kubernetes.io/zone": "a",
            "topology.kubernetes.io/region": self.region,
        }
        vm = self._lab.machine(
            self._project, name, name=f"{name}-{self._created}", nodeSelector=placed
        )
        self._lab.wait_phase(MACHINES, self._project, vm, "Running")
        self._wait(vm, lambda held: held is not None and _phase(held) == "Running")
        return vm

    def stop(self, instance_id: str) -> None:
        self._lab.operate(self._project, instance_id, "Stop")
        self._wait(
            instance_id, lambda held: held is not None and _phase(held) == "Stopped"
        )

    def rename(self, instance_id: str, name: str) -> None:
        label = {"labels": {dvp_parent.HOSTNAME_LABEL: name}}
        objects = self._lab.objects(self._project)
        objects.patch(MACHINES, instance_id, metadata=label)
        self._wait(
            instance_id,
            lambda held: held is not None
            and held.metadata.labels[dvp_parent.HOSTNAME_LABEL] == name,
        )

    def delete(self, instance_id: str) -> None:
        self._lab.objects(self._project).delete(MACHINES, instance_id)
        self._wait(instance_id, lambda held: held is None)

    def _wait(
        self, name: str, is_met: Callable[[kinds.VirtualMachine | None], bool]
    ) -> None:
        store, key = self.access.store(VMS), self.access.key(VMS, name)
        waiting.until(f"{name} in the store", lambda: is_met(store.get(key)))


def _phase(vm: kinds.VirtualMachine) -> str:
    return vm.status.phase


class TestRealParent(instances.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="module")
    @staticmethod
    def ground(parent: DvpParent, project: Project) -> Iterator[instances.Ground]:
        opened = RealParent(parent, project)
        yield opened
        opened.access.close()
