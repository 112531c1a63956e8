"""A parent in memory whose disks and attachments move one phase at each step."""

import contextlib
import copy
import threading
import time
from collections.abc import Iterator
from typing import Any

from lib.cloud.dvp import kinds, ownership, parent, quantity_bytes
from lib.cloud.dvp.volumes import cloud, disk_names
from lib.cloud.model import InstanceId
from lib.volumes import callers, flow, model
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
UUID = "uuid-a"
CLASS = "fast"
NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")
DISKS = kinds.VIRTUAL_DISKS.resource
ATTACHMENTS = kinds.DISK_ATTACHMENTS.resource
MACHINES = kinds.VIRTUAL_MACHINES.resource
STEP_S = 0.02
FASTER = 10.0
Json = dict[str, Any]


def machine(name: str, host: str = "", cluster: str = UUID, **spec: object) -> Json:
    labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: host or name}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": parent_api.vm_spec(f"{name}-boot", **spec),
        "status": {"phase": "Running"},
    }


def device(name: str) -> Json:
    return {"kind": "VirtualDisk", "name": name}


def disk(name: str, **changes: Any) -> Json:
    """Return a ready disk as the reference leaves it."""
    labels = {
        ownership.MANAGED_BY: "deckhouse",
        ownership.CLUSTER: changes.pop("cluster", UUID),
        ownership.HOSTNAME: changes.pop("host", ""),
        disk_names.DISK_LABEL: name,
    }
    status = {"phase": "Ready", "capacity": "1Gi", "storageClassName": CLASS}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "persistentVolumeClaim": {
                "storageClassName": CLASS,
                "size": changes.pop("size", "1Gi"),
            }
        },
        "status": {**status, **changes},
    }


def attachment(disk_name: str, host: str, phase: str = "Attached", **more: Any) -> Json:
    """Return an attachment as the reference leaves it."""
    labels = {
        ownership.MANAGED_BY: "deckhouse",
        ownership.CLUSTER: UUID,
        ownership.HOSTNAME: host,
        disk_names.ATTACHED_DISK_LABEL: disk_name,
        disk_names.ATTACHED_VM_LABEL: host,
    }
    return {
        "metadata": {
            "name": f"vmbda-{disk_name}-{host}",
            "namespace": NAMESPACE,
            "labels": labels,
            "finalizers": ["virtualization.deckhouse.io/vmbda-cleanup"],
        },
        "spec": {
            "virtualMachineName": more.pop("vm", host),
            "blockDeviceRef": device(disk_name),
        },
        "status": {"phase": phase, **more},
    }


