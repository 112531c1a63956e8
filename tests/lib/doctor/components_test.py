"""Components of a cluster, by their workloads."""

from typing import Any

from lib.doctor import components
from lib.kube import resources
from lib.kube.fake import api as fake_api

NAMES = ("openstack-ccm", "csi-node")


def workload(name: str, image: str, **status: int) -> dict[str, Any]:
    about = {
        "name": name,
        "namespace": "kube-system",
        "labels": {"app.kubernetes.io/name": name},
    }
    sidecar = {"name": "csi-provisioner", "image": "sidecar:v5"}
    containers = [sidecar, {"name": name, "image": image}]
    spec = {"replicas": 2, "template": {"spec": {"containers": containers}}}
    return {"metadata": about, "spec": spec, "status": status}


def test_deployments_and_daemon_sets_with_two_calls() -> None:
    api = fake_api.FakeApi()
    ccm = workload(
        "openstack-ccm", "registry:5000/ccm:0.1.0@sha256:00", readyReplicas=1
    )
    api.put(resources.DEPLOYMENTS, ccm)
    node = workload("csi-node", "r/n@sha256:0", numberReady=3, desiredNumberScheduled=4)
    api.put(resources.DAEMON_SETS, node)
    first, second = components.read(api, NAMES, 5)
    assert (first.name, first.kind, first.version) == ("csi-node", "DaemonSet", "")
    assert (first.ready, first.desired) == (3, 4)
    assert (second.name, second.version) == ("openstack-ccm", "0.1.0")
    assert (second.ready, second.desired) == (1, 2)
    assert [(call.verb, call.resource) for call in api.calls] == [
        ("list", "deployments"),
        ("list", "daemonsets"),
    ]


def test_the_image_of_a_component_is_not_that_of_a_sidecar() -> None:
    """As the charts name containers, also those of a second cloud."""
    api = fake_api.FakeApi()
    for name in ("csi-controller", "csi-controller-dvp"):
        document = workload(name, "registry/csi-controller:0.1.0")
        document["spec"]["template"]["spec"]["containers"][1]["name"] = "controller"
        api.put(resources.DEPLOYMENTS, document)
    rows = components.read(api, ("csi-controller", "csi-controller-dvp"), 5)
    assert [(row.name, row.version) for row in rows] == [
        ("csi-controller", "0.1.0"),
        ("csi-controller-dvp", "0.1.0"),
    ]


def test_a_cluster_without_components() -> None:
    assert components.read(fake_api.FakeApi(), NAMES, 5) == ()
