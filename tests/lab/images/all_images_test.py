"""All images: the same bytes in each build, and their sizes beside the reference."""

import gzip
import time
from collections.abc import Sequence

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.images import description, images, sizes
from tests.harness import testing
from tests.harness.images import building
from tests.harness.images.building import Surroundings

FIRST = Surroundings(
    "-400d", 0o022, {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1"}
)
SECOND = Surroundings(
    "+900d",
    0o077,
    {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2", "LANG": "de_DE"},
)
REFERENCE = {
    "openstack-ccm": "openstack-cloud-controller-manager",
    "csi-controller": "cinder-csi-plugin",
    "csi-node": "cinder-csi-plugin",
}
"""Programs of the reference, by the image that replaces its image."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Sequence[images.Image]]:
    """Build all images twice, in different folders and surroundings."""
    names = description.names(building.source().root)
    builds = []
    for number, surroundings in enumerate((FIRST, SECOND)):
        folder = tmp_path_factory.mktemp("build") / ("longer-name/" * number + "out")
        began = time.monotonic()
        builds.append(building.in_surroundings(surroundings, names, folder))
        print(f"{len(names)} images in {time.monotonic() - began:.0f} s")
    return builds


def test_two_builds_have_the_same_digests(
    built: Sequence[Sequence[images.Image]],
) -> None:
    first, second = built
    different = []
    for image, other in zip(first, second, strict=True):
        same = image.digest == other.digest
        print(f"{image.name:24} {image.digest} {'same' if same else other.digest}")
        if not same:
            different.append(image.name)
    assert len(first) >= 5
    assert different == []
    assert len({image.digest for image in first}) == len(first)


def test_all_images_share_the_base(built: Sequence[Sequence[images.Image]]) -> None:
    assert len({image.layers[0].digest for image in built[0]}) == 1


def test_sizes_are_within_their_limits(
    built: Sequence[Sequence[images.Image]],
) -> None:
    print(sizes.table(built[0]))
    where = places.default()
    programs.build(where, ["reference"], testing.shown())
    for name, program in REFERENCE.items():
        size = len(gzip.compress(programs.path(where, program).read_bytes(), 6))
        print(f"{name}: the reference's {program} alone: {size / sizes.MB:.2f} MB")
    assert [text for image in built[0] for text in sizes.exceeded(image)] == []
