"""Objects of Cluster API in a fake API server, for the daemon of a provider."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from lib.capi import controllers
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.machines import kinds
from lib.machines.clusters.model import ClusterKinds
from lib.machines.templates.model import NodeShape, TemplateKinds
from lib.reconcile import queue

SPACE = "machines"
GROUP = "infrastructure.cluster.x-k8s.io"
MACHINE = kinds.Kinds(
    resources.Resource(GROUP, "v1", "fakemachines", "FakeMachine", True),
    f"fakemachine.{GROUP}",
    "VirtualMachineReady",
    "fake-capi",
)
CLUSTER = ClusterKinds(
    resources.Resource(GROUP, "v1", "fakeclusters", "FakeCluster", True),
    f"fakecluster.{GROUP}",
    "fake-capi",
)
TEMPLATE = TemplateKinds(
    resources.Resource(GROUP, "v1", "fakemachinetemplates", "FakeTemplate", True),
    "fake-capi",
    lambda spec: NodeShape(str(spec["cores"]), "8Gi") if "cores" in spec else None,
)
Json = dict[str, Any]


class Objects:
    """What the core of Cluster API creates."""

    machine = MACHINE
    cluster = CLUSTER
    template = TEMPLATE

    def __init__(self, api: fake_api.FakeApi) -> None:
        self.api = api
        owner = self._put(
            MACHINE.clusters,
            "one",
            status={"initialization": {"infrastructureProvisioned": True}},
        )
        self._put(CLUSTER.cluster, "infra", owner=("Cluster", "one", owner))
        self._put(TEMPLATE.template, "small", spec={"template": {"spec": {"cores": 2}}})

    def _put(
        self,
        kind: resources.Resource,
        name: str,
        owner: tuple[str, str, Json] | None = None,
        **parts: Any,
    ) -> Json:
        metadata: Json = {
            "name": name,
            "namespace": SPACE,
            "labels": {kinds.CLUSTER_NAME: "one"},
        }
        if owner is not None:
            of, owner_name, document = owner
            reference = {
                "apiVersion": MACHINE.owners.api_version,
                "kind": of,
                "name": owner_name,
                "uid": document["metadata"]["uid"],
            }
            metadata["ownerReferences"] = [reference]
        return dict(self.api.put(kind, {"metadata": metadata, **parts}))

    def create(self, name: str) -> None:
        """Create a machine with its bootstrap Secret."""
        data = {"value": base64.b64encode(b"#cloud-config").decode()}
        self._put(resources.SECRETS, f"{name}-data", data=data)
        spec = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": f"{name}-data"},
            "infrastructureRef": {"name": name},
        }
        owner = self._put(MACHINE.owners, name, spec=spec)
        self._put(
            MACHINE.machine,
            name,
            owner=("Machine", name, owner),
            spec={"cores": 2, "disk": 20},
        )

    def delete(self, kind: resources.Resource, name: str) -> None:
        self.api.remove(kind, name, SPACE)

    def get(self, kind: resources.Resource, name: str) -> Json | None:
        for document in self.api.all(kind):
            typed: Json = dict(document)
            if typed["metadata"]["name"] == name:
                return typed
        return None

    def ready(self, kind: resources.Resource, name: str) -> str:
        """Status of the condition Ready."""
        status = (self.get(kind, name) or {}).get("status", {})
        rows = {row["type"]: row["status"] for row in status.get("conditions", ())}
        return str(rows.get("Ready", ""))


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what controllers wait for others, and between two checks of a stop."""
    monkeypatch.setattr(controllers, "BATCH_S", 0.02)
    monkeypatch.setattr(controllers, "TURN_S", 0.05)
    monkeypatch.setattr(queue, "STOP_POLL_S", 0.02)


@pytest.fixture()
def make_objects() -> Callable[[fake_api.FakeApi], Objects]:
    return Objects
