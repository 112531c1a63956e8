"""Instances of a parent keep the contract of tests/contract/instances.py.

The parent is an API server in memory; tests/lab/dvp has a real one.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from lib.cloud import provider_id
from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import cloud
from lib.cloud.model import AddressType
from lib.lab.run import waiting
from lib.process import decoding
from tests.contract import instances
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES


class Parent:
    region = "region-1"
    unknown = provider_id.dvp("none")
    foreign = ("openstack:///id-1", "zvirt://id-1")
    address_types = frozenset(
        {AddressType.HOSTNAME, AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP}
    )

    def __init__(self) -> None:
        self.api = parent_api.ParentApi()
        self.access = parent.Parent(self.api, NAMESPACE, UUID)
        self.instances = cloud.ParentInstances(self.access)
        self._created = 0

    def provider_id(self, instance_id: str) -> str:
        return provider_id.dvp(instance_id)

    def boot(self, name: str) -> str:
        self._created += 1
        vm = f"{name}-{self._created}"
        self._put(
            {
                "metadata": {
                    "name": vm,
                    "namespace": NAMESPACE,
                    "labels": {ownership.CLUSTER: UUID, ownership.HOSTNAME: name},
                },
                "spec": parent_api.vm_spec(
                    nodeSelector={
                        "topology.kubernetes.io/zone": "zone-1",
                        "topology.kubernetes.io/region": self.region,
                    }
                ),
                "status": {"phase": "Running", "ipAddress": f"10.0.0.{self._created}"},
            }
        )
        return vm

    def stop(self, instance_id: str) -> None:
        self._change(instance_id, {"status": {"phase": "Stopped"}}, "status")

    def rename(self, instance_id: str, name: str) -> None:
        self._change(instance_id, {"metadata": {"labels": {ownership.HOSTNAME: name}}})

    def delete(self, instance_id: str) -> None:
        self.api.remove(VMS.resource, instance_id, NAMESPACE)
        self._wait(instance_id, lambda vm: vm is None)

    def _put(self, document: dict[str, object]) -> None:
        self._until_shown(json.dumps(self.api.put(VMS.resource, document)))

    def _change(
        self, name: str, change: dict[str, object], subresource: str | None = None
    ) -> None:
        changed = self.api.patch(
            VMS.resource,
            name,
            json.dumps(change).encode(),
            NAMESPACE,
            subresource=subresource,
            timeout_s=10,
        )
        self._until_shown(changed)

    def _until_shown(self, body: str | bytes) -> None:
        written = decoding.decode(body, kinds.VirtualMachine).metadata
        self._wait(
            written.name,
            lambda vm: vm is not None
            and vm.metadata.resource_version == written.resource_version,
        )

    def _wait(
        self, name: str, is_met: Callable[[kinds.VirtualMachine | None], bool]
    ) -> None:
        store = self.access.store(VMS)
        key = self.access.key(VMS, name)
        waiting.until("the change", lambda: is_met(store.get(key)), poll_s=0.01)


class TestParent(instances.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> Iterator[instances.Ground]:
        ground = Parent()
        yield ground
        ground.access.close()
