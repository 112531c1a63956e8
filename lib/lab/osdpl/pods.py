"""Pods, Jobs and endpoints as the workload simulator sees them, and what pods wait for.

Source: kubernetes-entrypoint, README: DEPENDENCY_SERVICE, DEPENDENCY_JOBS,
DEPENDENCY_JOBS_JSON and DEPENDENCY_POD_JSON.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lib.kube import objects
from lib.kube.resources import Resource

PODS = Resource("", "v1", "pods", "Pod", True)
JOBS = Resource("batch", "v1", "jobs", "JobState", True)
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
_SERVICE_LABEL = "kubernetes.io/service-name"


class Variable(msgspec.Struct, frozen=True):
    """One environment variable."""

    name: str
    value: str = ""


class Container(msgspec.Struct, frozen=True):
    """One container."""

    name: str
    image: str = ""
    env: tuple[Variable, ...] = ()


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a pod."""

    node_name: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()


class Condition(msgspec.Struct, frozen=True):
    """One condition."""

    type: str
    status: str


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Pod(msgspec.Struct, frozen=True):
    """One pod."""

    metadata: objects.ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return Condition("Ready", "True") in self.status.conditions


class JobStatus(msgspec.Struct, frozen=True):
    """The status of a Job."""

    succeeded: int = 0


class JobState(msgspec.Struct, frozen=True):
    """One Job."""

    metadata: objects.ObjectMeta
    status: JobStatus = JobStatus()


class EndpointConditions(msgspec.Struct, frozen=True):
    """Whether an endpoint serves; None means yes."""

    ready: bool | None = None


class Endpoint(msgspec.Struct, frozen=True):
    """One endpoint of a Service."""

    conditions: EndpointConditions = EndpointConditions()


class Slice(msgspec.Struct, frozen=True):
    """One EndpointSlice."""

    metadata: objects.ObjectMeta
    endpoints: tuple[Endpoint, ...] | None = None

    @property
    def service(self) -> str:
        """Key of its Service."""
        name = self.metadata.labels.get(_SERVICE_LABEL, "")
        return f"{self.metadata.namespace}/{name}"

    @property
    def is_ready(self) -> bool:
        """Whether it has a ready endpoint."""
        endpoints = self.endpoints or ()
        return any(endpoint.conditions.ready is not False for endpoint in endpoints)


@dataclasses.dataclass(frozen=True, slots=True)
class PodNeed:
    """A pod that must be Ready."""

    labels: Mapping[str, str]
    same_node: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Dependencies:
    """What a pod waits for. services, jobs: keys. job_labels: of Jobs, all of them."""

    services: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    job_labels: tuple[Mapping[str, str], ...] = ()
    pods: tuple[PodNeed, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All objects of one moment. ready_services: keys of Services with endpoints."""

    pods: Mapping[str, Pod]
    jobs: Mapping[str, JobState]
    ready_services: frozenset[str]


def snapshot(
    pods: Mapping[str, Pod], jobs: Mapping[str, JobState], slices: Sequence[Slice]
) -> Snapshot:
    """Return a snapshot of three watched stores."""
    ready = frozenset(part.service for part in slices if part.is_ready)
    return Snapshot(pods, jobs, ready)


def dependencies(pod: Pod) -> Dependencies:
    """Return what the init containers of a pod wait for."""
    env = {
        variable.name: variable.value
        for container in pod.spec.init_containers
        for variable in container.env
    }
    namespace = pod.metadata.namespace
    pod_needs = _json_list(env.get("DEPENDENCY_POD_JSON", ""))
    job_needs = _json_list(env.get("DEPENDENCY_JOBS_JSON", ""))
    return Dependencies(
        services=_keys(env.get("DEPENDENCY_SERVICE", ""), namespace),
        jobs=_keys(env.get("DEPENDENCY_JOBS", ""), namespace),
        job_labels=tuple(need.get("labels", {}) for need in job_needs),
        pods=tuple(
            PodNeed(need.get("labels", {}), bool(need.get("requireSameNode")))
            for need in pod_needs
        ),
    )


def _keys(text: str, namespace: str) -> tuple[str, ...]:
    """Parse "namespace:name,name" into keys."""
    keys = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        before, _, name = part.rpartition(":")
        keys.append(f"{before or namespace}/{name}")
    return tuple(keys)


def _json_list(text: str) -> list[dict[str, Any]]:
    return list(json.loads(text)) if text else []


def unmet(pod: Pod, snapshot: Snapshot) -> tuple[str, ...]:
    """Return what a pod still waits for, one short text each."""
    needs = dependencies(pod)
    missing = [
        f"Service {_name(key)}"
        for key in needs.services
        if key not in snapshot.ready_services
    ]
    for key in needs.jobs:
        job = snapshot.jobs.get(key)
        if job is None or not job.status.succeeded:
            missing.append(f"Job {_name(key)}")
    for labels in needs.job_labels:
        matching = [
            job
            for job in snapshot.jobs.values()
            if _matches(labels, job.metadata.labels)
        ]
        if not matching or not all(job.status.succeeded for job in matching):
            missing.append(f"Job {_selector(labels)}")
    missing += [
        f"Pod {_selector(need.labels)}"
        for need in needs.pods
        if not _is_met(need, pod, snapshot)
    ]
    return tuple(missing)


def _is_met(need: PodNeed, waiting: Pod, snapshot: Snapshot) -> bool:
    return any(
        pod.is_ready
        and pod.metadata.deletion_timestamp is None
        and _matches(need.labels, pod.metadata.labels)
        and (not need.same_node or pod.spec.node_name == waiting.spec.node_name)
        for pod in snapshot.pods.values()
    )


def _matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _name(key: str) -> str:
    return key.partition("/")[2]


def _selector(labels: Mapping[str, str]) -> str:
    return "/".join(labels.values())
