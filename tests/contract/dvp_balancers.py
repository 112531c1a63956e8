"""The parent of DVP as the contract of load balancers needs it: fake, or real."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.load_balancers import lb_names
from lib.cloud.dvp.load_balancers.cloud import DvpLoadBalancers
from lib.cloud.load_balancers import Cluster, Facts, Node, Port, PortProtocol
from lib.kube import client, errors
from lib.kube.fake import calls
from lib.lab.run import waiting
from tests.harness.dvp import parent_api

NAMESPACE = "project"
UUID = "4e02b5ba-0f0e-4ac9-9e0f-c3c3f6d6b0c1"
Json = dict[str, Any]


class FakeParent(parent_api.ParentApi):
    """A parent that gives addresses to Services and serves the second kind, or not.

    serves_checked: whether ServiceWithHealthchecks exists. gives_addresses: whether
    Services get one. discoveries: how often it was asked for the former.
    """

    def __init__(self, *, serves_checked: bool = False) -> None:
        super().__init__()
        self.serves_checked = serves_checked
        self.gives_addresses = True
        self.discoveries = 0
        self.hook: Callable[[calls.Call], None] | None = None
        self._numbers = itertools.count(1)
        self.after_call = self._after

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        """Answer discovery, too; no time, no request."""
        resource = kinds.HEALTHCHECKED_SERVICES.resource
        if timeout_s <= 0:
            raise errors.Unavailable("not sent: no time left", operation=path)
        if path == f"/apis/{resource.group}/{resource.version}":
            self.discoveries += 1
            if not self.serves_checked:
                raise errors.NotFound("no such group", operation=path, status=404)
            return msgspec.json.encode({"resources": [{"name": resource.plural}]})
        return super().request(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
        )

    def _after(self, call: calls.Call) -> None:
        if call.verb == "create" and self.gives_addresses:
            self.give_addresses()
        if call.verb == "delete" and call.name:
            self._collect(call.name)
        if self.hook is not None:
            self.hook(call)

    def give_addresses(self) -> None:
        """Act as the controllers of the parent."""
        checked = kinds.HEALTHCHECKED_SERVICES.resource
        services = kinds.SERVICES.resource
        names = {self._name(service) for service in self.all(services)}
        for document in self.all(checked):
            if self._name(document) not in names:
                self.put(services, self._child(dict(document)))
        for document in self.all(services):
            service: Json = dict(document)
            if service["spec"]["type"] == "LoadBalancer" and not service.get("status"):
                ip = f"198.51.100.{next(self._numbers)}"
                status = {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": "VIP"}]}}
                self.put(services, {**service, "status": status})

    @staticmethod
    def _name(document: Mapping[str, object]) -> str:
        metadata: Any = document["metadata"]
        return str(metadata["name"])

    def _child(self, document: Json) -> Json:
        about, spec = document["metadata"], dict(document["spec"])
        passed_on = ("ports", "type", "internalTrafficPolicy", "externalTrafficPolicy")
        spec = {key: spec[key] for key in passed_on if key in spec}
        owner = {"kind": kinds.HEALTHCHECKED_SERVICES.resource.kind}
        return {
            "metadata": {
                "name": about["name"],
                "namespace": about["namespace"],
                "labels": about.get("labels", {}),
                "annotations": about.get("annotations", {}),
                "ownerReferences": [{**owner, "name": about["name"]}],
            },
            "spec": spec,
        }

    def _collect(self, name: str) -> None:
        """Delete what a deleted ServiceWithHealthchecks has created."""
        services = kinds.SERVICES.resource
        checked = self.all(kinds.HEALTHCHECKED_SERVICES.resource)
        if name in {self._name(document) for document in checked}:
            return
        for document in self.all(services):
            about: Any = document["metadata"]
            if about["name"] == name and about.get("ownerReferences"):
                self.remove(services, name, about["namespace"])

    def add_vm(self, host: str, *, name: str = "", cluster: str = UUID) -> None:
        """Create a VM, as capdvp or Terraform do."""
        labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: host}
        about = {"name": name or host, "namespace": NAMESPACE, "labels": labels}
        document: Json = {"metadata": about, "spec": parent_api.vm_spec()}
        self.put(kinds.VIRTUAL_MACHINES.resource, document)

    def labelled(self, uid: str) -> list[str]:
        """Return the names of the VMs with the label of a Service."""
        key = lb_names.label_key(lb_names.object_name(uid))
        vms: list[Any] = list(self.all(kinds.VIRTUAL_MACHINES.resource))
        return sorted(
            vm["metadata"]["name"]
            for vm in vms
            if vm["metadata"]["labels"].get(key) == lb_names.LABEL_VALUE
        )

    def only(self, kind: kinds.ParentKind[kinds.ParentService]) -> Json:
        """Return the only object of a kind."""
        (document,) = self.all(kind.resource)
        typed: Json = msgspec.json.decode(msgspec.json.encode(document))
        return typed


@dataclasses.dataclass
class ParentBalancers:
    """Implements `tests.contract.load_balancers.Ground`.

    api: of the parent. nodes: at least two, which have VMs in the project.
    """

    api: client.Api
    nodes: tuple[Node, ...]
    sleep: Callable[[float], None]
    namespace: str = NAMESPACE
    cluster_id: str = UUID

    def __post_init__(self) -> None:
        self._parent: parent.Parent | None = None
        self.restart()

    def restart(self) -> None:
        """See the contract."""
        self.close()
        self._parent = parent.Parent(self.api, self.namespace, self.cluster_id)
        self.balancers = DvpLoadBalancers(self._parent)

    def close(self) -> None:
        """End the watches."""
        if self._parent is not None:
            self._parent.close()

    def facts(self, name: str) -> Facts:
        """See the contract."""
        return Facts(
            Cluster(self.cluster_id, "kubernetes"),
            "default",
            name,
            f"uid-of-{name}",
            ports=(Port(80, PortProtocol.TCP, 30080, "http"),),
            nodes=self.nodes[:2],
        )

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        key = lb_names.CLASS_ANNOTATION
        return dataclasses.replace(facts, annotations={key: "Not A Name"}), key

    def delete(self, id_: str) -> None:
        """See the contract."""
        access = self._parent
        if access is None:
            raise TypeError("the ground is closed")
        for kind in (kinds.HEALTHCHECKED_SERVICES, kinds.SERVICES):
            try:
                self.api.delete(kind.resource, id_, self.namespace, timeout_s=30)
            except errors.NotFound:
                continue

        def is_gone() -> bool:
            return access.key(kinds.SERVICES, id_) not in access.items(kinds.SERVICES)

        waiting.until(f"the deletion of {id_}", is_gone)
