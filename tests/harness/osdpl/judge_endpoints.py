"""Judges addresses: each name leads to pods that listen. Pure."""

import re
from collections.abc import Iterator

from tests.harness.osdpl.cloud_manifests import CloudManifests, Manifest, Object, Pods
from tests.harness.osdpl.judge_findings import JudgeFinding

_ADDRESS = re.compile(
    r"(?<![\w.-])((?:[a-z0-9-]+\.)+)openstack\.svc\.cluster\.local(?::(\d+))?"
)
NOT_INSTALLED = frozenset(
    {
        "barbican-api",
        "cinder-api",
        "designate-api",
        "heat-api",
        "heat-cfn",
        "ironic-api",
        "manila-api",
        "octavia-api",
    }
)
"""Services whose address charts write whether or not they are installed."""


def services(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield addresses inside the cluster that lead to no port of a pod."""
    for entry, key, text in cloud.texts:
        if entry.kind == "ConfigMap" and entry.name.endswith("-bin"):
            continue
        for match in _ADDRESS.finditer(text):
            *pod, name = match[1].removesuffix(".").split(".")
            if name in NOT_INSTALLED or entry.kind == "Ingress":
                continue
            problem = _problem(cloud, name, pod, match[2])
            if problem:
                place = f"{entry.release} {entry}"
                yield JudgeFinding("endpoint", place, f"{key}: {problem}")


def _problem(cloud: CloudManifests, name: str, pod: list[str], port: str | None) -> str:
    service = cloud.by_name.get(("Service", name))
    if service is None:
        return f"Service/{name} is made by no release"
    pods = cloud.selected(service.spec.get("selector") or {})
    if not pods:
        return f"Service/{name} selects no pods"
    if port and int(port) not in [row["port"] for row in service.spec["ports"]]:
        return f"Service/{name} has no port {port}"
    return _pod_problem(service, pods, pod[-1]) if pod else ""


def _pod_problem(service: Object, pods: tuple[Pods, ...], name: str) -> str:
    """Return why a pod of a StatefulSet has no name of its own.

    Source: Kubernetes, StatefulSets, stable network ID: a headless Service.
    """
    prefix, _, ordinal = name.rpartition("-")
    for entry in pods:
        owner = entry.owner
        is_owner = owner.kind == "StatefulSet" and owner.name == prefix
        if is_owner and owner.spec.get("serviceName") == service.name:
            if int(ordinal) >= owner.spec["replicas"]:
                return f"{owner} has no replica {ordinal}"
            is_headless = service.spec.get("clusterIP") == "None"
            return "" if is_headless else f"{service} is not headless: {name}"
    return f"no StatefulSet of {service} has the pod {name}"


def ingresses(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield Ingresses that lead to no port, and Services without a port of a pod."""
    for entry in cloud.of_kind("Ingress"):
        for rule in entry.spec.get("rules") or []:
            for path in rule["http"]["paths"]:
                problem = _backend_problem(cloud, path["backend"]["service"])
                if problem:
                    yield JudgeFinding("ingress", f"{entry.release} {entry}", problem)
    for entry in cloud.of_kind("Service"):
        for pods in cloud.selected(entry.spec.get("selector") or {}):
            for row in entry.spec["ports"]:
                target = row.get("targetPort", row["port"])
                if isinstance(target, str) and target not in _port_names(pods):
                    text = f"no container has the port {target}"
                    yield JudgeFinding("ingress", f"{entry.release} {entry}", text)


def _port_names(pods: Pods) -> set[str]:
    return {
        port.get("name", "")
        for container in pods.containers
        for port in container.get("ports") or []
    }


def _backend_problem(cloud: CloudManifests, backend: Manifest) -> str:
    name, port = backend["name"], backend["port"]
    service = cloud.by_name.get(("Service", name))
    if service is None:
        return f"Service/{name} is made by no release"
    if not cloud.selected(service.spec.get("selector") or {}):
        return f"Service/{name} selects no pods"
    rows = service.spec["ports"]
    ports = [row["port"] for row in rows] + [row.get("name") for row in rows]
    port_of_backend = port.get("number", port.get("name"))
    return (
        ""
        if port_of_backend in ports
        else f"Service/{name} has no port {port_of_backend}"
    )
