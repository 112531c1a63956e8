"""Machines of a simulated engine in this process, for the contract and its walks."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from lib.cloud.machines import Bootstrap, BootstrapData, Facts
from lib.cloud.zvirt import client, home, http
from lib.cloud.zvirt.machines.cloud import ZvirtMachines
from lib.cloud.zvirt.machines.vm_plan import MachineRules
from lib.lab.zvirt import seed
from lib.lab.zvirt.records import EngineRecord
from tests.contract import machines as contract
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.stage import CLUSTER, PROFILE, Stage

UUID = "5e6f0b5c-2d8f-4a4e-9c53-0d4d9f5a7e10"
SPEC: Mapping[str, Any] = {
    "template": seed.TEMPLATE,
    "vnicProfileID": PROFILE,
    "cpu": {"sockets": 1, "cores": 2, "threads": 1},
    "memory": 4096,
    "rootDiskSizeGb": 20,
    "nicName": "nic1",
}
RULES = MachineRules(tags=(f"cluster-{UUID}",))
_VM = (
    "<vm><name>{}</name><description>{}</description>"
    "<cluster id='{}'/><template id='{}'/></vm>"
)
_NIC = f"<nic><name>nic1</name><vnic_profile id='{PROFILE}'/></nic>"
_DISK = (
    "<disk><alias>{}</alias><provisioned_size>1073741824</provisioned_size>"
    "<format>raw</format><description>{}</description>"
    "<storage_domains><storage_domain><name>nfs-1</name></storage_domain>"
    "</storage_domains></disk>"
)
_ATTACHMENT = (
    "<disk_attachment><active>true</active><bootable>{}</bootable>"
    "<interface>virtio_scsi</interface><disk id='{}'/></disk_attachment>"
)


@dataclasses.dataclass
class EngineMachines:
    """Implements `tests.contract.machines.Ground`, on an engine in memory.

    spec: of each machine. rules: of the process. at_request: called with method and
    path before and after each request to the API.
    """

    stage: Stage = dataclasses.field(default_factory=Stage)
    cluster_id: str = UUID
    spec: Mapping[str, Any] = dataclasses.field(default_factory=lambda: dict(SPEC))
    rules: MachineRules = RULES
    at_request: Callable[[str, str], None] = lambda method, path: None
    read_bootstrap: Callable[[Bootstrap], BootstrapData] = contract.read_bootstrap

    starts_again = True

    def __post_init__(self) -> None:
        self.now_s = 1000.0
        self.requests: list[tuple[str, str]] = []
        self._simulated = Simulated(self.stage)
        self.restart()

    def restart(self) -> None:
        """See the contract."""
        access = client.EngineClient(
            lambda: SETTINGS,
            self._exchange,
            clock=lambda: self.now_s,
            wall_clock=lambda: 1_700_000_000.0 + self.now_s,
        )
        place = home.EngineHome(access, clock=lambda: self.now_s)
        self.machines = ZvirtMachines(
            access, place, self.read_bootstrap, self.rules, lambda: self.now_s
        )

    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        path = url.partition("/ovirt-engine/")[2].partition("?")[0]
        if path.startswith("sso"):
            return self._simulated(method, url, headers, body, timeout_s)
        path = path.removeprefix("api").removeprefix("/")
        self.at_request(method, path)
        self.requests.append((method, path))
        response = self._simulated(method, url, headers, body, timeout_s)
        self.at_request(method, path)
        return response

    def writes(self) -> list[str]:
        """Return method and path of each write."""
        return [f"{m} {path}" for m, path in self.requests if m != "GET"]

    def sleep(self, seconds: float) -> None:
        """See the contract."""
        self.now_s += seconds
        self.stage.advance(seconds)

    def facts(self, name: str) -> Facts:
        """See the contract."""
        return Facts(
            self.cluster_id,
            "machines",
            name,
            f"uid-of-{name}",
            name,
            self.spec,
            bootstrap=contract.bootstrap(name),
            cluster_spec={"id": CLUSTER},
        )

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        spec = {**facts.spec, "vnicProfileID": "ovirtmgmt"}
        return dataclasses.replace(facts, spec=spec), "spec.vnicProfileID"

    def changed(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        spec = {**facts.spec, "memory": 2048}
        return dataclasses.replace(facts, spec=spec), "spec.memory"

    # The engine, as other clients see and change it.

    def vm(self, name: str) -> EngineRecord:
        """Return the VM of a name."""
        rows = self.stage.engine.records.all("vm")
        (row,) = (row for row in rows if row.entity.name == name)
        return row

    def names(self) -> list[str]:
        """Return the names of all VMs."""
        return sorted(row.entity.name for row in self.stage.engine.records.all("vm"))

    def aliases(self) -> list[str]:
        """Return the aliases of all disks but those of templates."""
        rows = self.stage.engine.records.all("disk")
        return sorted(
            row.entity.alias
            for row in rows
            if not row.entity.alias.startswith(seed.TEMPLATE)
        )

    def delete(self, name: str) -> None:
        """See the contract."""
        self.stop(name)
        self.stage.ok("DELETE", f"vms/{self.vm(name).key}")

    def stop(self, name: str) -> None:
        """See the contract."""
        self.stage.ok("POST", f"vms/{self.vm(name).key}/stop", "<action/>")
        self.sleep(5.0)

    def occupy(
        self, name: str, description: str = "", number: int = 1, *, starts: bool = False
    ) -> str:
        """See the contract. number: of the template."""
        template = seed.identifier(f"template {number}")
        body = _VM.format(escape(name), escape(description), CLUSTER, template)
        key = self.stage.ok("POST", "vms?clone=true", body).attrib["id"]
        self.sleep(10.0)
        if starts:
            self.stage.ok("POST", f"vms/{key}/nics", _NIC)
            self.stage.ok("POST", f"vms/{key}/start", "<action/>")
            self.sleep(20.0)
        return key

    def tag(self, vm: str, name: str = f"cluster-{UUID}") -> None:
        """Assign a tag to a VM, as the reference does."""
        self.stage.reply("POST", "tags", f"<tag><name>{name}</name></tag>")
        self.stage.ok("POST", f"vms/{vm}/tags", f"<tag><name>{name}</name></tag>")

    def exists(self, id_: str) -> bool:
        """See the contract."""
        records = self.stage.engine.records
        return any(records.get(kind, id_) is not None for kind in ("vm", "disk"))

    def disk(self, alias: str, description: str = "") -> str:
        """Create a disk of others; return its ID."""
        body = _DISK.format(escape(alias), escape(description))
        key = self.stage.ok("POST", "disks", body).attrib["id"]
        self.sleep(5.0)
        return key

    def attach_disk(self, name: str, *, bootable: bool = False) -> str:
        """See the contract."""
        disk = self.disk(f"pvc-{name}", f"mooring.io/cluster={UUID}")
        self.attach(name, disk, bootable=bootable)
        return disk

    def attach(self, name: str, disk: str, *, bootable: bool = False) -> None:
        """Attach a disk to a VM."""
        path = f"vms/{self.vm(name).key}/diskattachments"
        body = _ATTACHMENT.format(str(bootable).lower(), disk)
        self.stage.ok("POST", path, body)

    def passed_on(self, name: str) -> bytes:
        """See the contract."""
        return str(self.vm(name).entity.initialization.custom_script).encode()
