"""Upgrades and rollbacks of the pods, by helm, while volume and Service are in use.

No tag exists yet: the previous release is made from this one (`releases.py`). Each step
is a row: nothing is written to the cloud, the Node stays Ready, no mount is lost, and
the pod of a user writes on to the file that it has opened before the first step.
"""

import pathlib
from collections.abc import Iterator

import pytest

from lib.lab.slots import leases
from tests.harness.pods import pod_node, releases, users
from tests.harness.pods.upgrades import Releases

CHART = pathlib.Path() / "charts" / pod_node.CHART
OWN = {
    "openstack-ccm": ("openstack-ccm", "openstack-ccm"),
    "cloud-data-discoverer": ("cloud-data-discoverer", "cloud-data-discoverer"),
    "csi-controller": ("csi-controller", "controller"),
    "csi-node": ("csi-node", "node"),
}
"""Label and container of the project's own image, by component."""
Scene = Releases[pod_node.PodNode]


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
        opened = Releases(users.Users(node), OWN, previous, old, new)
        opened.until_running(old)
        opened.user.add_service()
        opened.user.add_writer()
        node.until("the Service has an address", opened.user.ingress)
        node.until("the pod has written", lambda: opened.user.written() >= 0)
        yield opened


def test_nothing_in_use_notices_upgrades_and_rollbacks(scene: Scene) -> None:
    """Component by component, back, as a whole, and an older image with this chart."""
    node = scene.user.node
    before, writes = scene.in_use(), len(node.writes())
    assert all(ids for _, ids in before.cloud)
    assert before.mounts
    scene.upgrade_each(before, writes)
    node.install(CHART, "upgrade")
    scene.until_running(scene.new)
    scene.check("this release as a whole", before, writes)
    node.install(CHART, "upgrade", scene.old)
    scene.until_running(scene.old)
    scene.check("previous images, this chart", before, writes)
