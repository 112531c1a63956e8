"""The in-memory cloud of lib/cloud/fake keeps the contract of each protocol.

The convergence tests of the flows rest on it.
"""

import dataclasses
import uuid
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from lib.cloud.catalog import CatalogVolume, Condition, InstanceType, StorageType
from lib.cloud.fake import (
    catalog,
    clock,
    instances,
    load_balancers,
    machine_plans,
    machines,
    volumes,
)
from lib.cloud.load_balancers import Facts
from lib.cloud.machines import Facts as MachineFacts
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from tests.contract import catalog as catalog_contract
from tests.contract import instances as instances_contract
from tests.contract import load_balancers as load_balancers_contract
from tests.contract import machines as machines_contract
from tests.contract import volumes as volumes_contract

MOST = 2**63 - 1


class Instances(instances_contract.InMemory):
    region = "RegionOne"
    unknown = instances.provider_id("nobody")
    foreign = ("dvp://vm-1", "openstack://Elsewhere/id-1")
    address_types = instances_contract.ONE_INTERNAL

    def __init__(self) -> None:
        self.instances = instances.FakeInstances()
        self._made = 0

    def provider_id(self, instance_id: str) -> str:
        return instances.provider_id(instance_id)

    def boot(self, name: str) -> str:
        self._made += 1
        instance_id = InstanceId(f"id-{self._made}")
        self.instances.put(
            Instance(
                instance_id,
                name,
                Phase.RUNNING,
                instances.provider_id(instance_id),
                (Address(AddressType.INTERNAL_IP, f"10.0.0.{self._made}"),),
                "m1.tiny",
                "az1",
                "RegionOne",
            )
        )
        return instance_id

    def stored(self, instance_id: str) -> Instance:
        return self.instances.instances[InstanceId(instance_id)]

    def put(self, instance: Instance) -> None:
        self.instances.put(instance)

    def delete(self, instance_id: str) -> None:
        self.instances.remove(InstanceId(instance_id))


class TestInstances(instances_contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> instances_contract.Ground:
        return Instances()


class Volumes:
    traits = volumes_contract.Traits()
    device_key = "DevicePath"
    two = (InstanceId("instance-1"), InstanceId("instance-2"))

    def __init__(self) -> None:
        self.clock = clock.Clock()
        self.volumes = volumes.FakeVolumes(self.clock)
        self.volumes.rules.types = ("slow", "fast", volumes_contract.SHARED)
        self.volumes.rules.shareable = (volumes_contract.SHARED,)
        self.volumes.instances = set(self.two)

    def types(self) -> tuple[str, str]:
        return "slow", "fast"

    def boot(self) -> InstanceId:
        instance_id = InstanceId(str(uuid.uuid4()))
        self.volumes.instances.add(instance_id)
        return instance_id

    def kill(self, instance_id: InstanceId) -> None:
        self.volumes.remove_instance(instance_id)

    def break_next(self) -> str:
        self.volumes.faults.failing.append("create")
        return ""

    def quota(self, size_bytes: int | None) -> None:
        used = sum(volume.size_bytes for volume in self.volumes.volumes())
        left = MOST - used if size_bytes is None else size_bytes
        self.volumes.rules.quota_bytes = used + left

    def let_pass(self) -> None:
        self.clock.move(1.0)


class TestVolumes(volumes_contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> volumes_contract.Ground:
        return Volumes()


class Catalog:
    installer_document: Mapping[str, object] = MappingProxyType({"zones": ["az1"]})
    storage_type = StorageType("fast", "type-1")
    no_type = "type-2"

    def __init__(self) -> None:
        self.catalog = catalog.FakeCatalog(
            conditions=(Condition("quota", "enough is left", is_ok=True),),
            instance_types=(InstanceType("small", 1, 1024, 10),),
            document={"kind": "Discovered"},
            storage_types=(self.storage_type,),
        )

    def add_volume(self, name: str, cluster_id: str) -> str:
        self.catalog.marked[cluster_id] = (CatalogVolume(f"id-of-{name}", name),)
        return f"id-of-{name}"


class TestCatalog(catalog_contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> catalog_contract.Ground:
        return Catalog()


class LoadBalancers(load_balancers_contract.InMemory):
    """Implements the contract's `Ground`; the cloud outlives the process."""

    def __init__(self) -> None:
        self._clock = clock.Clock()
        self.balancers = load_balancers.FakeLoadBalancers(self._clock)

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        key = load_balancers.ALGORITHM_ANNOTATION
        return dataclasses.replace(facts, annotations={key: "magic"}), key

    def sleep(self, seconds: float) -> None:
        self._clock.move(seconds)

    def restart(self) -> None:
        """Nothing of it is in the process."""

    def delete(self, id_: str) -> None:
        del self.balancers.load_balancers[id_]


class TestLoadBalancers(load_balancers_contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> load_balancers_contract.Ground:
        return LoadBalancers()


class Machines:
    """Implements the contract's `Ground`; the cloud outlives the process."""

    cluster_id = "cluster-1"
    starts_again = False

    def __init__(self) -> None:
        self._clock = clock.Clock()
        self.machines = machines.FakeMachines(
            self._clock, machines_contract.read_bootstrap
        )

    def facts(self, name: str) -> MachineFacts:
        return MachineFacts(
            self.cluster_id,
            "default",
            name,
            f"uid-of-{name}",
            name,
            {"cores": 2, "disk": 20},
            bootstrap=machines_contract.bootstrap(name),
        )

    def invalid(self, facts: MachineFacts) -> tuple[MachineFacts, str]:
        return dataclasses.replace(facts, spec={"cores": 0}), "spec.cores"

    def changed(self, facts: MachineFacts) -> tuple[MachineFacts, str]:
        spec = {**facts.spec, "cores": 4}
        return dataclasses.replace(facts, spec=spec), "spec.cores"

    def sleep(self, seconds: float) -> None:
        self._clock.move(seconds)

    def restart(self) -> None:
        """Nothing of it is in the process."""

    def _vm(self, name: str) -> machine_plans.Vm:
        (vm,) = (vm for vm in self.machines.vms.values() if vm.name == name)
        return vm

    def delete(self, name: str) -> None:
        del self.machines.vms[self._vm(name).id]

    def stop(self, name: str) -> None:
        self._vm(name).state = machine_plans.VmState.DOWN

    def occupy(self, name: str) -> str:
        vm = machine_plans.Vm(f"id-of-{name}", name, state=machine_plans.VmState.UP)
        self.machines.vms[vm.id] = vm
        return vm.id

    def exists(self, id_: str) -> bool:
        return id_ in self.machines.vms or id_ in self.machines.disks

    def attach_disk(self, name: str) -> str:
        disk = f"disk-of-{name}"
        self._vm(name).disks.add(disk)
        self.machines.disks.add(disk)
        return disk

    def passed_on(self, name: str) -> bytes:
        return self.machines.received[self._vm(name).id]


class TestMachines(machines_contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> machines_contract.Ground:
        return Machines()
