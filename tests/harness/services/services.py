"""Acts as the user of Services of type LoadBalancer, and reads their Events."""

import contextlib
import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab.kube import kube_objects
from lib.lab.run import waiting

TIMEOUT_S = 30.0
POLL_S = 0.5
WEB: Mapping[str, Any] = {"port": 80, "protocol": "TCP", "name": "web"}
LOAD_BALANCER_ID = "loadbalancer.openstack.org/load-balancer-id"
LOAD_BALANCER_ADDRESS = "loadbalancer.openstack.org/load-balancer-address"
"""Settings of the load balancer of a Service, by annotations.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One Event. component: its source."""

    type: str
    reason: str
    message: str
    count: int
    component: str


class Services:
    """The Services of one namespace, as JSON. Safe to use from several threads."""

    def __init__(self, api: client.Api, namespace: str) -> None:
        """Have the namespace.

        Raises:
            KubeError: the API server did not answer, or refused.
        """
        self._api = api
        self._objects = kube_objects.Objects(api, namespace)
        self.namespace = namespace
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._objects.make(resources.NAMESPACES, namespace)

    def make(
        self,
        name: str,
        annotations: Mapping[str, str] | None = None,
        ports: Sequence[Mapping[str, Any]] = (WEB,),
        **spec: object,
    ) -> kube_objects.Json:
        """Create one of type LoadBalancer, with a port 80 if nothing else is said."""
        whole = {"type": "LoadBalancer", "ports": [*ports], **spec}
        about = {"annotations": dict(annotations or {})}
        return self._objects.make(resources.SERVICES, name, about, spec=whole)

    def change(
        self,
        name: str,
        annotations: Mapping[str, str | None] | None = None,
        **spec: object,
    ) -> None:
        """Change annotations (None removes one) and fields of spec."""
        parts: dict[str, object] = {}
        if annotations:
            parts["metadata"] = {"annotations": dict(annotations)}
        if spec:
            parts["spec"] = spec
        self._objects.patch(resources.SERVICES, name, **parts)

    def get(self, name: str) -> kube_objects.Json | None:
        """Return one; None when there is none."""
        return self._objects.get(resources.SERVICES, name)

    def all(self) -> Mapping[str, kube_objects.Json]:
        """Return all by name."""
        items = self._objects.all(resources.SERVICES)
        return {str(service["metadata"]["name"]): service for service in items}

    def events(self) -> Mapping[str, list[RecordedEvent]]:
        """Return the Events of all, by the Service's name, in order of their making."""
        path = resources.EVENTS.path(self.namespace)
        body = self._api.request("GET", path, timeout_s=TIMEOUT_S)
        by_service: dict[str, list[RecordedEvent]] = {}
        items = json.loads(body)["items"]
        for event in sorted(items, key=lambda each: str(each["metadata"]["name"])):
            event_ = RecordedEvent(
                str(event["type"]),
                str(event["reason"]),
                str(event["message"]),
                int(event.get("count") or 1),
                str(event.get("source", {}).get("component", "")),
            )
            by_service.setdefault(str(event["involvedObject"]["name"]), []).append(
                event_
            )
        return by_service

    def delete(self, names: Collection[str]) -> None:
        """Delete some; they are removed after their load balancers."""
        for name in names:
            self._objects.delete(resources.SERVICES, name)

    def abandon(self, names: Collection[str] | None = None) -> None:
        """Delete some, or all, without their load balancers, where no daemon runs."""
        for name in self.all() if names is None else names:
            self._objects.patch(resources.SERVICES, name, metadata={"finalizers": None})
            self.delete([name])

    def clear(self) -> None:
        """Delete all, and wait until they are gone.

        Raises:
            LabError: some are still there when the time is over.
        """
        self.delete(self.all())
        waiting.until(
            lambda: f"Services are deleted: {sorted(self.all())}",
            lambda: not self.all(),
            poll_s=POLL_S,
        )


def port(number: int, protocol: str = "TCP", **more: object) -> Mapping[str, Any]:
    """Return a port of a Service, named after its number and protocol.

    more: of its fields.
    """
    name = f"{protocol.lower()}-{number}"
    return {"port": number, "protocol": protocol, "name": name, **more}


def make_node(
    api: client.Api,
    name: str,
    addresses: Sequence[str],
    labels: Mapping[str, str] | None = None,
    server_id: str = "",
) -> None:
    """Create a Node with these internal addresses, which no kubelet stands behind.

    Load balancers take it all the same: whether it is Ready is for monitors to find.
    server_id: of its server in OpenStack; empty: it has no provider ID.
    """
    shown = [{"type": "InternalIP", "address": address} for address in addresses]
    nodes = kube_objects.Objects(api, "")
    about = {"labels": dict(labels or {})}
    spec = {"providerID": f"openstack:///{server_id}"} if server_id else {}
    status = {"addresses": shown}
    nodes.make(resources.NODES, name, about, status=status, spec=spec)


def node_labels(api: client.Api) -> Mapping[str, Mapping[str, str]]:
    """Return the labels of all Nodes, by name."""
    nodes = kube_objects.Objects(api, "").all(resources.NODES)
    metadata = (node["metadata"] for node in nodes)
    return {str(node["name"]): dict(node.get("labels", {})) for node in metadata}


def label_node(api: client.Api, name: str, labels: Mapping[str, str | None]) -> None:
    """Change labels of a Node; None removes one."""
    nodes = kube_objects.Objects(api, "")
    nodes.patch(resources.NODES, name, metadata={"labels": dict(labels)})


def delete_nodes(api: client.Api, names: Collection[str]) -> None:
    """Delete Nodes; fine when there are none."""
    for name in names:
        kube_objects.Objects(api, "").delete(resources.NODES, name)


def annotations(service: kube_objects.Json) -> Mapping[str, str]:
    """Return a Service's annotations."""
    return dict(service["metadata"].get("annotations") or {})


def balancer_id(service: kube_objects.Json) -> str:
    """Return the load balancer that a Service leads to; empty without one."""
    return annotations(service).get(LOAD_BALANCER_ID, "")


def ingress(service: kube_objects.Json) -> list[Mapping[str, str]]:
    """Return the addresses in a Service's status."""
    return list(service.get("status", {}).get("loadBalancer", {}).get("ingress", ()))


def addresses(service: kube_objects.Json | None) -> list[str]:
    """Return the addresses in a Service's status; none without a Service."""
    return [address["ip"] for address in ingress(service or {}) if address.get("ip")]
