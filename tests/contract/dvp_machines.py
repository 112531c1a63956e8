"""The parent of DVP as the contract of machines needs it: in memory, or real."""

import base64
import copy
import dataclasses
import datetime
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.machines import machine_names
from lib.cloud.dvp.machines.cloud import DvpMachines
from lib.cloud.machines import Facts, ReadBootstrap
from lib.kube import client, errors
from lib.kube.fake import calls
from lib.kube.fake import documents as fake_documents
from lib.kube.resources import Resource
from lib.lab.run import waiting
from lib.process import clock
from tests.contract import machines as contract
from tests.harness.dvp import parent_api

NAMESPACE = "project"
UUID = "4e02b5ba-0f0e-4ac9-9e0f-c3c3f6d6b0c1"
CLASS, IMAGE, STORAGE = "generic", "base", "replicated"
IMAGE_BYTES = 2**26
SPEC: dict[str, Any] = {
    "vmClassName": CLASS,
    "cpu": {"cores": 2, "cpuFraction": "50%"},
    "memory": "2Gi",
    "rootDiskSize": "64Mi",
    "rootDiskStorageClass": STORAGE,
    "additionalDisks": [{"size": "32Mi", "storageClass": STORAGE}],
    "bootDiskImageRef": {"kind": "ClusterVirtualImage", "name": IMAGE},
}
VMS = kinds.VIRTUAL_MACHINES.resource
DISKS = kinds.VIRTUAL_DISKS.resource
SECRETS = kinds.SECRETS.resource
ATTACHMENTS = kinds.DISK_ATTACHMENTS.resource
CLEANUP = {
    VMS.plural: "virtualization.deckhouse.io/vm-cleanup",
    DISKS.plural: "virtualization.deckhouse.io/vd-cleanup",
    ATTACHMENTS.plural: "virtualization.deckhouse.io/vmbda-cleanup",
}
Json = dict[str, Any]
_OFFERED: Mapping[Resource, Json] = {
    kinds.MACHINE_CLASSES.resource: {"cpu": {"type": "Host"}},
    kinds.CLUSTER_IMAGES.resource: {
        "dataSource": {"type": "HTTP", "http": {"url": "https://images.invalid/x"}}
    },
    kinds.STORAGE_CLASSES.resource: {},
}
"""Specs of what a parent offers."""


