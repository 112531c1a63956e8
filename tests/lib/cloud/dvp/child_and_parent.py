"""A child and its parent in memory, for processes of the Nodes flow."""

import collections
import threading
from typing import Any

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import cloud
from lib.kube.fake import api as fake_api
from tests.harness.dvp import parent_api
from tests.harness.nodes import walk

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES.resource
ZONE = "topology.kubernetes.io/zone"


class Ground:
    """Implements `walk.WalkGround`: a child and its parent."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(lambda: walk.NOW)
        self.parent = parent_api.ParentApi(lambda: walk.NOW)
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.die_at: int | None = None
        self.died_in = ""
        for api in (self.api, self.parent):
            api.before_call = self._at_call
            api.after_call = self._at_call
        self._opened: list[parent.Parent] = []

    def _at_call(self, call: object) -> None:
        del call
        if threading.current_thread() is not threading.main_thread():
            return  # of a watch, which only reads
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise walk.Death

    def open(self) -> cloud.ParentInstances:
        """Open the cloud; the access of the process before ends with it."""
        for access in self._opened:
            access.close()
        access = parent.Parent(self.parent, NAMESPACE, UUID, clock=lambda: self.now_s)
        self._opened = [access]
        access.items(kinds.VIRTUAL_MACHINES)
        return cloud.ParentInstances(access)

    def end(self) -> None:
        for access in self._opened:
            access.close()
        self.parent.break_watches()

    def state(self) -> Any:
        return walk.state(self.api)

    def vm(self, name: str, cluster: str = UUID, **status: object) -> None:
        labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: name}
        self.parent.put(
            VMS,
            {
                "metadata": {
                    "name": f"vm-{name}" if cluster == UUID else f"other-{name}",
                    "namespace": NAMESPACE,
                    "labels": labels,
                },
                "spec": parent_api.vm_spec(nodeSelector={ZONE: "zone-1"}),
                "status": {"phase": "Running", "ipAddress": "10.0.0.1", **status},
            },
        )

    def node(
        self,
        name: str,
        *taints: dict[str, str],
        ready: str = "True",
        provider_id: str = "",
    ) -> None:
        named = provider_id or f"dvp://vm-{name}"
        walk.put_node(self.api, name, taints, ready, named)
