"""Meadow keeps the contracts of tests/contract."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from lib.cloud.catalog import StorageType
from lib.cloud.load_balancers import Facts
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.cloud.volumes import VolumeSpec
from tests.contract import catalog, instances, load_balancers
from tests.third import balancers, cloud
from tests.third.volumes import MeadowVolumes


class Instances(instances.InMemory):
    region = ""
    unknown = cloud.provider_id("nobody")
    foreign = ("openstack:///1", "dvp://vm-1")
    address_types = instances.ONE_INTERNAL

    def __init__(self) -> None:
        self.world = cloud.World()
        self.instances = cloud.MeadowInstances(self.world)

    def provider_id(self, instance_id: str) -> str:
        return cloud.provider_id(instance_id)

    def boot(self, name: str) -> str:
        id_ = InstanceId(f"sheep-{len(self.world.instances)}")
        self.world.instances[id_] = Instance(
            id_,
            name,
            Phase.RUNNING,
            cloud.provider_id(id_),
            (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
            "sheep",
            "pen-1",
        )
        return id_

    def stored(self, instance_id: str) -> Instance:
        return self.world.instances[InstanceId(instance_id)]

    def put(self, instance: Instance) -> None:
        self.world.instances[instance.id] = instance

    def delete(self, instance_id: str) -> None:
        del self.world.instances[InstanceId(instance_id)]


class TestInstances(instances.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> instances.Ground:
        return Instances()


class Balancers(load_balancers.InMemory):
    def __init__(self) -> None:
        self.world = cloud.World()
        self.restart()

    def restart(self) -> None:
        self.balancers = balancers.MeadowLoadBalancers(
            self.world.relays, self.world.lock
        )

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        annotations = {balancers.SPEED: "fly"}
        return dataclasses.replace(facts, annotations=annotations), balancers.SPEED

    def sleep(self, seconds: float) -> None:
        """Nothing takes time here."""

    def delete(self, id_: str) -> None:
        del self.world.relays[id_]


class TestLoadBalancers(load_balancers.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> load_balancers.Ground:
        return Balancers()


class Catalog:
    installer_document: Mapping[str, object] = MappingProxyType({})
    storage_type = StorageType("fast", "id-fast")
    no_type = "id-none"

    def __init__(self) -> None:
        world = cloud.World()
        self.catalog = cloud.MeadowCatalog(world)
        self._volumes = MeadowVolumes(
            world.bricks, world.classes, world.has, world.lock
        )

    def add_volume(self, name: str, cluster_id: str) -> str:
        return self._volumes.create(VolumeSpec(name, 1, cluster_id)).id


class TestCatalog(catalog.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> catalog.Ground:
        return Catalog()
