"""Workload simulator: pods become Ready, or succeed, once what they wait for holds.

It stands for the kubelets of simulated Nodes. No container runs: it proves the order in
which workloads can start and that every dependency is satisfiable, not that a program
starts with its configuration.

A pod with the annotation sim/hold is left as it is. So are pods whose application and
component are listed in the ConfigMap workload-simulator of their namespace, key hold:
"keystone/api" in lines. Pods of Jobs listed under the key fail end with an error.
"""

import dataclasses
import datetime
import json
import zlib
from collections.abc import Mapping

import msgspec

from lib.kube import client, objects, resources
from lib.kube import errors as kube_errors
from lib.lab.osdpl import pods
from lib.lab.osdpl.pods import Pod

HOLD = "sim/hold"
SETTINGS = "workload-simulator"
TIMEOUT_S = 10.0
_FINAL = ("Succeeded", "Failed")


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a PersistentVolumeClaim."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_name: str = ""
    resources: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)


class Claim(msgspec.Struct, frozen=True):
    """One PersistentVolumeClaim."""

    metadata: objects.ObjectMeta
    spec: ClaimSpec = ClaimSpec()


class Settings(msgspec.Struct, frozen=True):
    """A ConfigMap."""

    metadata: objects.ObjectMeta
    data: Mapping[str, str] = msgspec.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """The containers of a pod run and are ready."""

    pod: Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Finish:
    """The pod of a Job has succeeded."""

    pod: Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Fail:
    """The pod of a Job has ended with an error."""

    pod: Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Remove:
    """A pod that is being deleted has terminated."""

    pod: Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Provision:
    """A claim gets a volume."""

    claim: Claim


Action = Start | Finish | Fail | Remove | Provision


def decide(
    observed: pods.Snapshot,
    claims: Mapping[str, Claim],
    settings: Mapping[str, Settings],
) -> tuple[Action, ...]:
    """Return what kubelets and the volume provisioner would do now."""
    held, failing = _listed(settings, "hold"), _listed(settings, "fail")
    actions: list[Action] = []
    for pod in observed.pods.values():
        action = _decide_pod(pod, observed, held)
        if isinstance(action, Finish) and _identity(pod) in failing:
            action = Fail(pod)
        if action is not None:
            actions.append(action)
    actions += [
        Provision(claim) for claim in claims.values() if not claim.spec.volume_name
    ]
    return tuple(actions)


def _decide_pod(
    pod: Pod, observed: pods.Snapshot, held: frozenset[tuple[str, str, str]]
) -> Action | None:
    if not pod.spec.node_name or pod.metadata.annotations.get(HOLD):
        return None
    if pod.metadata.deletion_timestamp is not None:
        return Remove(pod)
    if pod.is_ready or pod.status.phase in _FINAL or _identity(pod) in held:
        return None
    if pods.unmet(pod, observed):
        return None
    return Start(pod) if pod.spec.restart_policy == "Always" else Finish(pod)


def _identity(pod: Pod) -> tuple[str, str, str]:
    labels = pod.metadata.labels
    application, component = labels.get("application", ""), labels.get("component", "")
    return pod.metadata.namespace, application, component


def _listed(
    settings: Mapping[str, Settings], key: str
) -> frozenset[tuple[str, str, str]]:
    """Return namespace, application and component of the pods listed under a key."""
    listed = set()
    for entry in settings.values():
        for line in entry.data.get(key, "").split():
            application, _, component = line.partition("/")
            listed.add((entry.metadata.namespace, application, component))
    return frozenset(listed)


def act(api: client.Api, action: Action, now: datetime.datetime) -> None:
    """Carry an action out; an object deleted in the meantime is no failure.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    try:
        if isinstance(action, Remove):
            _remove(api, action.pod)
        elif isinstance(action, Provision):
            _provision(api, action.claim)
        else:
            status = running(action.pod, now)
            if isinstance(action, Finish | Fail):
                status = finished(action.pod, now, isinstance(action, Fail))
            _post(api, action.pod, status)
    except (kube_errors.NotFound, kube_errors.AlreadyExists, kube_errors.Conflict):
        return


def _remove(api: client.Api, pod: Pod) -> None:
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
    where = pod.metadata
    api.delete(
        pods.PODS,
        where.name,
        where.namespace,
        body=json.dumps(body).encode(),
        timeout_s=TIMEOUT_S,
    )


def _post(api: client.Api, pod: Pod, status: Mapping[str, object]) -> None:
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    api.patch(
        pods.PODS,
        pod.metadata.name,
        json.dumps(body).encode(),
        pod.metadata.namespace,
        subresource="status",
        content_type=client.STRATEGIC_PATCH,
        timeout_s=TIMEOUT_S,
    )


def _provision(api: client.Api, claim: Claim) -> None:
    body = json.dumps(volume(claim)).encode()
    api.create(resources.PERSISTENT_VOLUMES, body, timeout_s=TIMEOUT_S)


def volume(claim: Claim) -> dict[str, object]:
    """Return the PersistentVolume for a claim."""
    meta = claim.metadata
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    reference |= {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"lab-{meta.uid}"},
        "spec": {
            "capacity": dict(claim.spec.resources.get("requests", {"storage": "1Gi"})),
            "accessModes": list(claim.spec.access_modes),
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": claim.spec.storage_class_name,
            "claimRef": reference,
            "hostPath": {"path": f"/nonexistent/{meta.uid}"},
        },
    }


def running(pod: Pod, now: datetime.datetime) -> dict[str, object]:
    """Return the status of a pod whose containers run and are ready."""
    state = {"running": {"startedAt": _stamp(now)}}
    address = _address(pod)
    return {
        "phase": "Running",
        "startTime": _stamp(now),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions("True", now),
        "containerStatuses": [
            _container(part, state, ready=True) for part in pod.spec.containers
        ],
    }


def finished(
    pod: Pod, now: datetime.datetime, has_failed: bool = False
) -> dict[str, object]:
    """Return the status of a pod that has succeeded, or failed."""
    times = {"startedAt": _stamp(now), "finishedAt": _stamp(now)}
    reason = "Error" if has_failed else "Completed"
    state = {"terminated": {"exitCode": int(has_failed), "reason": reason, **times}}
    return {
        "phase": "Failed" if has_failed else "Succeeded",
        "startTime": _stamp(now),
        "conditions": _conditions("False", now, "PodCompleted"),
        "containerStatuses": [
            _container(part, state, ready=False) for part in pod.spec.containers
        ],
    }


def _conditions(
    ready: str, now: datetime.datetime, reason: str = ""
) -> list[dict[str, str]]:
    states = {"Initialized": "True", "ContainersReady": ready, "Ready": ready}
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "lastTransitionTime": _stamp(now),
        }
        for kind, status in states.items()
    ]


def _container(
    container: pods.Container, state: Mapping[str, object], *, ready: bool
) -> dict[str, object]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }


def _address(pod: Pod) -> str:
    """Return an address of its own, the same one each time, below 10.32.0.0/11."""
    number = zlib.crc32(pod.metadata.uid.encode()) & 0x1FFFFF
    return f"10.{32 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"


def _stamp(now: datetime.datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
