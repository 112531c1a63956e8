"""Upgrades and rollbacks of the pods, by helm, while volume and Service are in use.

No tag exists yet: the previous release is made from this one (`releases.py`). Each step
is a row: nothing is written to the cloud, the Node stays Ready, no mount is lost, and
the pod of a user writes on to the file that it has opened before the first step.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Sequence

import pytest

from lib.kube import resources
from lib.lab.pods import cluster_pods
from lib.lab.slots import leases
from tests.harness.pods import pod_node, releases, users

ROOT = pathlib.Path()
CHART = ROOT / "charts" / pod_node.CHART
OWN = {
    "openstack-ccm": "openstack-ccm",
    "cloud-data-discoverer": "cloud-data-discoverer",
    "csi-controller": "controller",
    "csi-node": "node",
}
"""The container of the project's own image, by component."""
FIRST = "1"
"""Revision of helm's first release."""


@dataclasses.dataclass(frozen=True, slots=True)
class InUse:
    """What must not change. since: when the Node became Ready."""

    since: str
    mounts: Sequence[str]
    ingress: Sequence[object]
    cloud: Sequence[tuple[str, tuple[str, ...]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """A node with two releases: charts, and references of images by component."""

    user: users.Users
    previous: pathlib.Path
    old: pod_node.Images
    new: pod_node.Images


@pytest.fixture(scope="module")
def scene(
    lease: leases.Lease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Install the previous release, and have a Service and a volume used."""
    folder = tmp_path_factory.mktemp("releases")
    with pod_node.running(lease, tmp_path_factory.mktemp("images")) as node:
        pod_node.prepare(node)
        previous = releases.chart(CHART, folder)
        old = releases.load_images(node, folder)
        new = {name: image.reference for name, image in node.images.items()}
        node.install(previous)
        opened = Scene(users.Users(node), previous, old, new)
        until_running(opened, old)
        opened.user.add_service()
        opened.user.add_writer()
        node.until("the Service has an address", opened.user.ingress)
        node.until("the pod has written", lambda: opened.user.written() >= 0)
        yield opened


def until_running(scene: Scene, expected: pod_node.Images) -> None:
    """Wait until each component has one pod, with this image, and it is Ready."""
    for component, reference in expected.items():
        runs = functools.partial(is_running, scene.user.node, component, reference)
        scene.user.node.until(f"{component} is {reference}", runs)


def is_running(node: pod_node.PodNode, component: str, reference: str) -> bool:
    pods = [
        pod
        for pod in node.system.all(resources.PODS)
        if pod["metadata"].get("labels", {}).get("app") == component
    ]
    used = [
        container["image"]
        for pod in pods
        for container in pod["spec"]["containers"]
        if container["name"] == OWN[component]
    ]
    return used == [reference] and cluster_pods.is_ready(pods[0])


def in_use(user: users.Users) -> InUse:
    node = user.node
    shown = node.default.get(resources.NODES, node.name) or {"status": {}}
    (ready,) = (x for x in shown["status"]["conditions"] if x["type"] == "Ready")
    assert ready["status"] == "True", ready
    cloud = tuple((key, tuple(ids)) for key, ids in node.in_cloud().items())
    return InUse(ready["lastTransitionTime"], user.mounts(), user.ingress(), cloud)


def uids(node: pod_node.PodNode) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in node.pods.newest().items()}


def test_nothing_in_use_notices_upgrades_and_rollbacks(scene: Scene) -> None:
    """Component by component, back, as a whole, and an older image with this chart."""
    user, node = scene.user, scene.user.node
    before, writes = in_use(user), len(node.writes())
    assert all(ids for _, ids in before.cloud)
    assert before.mounts

    def check(step: str) -> None:
        user.writes_on()
        assert node.writes()[writes:] == [], step
        assert in_use(user) == before, step
        print(f"{step:60} no write, same mount, Node Ready")

    running = dict(scene.old)
    for component, reference in scene.new.items():
        pods = uids(node)
        running[component] = reference
        node.install(scene.previous, "upgrade", running)
        until_running(scene, running)
        changed = {name for name, uid in uids(node).items() if pods[name] != uid}
        assert changed == {component}
        check(f"{component}: new image, previous chart")
    node.helm("rollback", pod_node.CHART, FIRST)
    until_running(scene, scene.old)
    check("helm rollback to the previous release")
    node.install(CHART, "upgrade")
    until_running(scene, scene.new)
    check("this release as a whole")
    node.install(CHART, "upgrade", scene.old)
    until_running(scene, scene.old)
    check("previous images, this chart")
