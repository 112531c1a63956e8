"""Simulated Nodes of the lab: three of the control plane, three for compute."""

import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab.kube import simulated_kubelet

_CONTROL = ("openstack-control-plane", "openstack-gateway", "openvswitch")
_COMPUTE = ("openstack-compute-node", "openvswitch")
NODES: Mapping[str, tuple[str, ...]] = {
    **{f"control-{number}": _CONTROL for number in (1, 2, 3)},
    **{f"compute-{number}": _COMPUTE for number in (1, 2, 3)},
}
"""Labels by name of the Node; the value of each is "enabled"."""
_ROOM = {
    "cpu": "64",
    "memory": "256Gi",
    "pods": "500",
    "ephemeral-storage": "1Ti",
    "hugepages-2Mi": "0",
}


def ensure(api: client.Api, now: datetime.datetime) -> None:
    """Create the Nodes that do not exist, and renew the Leases of all.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    for name in NODES:
        try:
            body = json.dumps(manifest(name, now)).encode()
            api.create(resources.NODES, body, timeout_s=simulated_kubelet.TIMEOUT_S)
        except kube_errors.AlreadyExists:
            pass
        simulated_kubelet.beat(api, name, now)


def beat(api: client.Api, now: datetime.datetime) -> None:
    """Renew the Leases of all Nodes; post the status of those that are not Ready.

    A Node whose Lease expired, because this process started late or stood still, stays
    Unknown and gets no pods until its kubelet posts its status again.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    page = api.list_page(
        resources.NODES, query={}, timeout_s=simulated_kubelet.TIMEOUT_S
    )
    for name in _not_ready(json.loads(page)["items"]):
        simulated_kubelet.beat(api, name, now)
    renewed = {"spec": {"renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}
    for name in NODES:
        api.patch(
            resources.LEASES,
            name,
            json.dumps(renewed).encode(),
            simulated_kubelet.LEASE_NAMESPACE,
            timeout_s=simulated_kubelet.TIMEOUT_S,
        )


def _not_ready(nodes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of the simulated Nodes whose condition Ready is not True."""
    return tuple(
        node["metadata"]["name"]
        for node in nodes
        if node["metadata"]["name"] in NODES
        and not any(
            (row["type"], row["status"]) == ("Ready", "True")
            for row in node.get("status", {}).get("conditions", ())
        )
    )


def manifest(name: str, now: datetime.datetime) -> dict[str, object]:
    """Return a Node with room for any workload of the lab."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **dict.fromkeys(NODES[name], "enabled"),
    }
    number = list(NODES).index(name) + 1
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": f"10.0.0.{number}"},
            ],
            "capacity": _ROOM,
            "allocatable": _ROOM,
            "conditions": simulated_kubelet.conditions(now),
        },
    }
