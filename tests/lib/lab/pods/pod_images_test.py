"""Images of a lab with charts: found, or one sentence with the command."""

import json
import pathlib

import pytest

from lib.lab import errors
from lib.lab.artifacts import oci_image
from lib.lab.pods import pod_images

NAMES = ("csi-controller", "csi-node")
REFERENCE = "localhost/mooring/csi-node:0.1.0"


def test_each_image_has_its_archive(tmp_path: pathlib.Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.tar").touch()
    files = pod_images.find(tmp_path, NAMES)
    assert files == {name: tmp_path / f"{name}.tar" for name in NAMES}


def test_the_command_that_builds_missing_images_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the usual folder it needs no option."""
    (tmp_path / "csi-controller.tar").touch()
    with pytest.raises(errors.LabError) as raised:
        pod_images.find(tmp_path, NAMES)
    assert str(raised.value).startswith(f"{tmp_path}/csi-node.tar: not found")
    assert f"`mooring lab image csi-node --output {tmp_path}`" in str(raised.value)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.LabError) as raised:
        pod_images.find(pathlib.Path(pod_images.FOLDER).absolute(), NAMES)
    assert "`mooring lab image csi-controller csi-node`" in str(raised.value)


def test_the_reference_is_that_of_the_archive(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "csi-node.tar"
    file.write_bytes(oci_image.archive(REFERENCE, "pause", b"program", "amd64"))
    assert pod_images.reference(file) == REFERENCE


@pytest.mark.parametrize("content", [b"", b"no archive", json.dumps([]).encode()])
def test_another_file_is_one_sentence(tmp_path: pathlib.Path, content: bytes) -> None:
    file = tmp_path / "csi-node.tar"
    file.write_bytes(content)
    with pytest.raises(errors.LabError, match=r"csi-node\.tar: no archive of an image"):
        pod_images.reference(file)
