"""Fixtures of images: one that is built and unpacked."""

import os

import pytest

from lib.lab import places
from lib.lab.images import images, package_lock
from tests.harness import testing
from tests.harness.images import building, container


@pytest.fixture(scope="session")
def node_image(tmp_path_factory: pytest.TempPathFactory) -> images.Image:
    """Build the image of csi-node, which has all kinds of layers."""
    if not package_lock.can_fetch():
        pytest.skip("images are built from Debian packages, and apt is absent")
    folder = tmp_path_factory.mktemp("images")
    where = places.default()
    (built,) = images.build(
        where, building.source(), ["csi-node"], folder, testing.shown()
    )
    return built


@pytest.fixture(scope="session")
def node_container(
    node_image: images.Image, tmp_path_factory: pytest.TempPathFactory
) -> container.UnpackedImage:
    """Unpack the image of csi-node."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root: the image is built and not started")
    folder = tmp_path_factory.mktemp("container")
    return container.unpack(node_image, folder)
