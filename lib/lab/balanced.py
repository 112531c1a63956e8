"""Services of type LoadBalancer, and the Nodes behind them, in the lab's cluster."""

import dataclasses
import datetime
import json
from collections.abc import Mapping, Sequence

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import hollow, kube_objects
from lib.lab.kube_objects import Json

NAMESPACE = "default"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"
SHARED = "loadbalancer.openstack.org/load-balancer-id"
_OCTAVIA = "loadbalancer.openstack.org/"


@dataclasses.dataclass(frozen=True, slots=True)
class Port:
    """One port of a Service; it is named after its number and protocol."""

    number: int
    protocol: str = "TCP"

    def body(self) -> Json:
        """Give it as the API server takes it."""
        name = f"{self.protocol.lower()}-{self.number}"
        return {"name": name, "port": self.number, "protocol": self.protocol}


def octavia(**annotations: str) -> Mapping[str, str]:
    """Give annotations of the reference by their last words: enable_health_monitor."""
    return {
        _OCTAVIA + word.replace("_", "-"): value for word, value in annotations.items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Services:
    """What a user of the cluster does and sees."""

    api: client.Api

    @property
    def _objects(self) -> kube_objects.Objects:
        return kube_objects.Objects(self.api, NAMESPACE)

    def make(
        self,
        name: str,
        ports: Sequence[Port],
        annotations: Mapping[str, str] | None = None,
        **spec: object,
    ) -> str:
        """Create a Service; give its uid. spec: more of its fields."""
        whole = {
            "type": "LoadBalancer",
            "selector": {"app": name},
            "ports": [port.body() for port in ports],
            **spec,
        }
        meta = {"annotations": dict(annotations or {})}
        made = self._objects.make(resources.SERVICES, name, meta, spec=whole)
        return str(made["metadata"]["uid"])

    def get(self, name: str) -> Json | None:
        """Give a Service; None when there is none."""
        return self._objects.get(resources.SERVICES, name)

    def all(self) -> Mapping[str, Json]:
        """Give all that want a load balancer, or keep one until it is gone, by name."""
        return {
            one["metadata"]["name"]: one
            for one in self._objects.all(resources.SERVICES)
            if one["spec"]["type"] == "LoadBalancer"
            or FINALIZER in one["metadata"].get("finalizers", [])
        }

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None removes one."""
        meta = {"annotations": dict(annotations)}
        self._objects.patch(resources.SERVICES, name, metadata=meta)

    def set_ports(self, name: str, ports: Sequence[Port]) -> None:
        """Give a Service other ports."""
        spec = {"ports": [port.body() for port in ports]}
        self._objects.patch(resources.SERVICES, name, spec=spec)

    def delete(self, name: str) -> None:
        """Delete a Service; it stays for as long as its load balancer does."""
        self._objects.delete(resources.SERVICES, name)

    def abandon(self, name: str) -> None:
        """Delete a Service without its load balancer."""
        self._objects.patch(resources.SERVICES, name, metadata={"finalizers": None})
        self.delete(name)

    def events(self, name: str) -> list[Json]:
        """Give the Events about a Service, and about none that had its name before."""
        uid = (self.get(name) or {}).get("metadata", {}).get("uid", "")
        query = {"fieldSelector": f"involvedObject.uid={uid}"}
        page = self.api.list_page(
            resources.EVENTS, NAMESPACE, query=query, timeout_s=kube_objects.TIMEOUT_S
        )
        return list(json.loads(page)["items"])

    def add_node(
        self,
        name: str,
        address: str,
        now: datetime.datetime,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Register a Node with one address; fine when it is there."""
        body = hollow.manifest(name, now)
        meta, status = body["metadata"], body["status"]
        if not isinstance(meta, dict) or not isinstance(status, dict):
            raise TypeError("a Node has metadata and a status")
        meta["labels"].update(labels or {})
        status["addresses"].append({"type": "InternalIP", "address": address})
        try:
            self.api.create(
                resources.NODES,
                json.dumps(body).encode(),
                timeout_s=kube_objects.TIMEOUT_S,
            )
        except kube_errors.AlreadyExists:
            return

    def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """Give the labels of all Nodes, by name."""
        return {
            one["metadata"]["name"]: one["metadata"].get("labels", {})
            for one in self._objects.all(resources.NODES)
        }

    def label_node(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Set labels of a Node; None removes one."""
        meta = {"labels": dict(labels)}
        self._objects.patch(resources.NODES, name, metadata=meta)

    def remove_node(self, name: str) -> None:
        """Delete a Node; fine when there is none."""
        self._objects.delete(resources.NODES, name)


def addresses(service: Mapping[str, Json] | None) -> list[str]:
    """Give the addresses in a Service's status."""
    status = (service or {}).get("status", {}).get("loadBalancer", {})
    return [str(one["ip"]) for one in status.get("ingress", []) if one.get("ip")]