class MachineParent(parent_api.ParentApi):
    """A parent in memory: `turn` does what its controllers do.

    moves: whether each write is followed by a turn. starts: whether VMs start. hook:
    called after each call.
    """

    def __init__(self, now: Callable[[], datetime.datetime] = clock.utc_now) -> None:
        super().__init__(now)
        self.moves = True
        self.starts = True
        self.hook: Callable[[calls.Call], None] | None = None
        self._numbers = itertools.count(1)
        self._turning = threading.Lock()
        self._settled: tuple[int, bool] | None = None
        self.after_call = self._after
        self.offer(kinds.MACHINE_CLASSES.resource, CLASS, phase="Ready")
        size = {"unpackedBytes": str(IMAGE_BYTES)}
        image = kinds.CLUSTER_IMAGES.resource
        self.offer(image, IMAGE, phase="Ready", size=size)
        self.offer(kinds.STORAGE_CLASSES.resource, STORAGE)

    def offer(self, kind: Resource, name: str, **status: Any) -> None:
        """Put a class, an image or a storage class."""
        about = {"name": name} | ({"namespace": NAMESPACE} if kind.namespaced else {})
        self.put(kind, {"metadata": about, "spec": _OFFERED[kind], "status": status})

    def _after(self, call: calls.Call) -> None:
        if self.moves and call.is_write:
            self.turn(collects=False)
        if self.hook is not None:
            self.hook(call)

    def each(self, kind: Resource) -> list[Json]:
        """Return copies of all objects of a kind."""
        documents: list[Json] = msgspec.json.decode(msgspec.json.encode(self.all(kind)))
        return documents

    def _stored(self, kind: Resource) -> tuple[Json, ...]:
        """Return all objects of a kind as they are kept, to be read only."""
        return self.all(kind)

    def get(self, kind: Resource, name: str) -> Json | None:
        """Return an object of the project."""
        rows = (row for row in self._stored(kind) if row["metadata"]["name"] == name)
        return copy.deepcopy(next(rows, None))

    def turn(self, *, collects: bool = True) -> None:
        """Move all objects until none moves any more. collects: garbage, too."""
        with self._turning:
            if self._settled == (self.version, self.starts):
                return
            while (collects and self._collect_garbage()) or self._move_all():
                pass
            if collects:
                self._settled = (self.version, self.starts)

    def _move_all(self) -> bool:
        moved = [
            self._move(kind, stored)
            for kind in (VMS, DISKS, ATTACHMENTS)
            for stored in self.all(kind)
        ]
        return any(moved)

    def _move(self, kind: Resource, stored: fake_documents.Json) -> bool:
        """Move an object; report whether it was changed."""
        document: Json = msgspec.json.decode(msgspec.json.encode(stored))
        about = document["metadata"]
        users: list[str] = []
        if kind == DISKS:
            users = self._users(about["name"])
            self._use(document, users)
        if about.get("deletionTimestamp"):
            if not users:
                about["finalizers"] = []
        else:
            about["finalizers"] = [CLEANUP[kind.plural]]
            status = document.setdefault("status", {})
            if kind == VMS:
                self._vm(document, status)
            elif users:
                claim = document["spec"]["persistentVolumeClaim"]
                ready = {"phase": "Ready", "capacity": claim["size"]}
                status.setdefault("phase", "Ready")
                status.update({k: v for k, v in ready.items() if k not in status})
        is_changed = document != stored
        if is_changed:
            self.put(kind, document)
        return is_changed

    def _users(self, disk: str) -> list[str]:
        """Return the names of the VMs that hold a disk."""
        return [
            vm["metadata"]["name"]
            for vm in self._stored(VMS)
            if disk in {ref["name"] for ref in self._refs(vm)}
        ]

    @staticmethod
    def _use(disk: Json, users: list[str]) -> None:
        """Show which VMs hold a disk."""
        status = disk.setdefault("status", {})
        if users or "attachedToVirtualMachines" in status:
            rows = [{"name": name, "mounted": True} for name in users]
            status["attachedToVirtualMachines"] = rows

    def _vm(self, vm: Json, status: Json) -> None:
        phase = status.setdefault("phase", "Pending")
        if phase == "Pending" and self.starts and self._is_complete(vm):
            policy = vm["spec"].get("runPolicy")
            status["phase"] = "Running"
            if policy in ("AlwaysOff", "Manual"):
                status["phase"] = "Stopped"
                return
            status.setdefault("ipAddress", f"10.66.0.{next(self._numbers) % 250 + 1}")
            status["nodeName"] = "hypervisor-1"
        if status["phase"] not in ("Running", "Stopped"):
            return
        held = {"size": "1Gi", "attached": True}
        static = [
            {"kind": r["kind"], "name": r["name"], **held} for r in self._refs(vm)
        ]
        plugged = [
            {**row["spec"]["blockDeviceRef"], "hotplugged": True, **held}
            for row in self._stored(ATTACHMENTS)
            if row["spec"]["virtualMachineName"] == vm["metadata"]["name"]
        ]
        status["blockDeviceRefs"] = [*static, *plugged]

    @staticmethod
    def _refs(vm: Json) -> list[Json]:
        return list(vm["spec"].get("blockDeviceRefs", ()))

    def _is_complete(self, vm: Json) -> bool:
        spec = vm["spec"]
        disks = {row["metadata"]["name"] for row in self._stored(DISKS)}
        name = spec.get("provisioning", {}).get("userDataRef", {}).get("name")
        secret = self.get(SECRETS, name) if name else None
        is_secret = not name or (
            secret is not None
            and secret.get("type") == machine_names.SECRET_TYPE
            and machine_names.SECRET_KEY in secret.get("data", {})
        )
        return is_secret and {ref["name"] for ref in self._refs(vm)} <= disks

    def _collect_garbage(self) -> bool:
        """Delete what names a VM as its owner that does not exist."""
        is_changed = False
        uids = {row["metadata"]["uid"] for row in self._stored(VMS)}
        for kind in (DISKS, SECRETS, ATTACHMENTS):
            for document in self._stored(kind):
                about = document["metadata"]
                owners = about.get("ownerReferences", ())
                if about.get("deletionTimestamp") or not owners:
                    continue
                if not any(owner["uid"] in uids for owner in owners):
                    self.remove(kind, about["name"], NAMESPACE)
                    is_changed = True
        return is_changed

    def request(self, method: str, path: str, **more: Any) -> bytes:
        """Refuse as admission does: names over 63 characters, policies, devices."""
        if method == "POST" and path.endswith(VMS.plural):
            self._admit(msgspec.json.decode(more["body"]))
        return super().request(method, path, **more)

    def _admit(self, vm: Json) -> None:
        name, policy = vm["metadata"]["name"], vm["spec"].get("liveMigrationPolicy")
        problem = "name" if len(name) > 63 else ""
        problem = "policy" if policy in ("Manual", "Never") else problem
        if problem:
            raise errors.Invalid(problem, operation="create", status=422)

    def add_vm(self, name: str, labels: Json, **spec: Any) -> str:
        """Create a VM of another client, which runs; return its UID."""
        about = {"name": name, "namespace": NAMESPACE, "labels": labels}
        self.put(VMS, {"metadata": about, "spec": parent_api.vm_spec(**spec)})
        self.turn()
        vm = self.get(VMS, name)
        if vm is None:
            raise TypeError(f"{name} does not exist")
        return str(vm["metadata"]["uid"])


