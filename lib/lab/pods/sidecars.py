"""Images of the CSI sidecars: the lab's own builds, under the names of the chart."""

import pathlib
from collections.abc import Mapping

import yaml

from lib.lab import places
from lib.lab.artifacts import oci_image, programs
from lib.lab.daemons import csi
from lib.lab.images import package_lock
from lib.lab.kube import kubelet

REGISTRY = "localhost/sidecars"
"""For the value global.sidecarRegistry."""


def references() -> Mapping[str, str]:
    """Return the image of each sidecar that the lab builds, by name of the program."""
    values = yaml.safe_load(_values().read_text())["sidecars"]
    named = {
        row["image"].rpartition("/")[2]: row["version"]
        for row in values.values()
        if isinstance(row, dict) and row["image"]
    }
    return {name: f"{REGISTRY}/{name}:{named[name]}" for name in csi.SIDECARS}


def _values() -> pathlib.Path:
    # Three folders up in a checkout, a sandbox and an unpacked PEX alike.
    return pathlib.Path(__file__).parents[3] / "charts/csi-controller/values.yaml"


def load(where: places.Places, folder: pathlib.Path) -> None:
    """Build the images and import them into containerd, which must run.

    Raises:
        LabError: a program is not built, or containerd rejects an image.
    """
    for name, reference in references().items():
        content = programs.path(where, name).read_bytes()
        file = folder / f"{name}.tar"
        image = oci_image.archive(reference, name, content, package_lock.architecture())
        file.write_bytes(image)
        kubelet.load_image(where, file)
        file.unlink()
