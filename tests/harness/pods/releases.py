"""A release of the umbrella chart before the present one, as long as none is tagged.

Chart and images are those of the present one with another version, and the images have
another commit: helm and the kubelet replace every pod.
"""

import dataclasses
import json
import pathlib
import shutil
from typing import Any

import yaml

from lib.lab.artifacts import oci_image
from lib.lab.images import images, package_lock
from lib.lab.kube import kubelet
from tests.harness.images import building
from tests.harness.pods import installed_node

PREVIOUS = "0.0.9"
COMMIT = "9" * 40
_VERSION = "org.opencontainers.image.version"


def chart(present: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Return the folder of the previous chart. present: the folder of this one."""
    version = yaml.safe_load((present / "Chart.yaml").read_text())["version"]
    copy = folder / present.name
    shutil.copytree(present, copy)
    for file in copy.rglob("Chart.yaml"):
        file.write_text(file.read_text().replace(version, PREVIOUS))
    return copy


def load_images(
    node: installed_node.InstalledNode, folder: pathlib.Path
) -> installed_node.Images:
    """Import the images of the previous chart; return their references.

    Raises:
        LabError: containerd rejects one.
    """
    references = {}
    for name, image in node.images.items():
        layout, file = folder / name, folder / f"{name}.tar"
        reference = f"{image.reference.rpartition(':')[0]}:{PREVIOUS}"
        manifest = oci_image.Manifest(
            reference=reference,
            config=_configuration(image),
            architecture=package_lock.architecture(),
        )
        blobs = image.layout / "blobs/sha256"
        layers = [
            dataclasses.replace(layer, file=blobs / layer.digest.partition(":")[2])
            for layer in image.layers
        ]
        digest = oci_image.write_layout(layout, manifest, layers)
        assert digest != image.digest
        oci_image.write_archive(layout, file)
        kubelet.load_image(node.where, file)
        file.unlink()
        references[name] = reference
    return references


def _configuration(image: images.Image) -> dict[str, Any]:
    """Return how an image is run, with the version and commit of the previous one."""
    (saved,) = json.loads((image.layout / "manifest.json").read_text())
    text = (image.layout / saved["Config"]).read_text()
    config = dict(json.loads(text.replace(building.COMMIT, COMMIT))["config"])
    return {**config, "Labels": {**config["Labels"], _VERSION: PREVIOUS}}
