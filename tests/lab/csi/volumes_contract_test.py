"""Volumes of a real OpenStack keep the contract of tests/contract/volumes.py."""

import os
import time
import uuid
from collections.abc import Callable, Iterator

import openstack.connection
import pytest

from lib.cloud.model import InstanceId
from lib.cloud.openstack import with_volumes
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.instances import cloud as openstack_cloud
from lib.lab import places
from lib.lab.grounds import servers
from lib.lab.openstack import accounts, tenant
from lib.lab.openstack import cloud as lab_cloud
from tests.contract import volumes
from tests.contract.volumes import GIB, PATIENCE_S, SHARED

BROKEN = "contract-broken"
TWIN = "contract-twin"

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


class Real:
    device_key = "DevicePath"
    traits = volumes.Traits()

    def __init__(
        self,
        cloud_conf: str,
        mine: tenant.Tenant,
        admin: openstack.connection.Connection,
    ) -> None:
        read = openstack_config.read(cloud_conf, os.environ)
        opened = with_volumes.of_client(openstack_cloud.open_client(read), read)
        assert opened.volumes is not None
        self.volumes = opened.volumes
        self._mine = mine
        self._admin = admin
        self.two = (self.boot(), self.boot())
        for name, specs in (
            (SHARED, {"multiattach": "<is> True"}),
            (TWIN, {"volume_backend_name": "fast"}),
            (BROKEN, {"volume_backend_name": "nowhere"}),
        ):
            if not admin.block_storage.find_type(name):
                admin.block_storage.create_type(
                    name=name, is_public=True, extra_specs=specs
                )

    def types(self) -> tuple[str, str]:
        # The lab's drivers move nothing from one back end to another.
        return TWIN, "fast"

    def boot(self) -> InstanceId:
        server = self._mine.boot_another(f"contract-{uuid.uuid4()}")
        self._mine.wait({server.id}, servers.ACTIVE)
        return InstanceId(server.id)

    def kill(self, instance_id: InstanceId) -> None:
        self._mine.delete(instance_id)
        end = time.monotonic() + PATIENCE_S
        while instance_id in {server.id for server in self._mine.items()}:
            assert time.monotonic() < end
            self.let_pass()

    def break_next(self) -> str:
        return BROKEN

    def quota(self, size_bytes: int | None) -> None:
        project = self._mine.connection.current_project_id or ""
        used = sum(volume.size_bytes for volume in self.volumes.listing())
        most = -1 if size_bytes is None else (used + size_bytes) // GIB
        self._admin.block_storage.update_quota_set(project, gigabytes=most)

    def let_pass(self) -> None:
        time.sleep(0.1)


@pytest.fixture(scope="module")
def ground(where: places.Places, project: MakeProject) -> Iterator[volumes.Ground]:
    account, mine = project("volumes-contract")
    with lab_cloud.connect(where, accounts.ADMIN) as admin:
        # Its volumes stay behind, in a project that nobody else looks into.
        yield Real(accounts.cloud_conf(where, account), mine, admin)


class TestOpenStack(volumes.Contract):
    """The rows stand in the contract."""
