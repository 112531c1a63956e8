"""The core manager of Cluster API: it starts with its webhooks, and ends."""

import json
import os
import pathlib
import socket
from typing import Any

import pytest

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.capi import core as core_manager
from lib.lab.kube import control_plane
from lib.lab.run import offspring, ports, processes, progress, waiting

TIMEOUT_S = 30.0
CRDS = pathlib.Path("charts/capdvp/crds")
GROUP = "cluster.x-k8s.io"
CLUSTERS = resources.Resource(GROUP, "v1beta2", "clusters", "Cluster", True)
OLD_CLUSTERS = resources.Resource(GROUP, "v1beta1", "clusters", "Cluster", True)
DEPLOYMENTS = resources.Resource(
    GROUP, "v1beta2", "machinedeployments", "MachineDeployment", True
)
KINDS = ("clusters", "machines", "machinesets", "machinedeployments")
ENDPOINT = {"host": "127.0.0.1", "port": 6443}
INFRASTRUCTURE = {
    "apiGroup": "infrastructure.cluster.x-k8s.io",
    "kind": "DeckhouseCluster",
    "name": "one",
}
Json = dict[str, Any]


def deployment(cluster: str, **template: object) -> Json:
    bootstrap = {"dataSecretName": "bootstrap"}
    machine = {
        "clusterName": "one",
        "bootstrap": bootstrap,
        "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io",
            "kind": "DeckhouseMachineTemplate",
            "name": "one",
        },
    }
    return {
        "clusterName": cluster,
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {**machine, **template},
        },
    }


INVALID: list[tuple[str, resources.Resource, Json, str]] = [
    (
        "infrastructure without a name",
        CLUSTERS,
        {"infrastructureRef": {**INFRASTRUCTURE, "name": ""}},
        "spec.infrastructureRef.name",
    ),
    (
        "class without a name",
        CLUSTERS,
        {"topology": {"classRef": {"name": ""}, "version": "v1.36.3"}},
        "spec.topology.classRef.name",
    ),
    (
        "topology without its feature",
        CLUSTERS,
        {"topology": {"classRef": {"name": "a"}, "version": "v1.36.3"}},
        "can be set only if the ClusterTopology feature flag is enabled",
    ),
    (
        "malformed network",
        CLUSTERS,
        {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/33"]}}},
        "spec.clusterNetwork.pods.cidrBlocks[0]",
    ),
    (
        "another cluster in the template",
        DEPLOYMENTS,
        deployment("two"),
        "spec.template.spec.clusterName",
    ),
    (
        "malformed version",
        DEPLOYMENTS,
        deployment("one", version="latest"),
        "spec.template.spec.version",
    ),
]
"""What it is, kind, spec, and what the message names."""


def send(api: client.Api, kind: resources.Resource, name: str, spec: Json) -> Json:
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    answer = api.create(kind, json.dumps(body).encode(), "default", timeout_s=TIMEOUT_S)
    created: Json = json.loads(answer)
    return created


def check_taken_ports(where: places.Places) -> None:
    """Another program on a port is named, and nothing is started beside it."""
    for name in core_manager.PORTS:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((ports.LOOPBACK, core_manager.port(where, name)))
            other.listen()
            text = rf"meant for {name} of cluster-api, .* \(pid {os.getpid()}\)"
            with pytest.raises(errors.LabError, match=text):
                core_manager.up(where, progress.Silent())
    assert processes.find(where, core_manager.NAME) is None


def check_defined(where: places.Places, api: client.Api) -> None:
    """The definitions are served in both versions, and the manager is healthy."""
    assert core_manager.serves(where)
    for version in ("v1beta1", "v1beta2"):
        listed = json.loads(
            api.request("GET", f"/apis/{GROUP}/{version}", timeout_s=TIMEOUT_S)
        )
        served = {row["name"] for row in listed["resources"]}
        print(version, len(served), "resources")
        assert served.issuperset(KINDS)


def check_rejections(api: client.Api) -> None:
    """Each invalid object is rejected with the field, before anything is stored."""
    missed = []
    for what, kind, spec, field in INVALID:
        try:
            send(api, kind, "invalid", spec)
            message = "accepted"
        except kube_errors.KubeError as error:
            message = str(error)
        print(f"{what:32} {message[-150:]}")
        if field not in message:
            missed.append((what, message))
    assert not missed


def check_converted(core: places.Places, api: client.Api) -> None:
    """A Cluster is reconciled, and is read in the older version.

    The conversion finds the version of the infrastructure by the labels of its CRD.
    """
    definitions = [file.read_text() for file in sorted(CRDS.glob("*.yaml"))]
    control_plane.apply_manifests(core, "---\n".join(definitions))
    spec: Json = {
        "controlPlaneEndpoint": ENDPOINT,
        "infrastructureRef": INFRASTRUCTURE,
    }
    send(api, CLUSTERS, "one", spec)

    def read(kind: resources.Resource) -> Json:
        answer: Json = json.loads(api.read(kind, "one", "default", timeout_s=TIMEOUT_S))
        return answer

    waiting.until(
        "the manager reports conditions",
        lambda: read(CLUSTERS).get("status", {}).get("conditions"),
    )
    old = read(OLD_CLUSTERS)["spec"]
    assert old["controlPlaneEndpoint"] == ENDPOINT
    assert old["infrastructureRef"]["apiVersion"] == f"infrastructure.{GROUP}/v1alpha1"


def test_the_core_starts_judges_and_ends(core: places.Places, api: client.Api) -> None:
    """`up` may be repeated; a stopped manager leaves no process and no port."""
    before = processes.find(core, core_manager.NAME)
    assert before is not None
    core_manager.up(core, progress.Silent())
    again = processes.find(core, core_manager.NAME)
    assert again is not None
    assert again.pid == before.pid
    check_defined(core, api)
    check_rejections(api)
    check_converted(core, api)
    print(f"RSS {before.memory_info().rss / 2**20:.0f} MB")
    core_manager.down(core)
    assert not offspring.alive(before)
    assert all(ports.free(core_manager.port(core, name)) for name in core_manager.PORTS)
    check_taken_ports(core)
    core_manager.up(core, progress.Silent())
    check_defined(core, api)
    assert all(program.ready for program in control_plane.status(core))