@dataclasses.dataclass
class ParentMachines:
    """Implements `tests.contract.machines.Ground`, on any API of a parent.

    api: of the parent, with the rights of the project's user. pause: waits for the
    parent. spec: of each machine.
    """

    api: client.Api
    pause: Callable[[float], None]
    namespace: str = NAMESPACE
    cluster_id: str = UUID
    spec: Json = dataclasses.field(default_factory=lambda: dict(SPEC))
    read_bootstrap: ReadBootstrap = contract.read_bootstrap

    starts_again = False

    def __post_init__(self) -> None:
        self.access: parent.Parent | None = None
        self.restart()

    def restart(self) -> None:
        """See the contract."""
        self.close()
        self.access = parent.Parent(self.api, self.namespace, self.cluster_id)
        self.machines = DvpMachines(self.access, self.read_bootstrap)
        self.reported: list[str] = []
        self.machines.subscribe(self.reported.append)

    def close(self) -> None:
        """End the watches."""
        if self.access is not None:
            self.access.close()

    def sleep(self, seconds: float) -> None:
        """See the contract."""
        self.pause(seconds)

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
        )

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        spec = {**facts.spec, "liveMigrationPolicy": "Never"}
        return dataclasses.replace(facts, spec=spec), "spec.liveMigrationPolicy"

    def changed(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        spec = {**facts.spec, "memory": "4Gi"}
        return dataclasses.replace(facts, spec=spec), "spec.memory"

    # The parent, as other clients see and change it.

    def read(self, kind: Resource, name: str) -> Json | None:
        """Return an object of the project."""
        try:
            body = self.api.read(kind, name, self.namespace, timeout_s=30)
        except errors.NotFound:
            return None
        document: Json = msgspec.json.decode(body)
        return document

    def until(self, what: str, is_true: Callable[[], bool]) -> None:
        """Wait until something holds in the parent and in the watches."""

        def checked() -> bool:
            self.pause(0.0)
            return is_true()

        waiting.until(what, checked)

    def _shown(self, name: str) -> kinds.VirtualMachine | None:
        access = self.access
        if access is None:
            raise TypeError("the ground is closed")
        kind = kinds.VIRTUAL_MACHINES
        return access.items(kind).get(access.key(kind, name))

    def delete(self, name: str) -> None:
        """See the contract."""
        self.api.delete(VMS, name, self.namespace, timeout_s=30)
        self.until(
            f"the deletion of {name}",
            lambda: self.read(VMS, name) is None and self._shown(name) is None,
        )

    def stop(self, name: str) -> None:
        """See the contract; in memory a VM stops when its status says so."""
        self.set_phase(name, "Stopped")

    def set_phase(self, name: str, phase: str) -> None:
        """Have the parent show a phase of a VM."""
        body = msgspec.json.encode({"status": {"phase": phase}})
        self.api.patch(
            VMS,
            name,
            body,
            self.namespace,
            subresource="status",
            timeout_s=30,
        )
        self.wait_phase(name, phase)

    def wait_phase(self, name: str, phase: str) -> None:
        """Wait until the watch shows a phase of a VM."""

        def is_shown() -> bool:
            vm = self._shown(name)
            return vm is not None and vm.status.phase == phase

        self.until(f"{name} is {phase}", is_shown)

    def occupy(self, name: str) -> str:
        """See the contract: another machine of this cluster has the name."""
        labels = {
            **ownership.labels_of(self.cluster_id, "another-uid"),
            ownership.HOSTNAME: name,
        }
        body = {
            "apiVersion": VMS.api_version,
            "kind": VMS.kind,
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "virtualMachineClassName": CLASS,
                "cpu": {"cores": 1},
                "memory": {"size": "1Gi"},
                "blockDeviceRefs": [{"kind": "VirtualDisk", "name": f"{name}-other"}],
            },
        }
        created = self.api.create(
            VMS, msgspec.json.encode(body), self.namespace, timeout_s=30
        )
        self.until(f"{name} is shown", lambda: self._shown(name) is not None)
        document: Json = msgspec.json.decode(created)
        return str(document["metadata"]["uid"])

    def exists(self, id_: str) -> bool:
        """See the contract."""
        return any(
            row["metadata"]["uid"] == id_
            for kind in (VMS, DISKS)
            for row in self.list(kind)
        )

    def list(self, kind: Resource) -> Iterator[Json]:
        """Yield all objects of a kind in the project."""
        body = self.api.list_page(kind, self.namespace, query={}, timeout_s=30)
        document: Json = msgspec.json.decode(body)
        yield from document["items"]

    def attach_disk(self, name: str) -> str:
        """See the contract, with the labels of csi-controller."""
        disk = f"pvc-of-{name}"
        labels = {**ownership.labels_of(self.cluster_id), ownership.HOSTNAME: ""}
        claim = {"persistentVolumeClaim": {"storageClassName": STORAGE, "size": "1Mi"}}
        created = self._create(DISKS, disk, {**labels, "virtualDiskName": disk}, claim)
        labels = {**labels, ownership.HOSTNAME: name}
        spec = {
            "virtualMachineName": name,
            "blockDeviceRef": {"kind": "VirtualDisk", "name": disk},
        }
        attachment = f"vmbda-{disk}-{name}"
        self._create(ATTACHMENTS, attachment, labels, spec)
        access, kind = self.access, kinds.DISK_ATTACHMENTS
        if access is None:
            raise TypeError("the ground is closed")
        key = access.key(kind, attachment)

        def is_attached() -> bool:
            listed = key in access.items(kind)
            vm = self._shown(name)
            rows = vm.status.block_device_refs or () if vm is not None else ()
            return listed and any(row.name == disk for row in rows)

        self.until(f"{disk} is attached", is_attached)
        return str(created["metadata"]["uid"])

    def _create(self, kind: Resource, name: str, labels: Json, spec: Json) -> Json:
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }
        created = self.api.create(
            kind, msgspec.json.encode(body), self.namespace, timeout_s=30
        )
        document: Json = msgspec.json.decode(created)
        return document

    def passed_on(self, name: str) -> bytes:
        """See the contract."""
        secret = self.read(SECRETS, machine_names.secret(name)) or {}
        return base64.b64decode(secret["data"][machine_names.SECRET_KEY])


def in_memory(fake: MachineParent, **more: Any) -> ParentMachines:
    """Return a ground on a parent in memory."""

    def pause(seconds: float) -> None:
        fake.turn()
        threading.Event().wait(min(seconds, 0.01))

    return ParentMachines(fake, pause, **more)
