"""Nodes without machines: does towards the API server what a kubelet does.

One process stands for the kubelets of several servers. Its Nodes are registered as a
kubelet with --cloud-provider=external registers itself, and have a heartbeat for as
long as their server runs.

Source: Kubernetes 1.36, pkg/kubelet/kubelet_node_status.go and nodestatus/setters.go.
"""

import dataclasses
import datetime
import json
from collections.abc import Callable, Mapping, Sequence

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import errors
from lib.lab.grounds import servers

TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 40
BEAT_S = 2.5
TIMEOUT_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Register:
    """The machine has booted: its kubelet makes the Node unless there is one."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """The kubelet posts its status and renews its Lease."""

    name: str


Running = Mapping[str, str]
"""Ids of the running servers, by name."""


def running(names: Sequence[str], listed: Sequence[servers.Server]) -> Running:
    """Return those of the servers named that run."""
    return {
        server.name: server.id
        for server in listed
        if server.name in names and server.status == servers.ACTIVE
    }


def decide(before: Running, now: Running) -> tuple[Register | Beat, ...]:
    """Return what the kubelets do in this tick.

    before, now: what ran at the last tick and at this one. A kubelet registers its
    Node when its machine boots, and never again: a Node that a user deletes stays
    away until the machine was stopped and started, or another one took its name.
    """
    booted = [Register(name) for name in now if before.get(name) != now[name]]
    return (*booted, *(Beat(name) for name in now))


def act(api: client.Api, action: Register | Beat, now: datetime.datetime) -> None:
    """Carry one action out.

    Raises:
        KubeError: the API server did not take it.
    """
    if isinstance(action, Register):
        register(api, action.name, now)
    else:
        beat(api, action.name, now)


def run(
    api: client.Api,
    cloud: servers.Cloud,
    names: Sequence[str],
    clock: Callable[[], datetime.datetime],
    wait: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Simulate the kubelets of these servers until `wait` returns False.

    wait: lets the time between two ticks pass; False ends. say: called with problems,
    which end nothing: the next tick tries again.
    """
    before: Running = {}
    while True:
        try:
            now = running(names, cloud.items())
        except errors.LabError as error:
            say(str(error))
        else:
            before = _tick(api, decide(before, now), now, clock(), say)
        if not wait():
            return


def _tick(
    api: client.Api,
    actions: Sequence[Register | Beat],
    now: Running,
    at: datetime.datetime,
    say: Callable[[str], None],
) -> Running:
    """Carry actions out; return what counts as running from now on."""
    unborn = set()
    for action in actions:
        try:
            act(api, action, at)
        except kube_errors.KubeError as error:
            say(f"{action}: {error}")
            if isinstance(action, Register):
                unborn.add(action.name)
    return {name: server for name, server in now.items() if name not in unborn}


def register(api: client.Api, name: str, now: datetime.datetime) -> bool:
    """Create the Node; False when there is one already."""
    try:
        body = json.dumps(manifest(name, now)).encode()
        api.create(resources.NODES, body, timeout_s=TIMEOUT_S)
    except kube_errors.AlreadyExists:
        return False
    return True


def beat(api: client.Api, name: str, now: datetime.datetime) -> bool:
    """Post the status and renew the Lease; False when the Node is not there."""
    try:
        node = json.loads(api.read(resources.NODES, name, timeout_s=TIMEOUT_S))
        rows = conditions(now, node.get("status", {}).get("conditions", ()))
        api.patch(
            resources.NODES,
            name,
            json.dumps({"status": {"conditions": rows}}).encode(),
            subresource="status",
            content_type=client.STRATEGIC_PATCH,
            timeout_s=TIMEOUT_S,
        )
    except kube_errors.NotFound:
        return False
    _renew(api, name, str(node["metadata"]["uid"]), now)
    return True


def _renew(api: client.Api, name: str, uid: str, now: datetime.datetime) -> None:
    body = lease(name, uid, now)
    try:
        api.patch(
            resources.LEASES,
            name,
            json.dumps({"spec": body["spec"]}).encode(),
            LEASE_NAMESPACE,
            timeout_s=TIMEOUT_S,
        )
    except kube_errors.NotFound:
        whole = json.dumps(body).encode()
        api.create(resources.LEASES, whole, LEASE_NAMESPACE, timeout_s=TIMEOUT_S)


def manifest(name: str, now: datetime.datetime) -> dict[str, object]:
    """Return the Node as a kubelet first sends it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    room = {"cpu": "1", "memory": "512Mi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [{"type": "Hostname", "address": name}],
            "capacity": room,
            "allocatable": room,
            "conditions": conditions(now),
        },
    }


def conditions(
    now: datetime.datetime, before: Sequence[Mapping[str, str]] = ()
) -> list[dict[str, str]]:
    """Return the conditions of a healthy kubelet.

    before: those the Node has; one that stays as it is keeps its transition time.
    """
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    conditions = [(kind, "False", f"KubeletHasNo{kind}") for kind in pressures]
    conditions.append(("Ready", "True", "KubeletReady"))
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    since = {
        (row["type"], row["status"]): row.get("lastTransitionTime", at)
        for row in before
    }
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "simulated kubelet of mooring lab",
            "lastHeartbeatTime": at,
            "lastTransitionTime": since.get((kind, status), at),
        }
        for kind, status, reason in conditions
    ]


def lease(name: str, uid: str, now: datetime.datetime) -> dict[str, object]:
    """Return the Lease that stands for the Node's life."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
