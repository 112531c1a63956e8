"""All images: the same bytes in each build, and their sizes beside the reference."""

import gzip
import pathlib
import socket
import time
from collections.abc import Sequence

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.images import description, images, publishing, sizes
from lib.lab.run import processes, waiting
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.images import bills, building, container, provider_files
from tests.harness.images.building import Surroundings

FIRST = Surroundings(
    "-400d", 0o022, {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1"}
)
SECOND = Surroundings(
    "+900d",
    0o077,
    {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2", "LANG": "de_DE"},
)
SHARED = ("cloud-data-discoverer", "csi-controller", "csi-node")
CLOUDS = ("dvp", "openstack")
ADDED_LIMIT = 400_000
"""Bytes that one cloud may add to a shared image, compressed."""
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


def test_bills_of_materials_are_valid_and_licence_texts_are_there(
    built: Sequence[Sequence[images.Image]], tmp_path: pathlib.Path
) -> None:
    for image, other in zip(*built, strict=True):
        kinds = {k: len(bills.of_kind(image, k)) for k in ("deb", "pypi", "golang")}
        print(f"{image.name:24} {kinds}")
        assert image.bill.read_bytes() == other.bill.read_bytes()
        assert bills.problems(image) == []
        unpacked = container.unpack(image, tmp_path / image.name)
        assert bills.without_licence_text(image, unpacked) == []
        assert kinds["deb"] > 15
        assert kinds["pypi"] > 5
        assert (kinds["golang"] > 50) == (image.name == "osdpl-controller")


def test_a_third_party_accepts_the_images(
    built: Sequence[Sequence[images.Image]], lease: leases.Lease
) -> None:
    """crane compares all digests; a real registry takes the layouts as they are."""
    where = lease.where
    programs.build(where, [publishing.GROUP, "registry"], testing.shown())
    address = f"127.0.0.1:{where.port('chart-registry')}"
    folder = where.state / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    words = (f"--address={address}", f"--folder={folder}")
    processes.start(where, "registry", (programs.path(where, "registry"), *words))
    try:
        waiting.until("the registry answers", lambda: answers(where))
        for image in built[0]:
            publishing.validate(where, image.file)
            reference = publishing.push(where, image, f"{address}/mooring")
            publishing.validate_remote(where, reference)
            print(reference)
    finally:
        processes.stop(where, ["registry"])


def answers(where: places.Places) -> bool:
    """Report whether the registry listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", where.port("chart-registry"))) == 0


def test_a_damaged_image_is_rejected(
    built: Sequence[Sequence[images.Image]], tmp_path: pathlib.Path
) -> None:
    """The validator is no rubber stamp: one byte of a layer has changed."""
    image = min(built[0], key=lambda image: image.size)
    content = bytearray(image.file.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(content)
    with pytest.raises(errors.LabError, match="damaged.tar is invalid"):
        publishing.validate(places.default(), damaged)


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


def test_clouds_share_images_at_little_cost(
    built: Sequence[Sequence[images.Image]],
) -> None:
    """What each cloud adds to an image of several: no distribution, and few files."""
    rows = {}
    for image in built[0]:
        if image.name in SHARED:
            for cloud in CLOUDS:
                rows[image.name, cloud] = added = provider_files.of(image, cloud)
                size_kb, packed_kb = added.size / 1000, added.packed / 1000
                print(
                    f"{image.name:24} {cloud:10} {added.count:4} files"
                    f" {size_kb:6.0f} kB, compressed {packed_kb:.0f}"
                )
    assert rows.keys() == {(name, cloud) for name in SHARED for cloud in CLOUDS}
    # csi-node has no client of a cloud.
    assert all(row.count for (_, cloud), row in rows.items() if cloud == "dvp")
    assert all(row.packed <= ADDED_LIMIT for row in rows.values())
