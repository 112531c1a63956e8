"""The machines flow with DVP's provider, on a parent and a cluster in memory.

The stores of the parent are listed whenever they are read, so that a test does not
depend on when a watch delivers; the contract suite has real watches.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.machines.cloud import DvpMachines
from lib.kube import store as stores
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.machines import bootstrap
from lib.machines.model import Topic
from tests.contract import dvp_machines
from tests.contract.dvp_machines import ATTACHMENTS, DISKS, SECRETS, SPEC, VMS
from tests.lib.machines import conftest as cluster

UUID = "cluster-1"
PARTS = (VMS, DISKS, SECRETS, ATTACHMENTS)
Json = dict[str, Any]
Death = cluster.Death


class ListedStore(stores.Store[Any]):
    """A store that is listed again as long as it lacks our own writes.

    listed: version of the parent when it was listed last.
    """

    listed = 0

    def is_current(self, key: str) -> bool:
        if not super().is_current(key):
            self.relist()
        return super().is_current(key)


class ListedParent(parent.Parent):
    """A parent whose stores are listed instead of watched."""

    def __init__(
        self,
        api: fake_api.FakeApi,
        uuid: str = UUID,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(api, dvp_machines.NAMESPACE, uuid, clock=clock)
        self._memory = api
        self.opened: list[ListedStore] = []

    def _begin(self, kind: kinds.ParentKind[Any]) -> stores.Store[Any]:
        selector = ownership.selector(self.cluster_uuid) if kind.is_of_cluster else ""
        begun = ListedStore(
            self.api,
            kind.resource,
            kind.decode_type,
            namespace=self._namespace(kind),
            label_selector=selector,
        )
        begun.relist()
        self.opened.append(begun)
        return begun

    def relist(self) -> None:
        """List again what may have changed."""
        version = self._memory.version
        for opened in tuple(self.opened):
            if opened.listed != version:
                opened.relist()
                opened.listed = version


class Stage(cluster.Ground):
    """A management cluster and a parent, which outlive the processes.

    killed_at: the call at which a process was killed.
    """

    cloud: Any

    def __init__(self) -> None:
        super().__init__()
        self.parent = dvp_machines.MachineParent(self.now)
        self.killed_at = ""
        self._main = threading.current_thread()
        self.api.before_call = lambda call: self._note("before", call)
        self.api.after_call = lambda call: self._note("after", call)
        self.parent.before_call = lambda call: self._note("before", call)
        self.parent.hook = lambda call: self._note("after", call)

    def _note(self, when: str, call: calls.Call) -> None:
        try:
            self._at_call(call)
        except Death:
            self.killed_at = f"{when} {call.verb} {call.resource}"
            raise

    def machine(self, name: str, secret: str | None = "", **spec: Any) -> Json:
        return super().machine(name, secret, **{**SPEC, **spec})

    def open(self) -> None:
        """Open the parent, as a new process does."""
        self.access = ListedParent(self.parent, clock=lambda: self.now_s)
        self.cloud = DvpMachines(self.access, bootstrap.Reader(self.api))

    def state(self) -> Json:
        """What users see of both clusters: no UIDs, no times, no addresses."""
        documents: list[Any] = list(self.api.all(cluster.MACHINE))
        uids = {row["metadata"]["uid"]: row["metadata"]["name"] for row in documents}
        parts = {
            f"{kind.kind} {row['metadata']['name']}": (
                uids.get(row["metadata"]["labels"].get(ownership.OWNER_UID, "")),
                row.get("status", {}).get("phase"),
                bool(row["metadata"].get("deletionTimestamp")),
            )
            for kind in PARTS
            for row in self.parent.each(kind)
        }
        return {"machines": self._shown(), "parent": parts}

    def _shown(self) -> Json:
        shown: Json = {}
        for document in self.api.all(cluster.MACHINE):
            typed: Json = dict(document)
            name, status = typed["metadata"]["name"], typed.get("status", {})
            shown[name] = {
                "finalizers": typed["metadata"].get("finalizers"),
                "ID": typed["spec"].get("providerID"),
                "provisioned": status.get("initialization", {}).get("provisioned"),
                "ready": status.get("ready"),
                "addresses": len(status.get("addresses", ())),
                "failure": status.get("failureReason"),
                "conditions": self.conditions(name),
            }
        return shown

    def requests(self) -> list[str]:
        """Return the calls to the parent but lists: a watch replaces those."""
        rows = self.parent.calls
        return [f"{c.verb} {c.resource}" for c in rows if c.verb != "list"]

    def attach(self, name: str, disk: str = "", host: str = "") -> str:
        """Attach a volume to a VM, as csi-controller does; return its name.

        host: name of the VM's Node, if that differs.
        """
        disk = disk or f"pvc-of-{name}"
        labels = {**ownership.labels_of(UUID), ownership.HOSTNAME: ""}
        about = {"namespace": dvp_machines.NAMESPACE, "labels": labels}
        claim = {"persistentVolumeClaim": {"size": "1Mi"}}
        self.parent.put(DISKS, {"metadata": {**about, "name": disk}, "spec": claim})
        device = {"kind": "VirtualDisk", "name": disk}
        spec = {"virtualMachineName": name, "blockDeviceRef": device}
        host = host or name
        names = {ownership.HOSTNAME: host, ownership.ATTACHED_VM: host}
        labels = {**labels, **names}
        about = {**about, "name": f"vmbda-{disk}", "labels": labels}
        self.parent.put(ATTACHMENTS, {"metadata": about, "spec": spec})
        self.parent.turn()
        return disk


class Life(cluster.Process):
    """One process of the provider, which receives changes in the parent."""

    ground: Stage

    def __init__(self, stage: Stage) -> None:
        stage.is_starting = True
        stage.open()
        super().__init__(stage)
        self.access = stage.access
        stage.cloud.subscribe(self._report)

    def _report(self, uid: str) -> None:
        for key, machine in self.stores.machines.items().items():
            if machine.metadata.uid == uid:
                self.queue.add(key, Topic.DRIFT)

    def relist(self) -> None:
        super().relist()
        self.ground.parent.turn()
        if hasattr(self, "access"):
            self.access.relist()


def live(stage: Stage, lives: int = 20, quiet_s: float = 30.0) -> None:
    """Run processes, each until it is killed, until one settles."""
    for _ in range(lives):
        try:
            Life(stage).settle(quiet_s)
        except Death:
            continue
        return
    raise AssertionError("the flow does not settle")
