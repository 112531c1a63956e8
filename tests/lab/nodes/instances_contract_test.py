"""Instances of a real OpenStack keep the contract of tests/contract/instances.py."""

import os
import time
from collections.abc import Callable

import pytest

from lib.cloud import provider_id
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.instances import cloud as openstack_cloud
from lib.lab import places
from lib.lab.grounds import servers
from lib.lab.openstack import accounts, tenant
from tests.contract import instances

NOBODY = "00000000-0000-0000-0000-000000000000"

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


class Real:
    region = "RegionOne"
    unknown = provider_id.openstack(NOBODY)
    foreign = ("dvp://vm-1", "openstack://Elsewhere/id-1")
    address_types = instances.ONE_INTERNAL

    def __init__(self, cloud_conf: str, mine: tenant.Tenant) -> None:
        read = openstack_config.read(cloud_conf, os.environ)
        api = openstack_cloud.open_client(read)
        guard = openstack_cloud.guard_of(api, read)
        opened = openstack_cloud.of_client(api, read, guard)
        assert opened.instances is not None
        self.instances = opened.instances
        self._mine = mine

    def provider_id(self, instance_id: str) -> str:
        return provider_id.openstack(instance_id)

    def boot(self, name: str) -> str:
        server = self._mine.boot_another(name)
        self._mine.wait({server.id}, servers.ACTIVE)
        return server.id

    def stop(self, instance_id: str) -> None:
        self._mine.stop(instance_id)
        self._mine.wait({instance_id}, servers.SHUTOFF)

    def rename(self, instance_id: str, name: str) -> None:
        self._mine.rename(instance_id, name)

    def delete(self, instance_id: str) -> None:
        self._mine.delete(instance_id)
        end = time.monotonic() + 60
        while instance_id in {server.id for server in self._mine.items()}:
            assert time.monotonic() < end
            time.sleep(0.3)


@pytest.fixture(scope="module")
def ground(where: places.Places, project: MakeProject) -> instances.Ground:
    account, mine = project("contract")
    return Real(accounts.cloud_conf(where, account), mine)


class TestOpenStack(instances.Contract):
    """The rows stand in the contract."""
