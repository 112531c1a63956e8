"""What a real OpenStack offers keeps the contract of tests/contract/catalog.py."""

import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from lib.cloud.catalog import StorageType
from lib.cloud.openstack.catalog import offers
from lib.cloud.openstack.config import reader as openstack_config
from lib.lab import places
from lib.lab.openstack import accounts, tenant
from lib.lab.run import waiting
from tests.contract import catalog
from tests.harness.openstack import seed_data

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
PATIENCE_S = waiting.LIMIT_S


class Real:
    installer_document: Mapping[str, object] = MappingProxyType({"zones": ["az1"]})
    no_type = "00000000-0000-0000-0000-000000000000"

    def __init__(self, cloud_conf: str, mine: tenant.Tenant) -> None:
        read = openstack_config.read(cloud_conf, os.environ)
        opened = offers.connect(read.credentials, lambda *call: None)
        assert opened.catalog is not None
        self.catalog = opened.catalog
        self._volumes = mine.connection.block_storage
        first = next(iter(self._volumes.types()))
        self.storage_type = StorageType(first.name, first.id)

    def add_volume(self, name: str, cluster_id: str) -> str:
        metadata = {seed_data.CLUSTER_KEY: cluster_id}
        volume = self._volumes.create_volume(size=1, name=name, metadata=metadata)
        end = time.monotonic() + PATIENCE_S
        while self._volumes.get_volume(volume.id).status != "available":
            assert time.monotonic() < end
            time.sleep(0.3)
        return str(volume.id)


@pytest.fixture(scope="module")
def ground(where: places.Places, project: MakeProject) -> catalog.Ground:
    account, mine = project("catalog-contract")
    return Real(accounts.cloud_conf(where, account), mine)


class TestOpenStack(catalog.Contract):
    """The rows stand in the contract."""
