"""Builds the image of a component into an OCI archive."""

import dataclasses
import pathlib
import platform
import shutil
import tempfile

from lib.lab import places
from lib.lab.artifacts import oci_image, programs
from lib.lab.images import description, rootfs
from lib.lab.run import progress

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go writes them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image that was built. size: bytes of its only layer."""

    file: pathlib.Path
    reference: str
    size: int


def build(
    where: places.Places,
    root: pathlib.Path,
    name: str,
    pex: pathlib.Path,
    output: pathlib.Path,
    shown: progress.Progress,
) -> Image:
    """Build the image NAME into output/NAME.tar.

    root: of the checkout. pex: of its component.

    Raises:
        LabError: the description is malformed, or something of it is missing.
    """
    described = description.read(root, name)
    programs.build(where, described.programs, shown)
    files = {program: programs.path(where, program) for program in described.programs}
    reference = f"mooring/{name}:latest"
    with tempfile.TemporaryDirectory(prefix="mooring-image-") as scratch:
        tree = pathlib.Path(scratch) / "root"
        with shown.step(f"Collect the files of {name}"):
            tree.mkdir()
            rootfs.build(tree, described, pex, files)
        with shown.step(f"Write the image {name}"):
            layer = pathlib.Path(scratch) / "layer.tar"
            oci_image.write_layer(tree, layer)
            part = output / f".{name}.tar.new"
            output.mkdir(parents=True, exist_ok=True)
            oci_image.write(part, reference, layer, _config(described), architecture())
            size = layer.stat().st_size
            shutil.move(part, output / f"{name}.tar")
    return Image(output / f"{name}.tar", reference, size)


def architecture() -> str:
    """Return the architecture of this machine, as images name it."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def _config(described: description.Description) -> dict[str, object]:
    """Return how it is run. Source: OCI Image Format Specification 1.1, config."""
    return {
        "User": f"{described.user}:{described.user}",
        "Entrypoint": [f"/{rootfs.BIN}/{described.pex}"],
        "Env": [
            f"PATH=/{rootfs.BIN}",
            f"HOME=/{rootfs.SCRATCH}",
            f"SSL_CERT_FILE=/{rootfs.CERTIFICATES}",
        ],
        "WorkingDir": f"/{rootfs.SCRATCH}",
    }
