"""VMs of a simulated engine as tests of instances need them, and clients of it."""

import time
from collections.abc import Callable
from xml.sax.saxutils import escape

from lib.cloud import provider_id
from lib.cloud.model import AddressType
from lib.cloud.zvirt import client, home
from lib.cloud.zvirt.instances import cloud
from lib.lab.zvirt import control, seed
from lib.lab.zvirt.records import EngineRecord
from lib.lab.zvirt.service import Service

_VM = "<vm><name>{}</name><cluster id='{}'/><template><name>{}</name></template></vm>"
_NIC = "<nic><name>{}</name><vnic_profile id='{}'/></nic>"
OTHER = "Second"
"""The second data center, and its cluster."""


class Vms:
    """Creates and changes VMs as another administrator does; effects are immediate."""

    def __init__(self, service: Service) -> None:
        self.service = service
        engine = service.engine
        with engine.lock:
            self.other = seed.add_place(engine, OTHER, OTHER)
            engine.records.commit()

    def request(self, method: str, path: str, body: str = "") -> str:
        """Send a request; return the body of the answer."""
        request = {"do": "request", "method": method, "path": path, "body": body}
        answer = control.carry_out(self.service, request)
        assert isinstance(answer, dict)
        return str(answer["body"])

    def advance(self, seconds: float) -> None:
        """Move the clock of the engine."""
        self.service.engine.advance(seconds)

    def create(self, name: str, nics: int = 1) -> str:
        """Create a VM that is down; return its ID."""
        taken = self.ids(name)
        cluster = self.other if taken else seed.identifier("cluster")
        template = "Blank" if taken else seed.TEMPLATE
        body = _VM.format(escape(name), cluster, template)
        self.request("POST", "vms", body)
        (vm,) = set(self.ids(name)) - set(taken)
        self.advance(10)
        for number in range(1, nics + 1):
            profile = seed.identifier("profile")
            self.request("POST", f"vms/{vm}/nics", _NIC.format(f"nic{number}", profile))
        return vm

    def ids(self, name: str) -> list[str]:
        """Return the IDs of the VMs of a name."""
        rows = self.service.engine.records.all("vm")
        return [row.key for row in rows if row.entity.name == name]

    def boot(self, name: str, nics: int = 1) -> str:
        """Create a VM that is up, with a guest agent; return its ID."""
        vm = self.create(name, nics)
        if self.of(vm).entity.cluster.id != self.other:
            self.request("POST", f"vms/{vm}/start", "<action/>")
            self.advance(20)
        return vm

    def of(self, vm: str) -> EngineRecord:
        """Return a VM."""
        record = self.service.engine.records.get("vm", vm)
        assert record is not None
        return record

    def stop(self, vm: str) -> None:
        """Power a VM off."""
        self.request("POST", f"vms/{vm}/stop", "<action/>")
        self.advance(10)

    def rename(self, vm: str, name: str) -> None:
        """Rename a VM."""
        self.request("PUT", f"vms/{vm}", f"<vm><name>{name}</name></vm>")

    def delete(self, vm: str) -> None:
        """Delete a VM, running or not."""
        if self.of(vm).entity.status.value != "down":
            self.stop(vm)
        self.request("DELETE", f"vms/{vm}")

    def attached(self, vm: str) -> list[str]:
        """Return the disks that are attached to a VM and can be detached."""
        rows = self.service.engine.within("disk_attachment", vm)
        return [row.entity.id for row in rows if not row.entity.bootable]

    def rules(self, *lines: str) -> None:
        """Put rules of the engine in force in place of the former."""
        engine = self.service.engine
        with engine.lock:
            engine.settings.replace(lines)

    def provisioned_gib(self, domain: str) -> int:
        """Return the size of all disks in a storage domain."""
        key = seed.identifier(domain)
        disks = [row.entity for row in self.service.engine.records.all("disk")]
        sizes = [d.provisioned_size for d in disks if d.storage_domains[0].id == key]
        return int(sum(sizes)) >> 30


class Ground:
    """Implements the `Ground` of tests/contract/instances.py."""

    region = seed.DATA_CENTER
    unknown = provider_id.zvirt("00000000-0000-4000-9000-000000000000")
    foreign = ("openstack:///id-1", "dvp://vm-1")
    address_types = frozenset(
        {AddressType.HOSTNAME, AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP}
    )

    def __init__(
        self,
        vms: Vms,
        access: client.EngineClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        rules = cloud.InstanceRules(topology=True)
        place = home.EngineHome(access, clock=clock)
        self.instances = cloud.EngineInstances(access, place, rules, clock)
        self.vms = vms
        self.boot = vms.boot
        self.stop = vms.stop
        self.rename = vms.rename
        self.delete = vms.delete

    def provider_id(self, instance_id: str) -> str:
        return provider_id.zvirt(instance_id)