def condition(kind: str, reason: str, message: str) -> Json:
    """Return a condition that is False. kind: its type."""
    return {
        "type": kind,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


class ParentInMemory:
    """The parent's API and what moves its objects.

    failing: message of the terminal failure of every new disk; empty: none. refusing:
    attachments fail.
    """

    def __init__(self) -> None:
        self.api = parent_api.ParentApi()
        self.failing: dict[str, str] = {}
        self.refusing = False
        self.is_growing = True
        for name in ("fast", "slow"):
            about: Json = {
                "metadata": {"name": name},
                "provisioner": "lab.invalid/parent",
            }
            self.api.put(kinds.STORAGE_CLASSES.resource, about)
        for name in (NODE, OTHER):
            self.api.put(MACHINES, machine(name))

    def put(self, *documents: Json) -> None:
        """Add disks and attachments, by the fields of their spec."""
        for document in documents:
            is_disk = "persistentVolumeClaim" in document["spec"]
            self.api.put(DISKS if is_disk else ATTACHMENTS, document)

    def put_impossible(self, *documents: Json) -> None:
        """Add disks and attachments that their definitions do not admit."""
        for document in documents:
            is_disk = "persistentVolumeClaim" in document["spec"]
            self.api.put_impossible(DISKS if is_disk else ATTACHMENTS, document)

    def all(self, kind: Any) -> list[Json]:
        return [copy.deepcopy(dict(document)) for document in self.api.all(kind)]

    def step(self) -> None:
        """Move each object one phase."""
        for document in self.all(ATTACHMENTS):
            self._attachment(document)
        for document in self.all(DISKS):
            self._disk(document)

    def _attachment(self, document: Json) -> None:
        metadata, status = document["metadata"], document.setdefault("status", {})
        if metadata.get("deletionTimestamp"):
            metadata["finalizers"] = []
        elif not metadata.get("finalizers"):
            metadata["finalizers"] = ["virtualization.deckhouse.io/vmbda-cleanup"]
        elif status.get("phase") in (None, "Pending"):
            status["phase"] = "Failed" if self.refusing else "InProgress"
            refused = condition("Attached", "Conflict", "no")
            status["conditions"] = [refused] * self.refusing
        elif status["phase"] == "InProgress":
            status["phase"] = "Attached"
        else:
            return
        self.api.put(ATTACHMENTS, document)

    def _disk(self, document: Json) -> None:
        metadata, status = document["metadata"], document.setdefault("status", {})
        before = repr(document)
        claim = document["spec"]["persistentVolumeClaim"]
        size = quantity_bytes.size_bytes(claim.get("size"))
        if not size:
            return
        holders = [
            {"name": item["spec"]["virtualMachineName"], "mounted": True}
            for item in self.all(ATTACHMENTS)
            if item["spec"].get("blockDeviceRef") == device(metadata["name"])
            and item.get("status", {}).get("phase") == "Attached"
        ]
        if metadata.get("deletionTimestamp"):
            metadata["finalizers"] = []
        elif status.get("phase") in (None, "Pending"):
            self._provision(claim, status)
        elif status["phase"] == "Ready" and self.is_growing:
            if size > quantity_bytes.size_bytes(status["capacity"]):
                status["phase"] = "Resizing"
        elif status["phase"] == "Resizing":
            status.update(phase="Ready", capacity=str(size))
        status["attachedToVirtualMachines"] = holders
        if repr(document) != before:
            self.api.put(DISKS, document)

    def _provision(self, claim: Json, status: Json) -> None:
        if self.failing:
            ready = {**condition("Ready", "", ""), **self.failing}
            status.update(phase="Pending", conditions=[ready])
        elif "phase" not in status:
            status["phase"] = "Pending"
        else:
            status.update(
                phase="Ready",
                capacity=claim["size"],
                storageClassName=claim["storageClassName"],
            )

    @contextlib.contextmanager
    def moving(self) -> Iterator[None]:
        """Step all the time."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(STEP_S):
                self.step()

        thread = threading.Thread(target=run, name="simulator")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextlib.contextmanager
def opened(world: ParentInMemory, cluster: str = UUID) -> Iterator[cloud.DvpVolumes]:
    """Open the volumes of a cluster, as a process that was started just now."""
    access = parent.Parent(world.api, NAMESPACE, cluster)
    try:
        yield cloud.DvpVolumes(access)
    finally:
        access.close()
        world.api.break_watches()


class Pauses:
    """The time of one call: it passes in pauses alone, and FASTER times as fast.

    Its work takes none of it: a busy machine uses up no patience.
    """

    def __init__(self) -> None:
        self.now_s = 1000.0

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        began = time.monotonic()
        condition.wait(seconds / FASTER)
        self.now_s += min(seconds, FASTER * (time.monotonic() - began))


def settle(
    volumes: cloud.DvpVolumes, request: model.Request, patience_s: float = 300.0
) -> Any:
    """Settle a request as csi-controller does, which was started long ago."""
    pauses = Pauses()
    effects = callers.CallEffects(lambda: pauses.now_s, pauses.wait)
    process = flow.VolumesFlow(lambda: volumes, effects, started=float("-inf"))
    return process.settle(request, callers.Caller(pauses.now_s + patience_s))
