"""Builds the image of a component into an OCI archive."""

import dataclasses
import pathlib
import platform
import shutil
import subprocess
import tempfile

from lib.lab import places
from lib.lab.artifacts import oci_image, programs
from lib.lab.images import description, rootfs
from lib.lab.run import progress
from lib.process import metrics

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go writes them."""
REVISION = "org.opencontainers.image.revision"
"""Label with the commit. Source: OCI Image Format Specification 1.1, annotations."""
_GIT_S = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class ImageSource:
    """What an image is built from.

    root: of the checkout. pex: of the component. commit: of the PEX; empty: unknown.
    """

    root: pathlib.Path
    pex: pathlib.Path
    commit: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image that was built. size: bytes of its only layer."""

    file: pathlib.Path
    reference: str
    size: int


def build(
    where: places.Places,
    source: ImageSource,
    name: str,
    output: pathlib.Path,
    shown: progress.Progress,
) -> Image:
    """Build the image NAME into output/NAME.tar.

    Raises:
        LabError: the description is malformed, or something of it is missing.
    """
    described = description.read(source.root, name)
    programs.build(where, described.programs, shown)
    files = {program: programs.path(where, program) for program in described.programs}
    reference = f"mooring/{name}:latest"
    with tempfile.TemporaryDirectory(prefix="mooring-image-") as scratch:
        tree = pathlib.Path(scratch) / "root"
        with shown.step(f"Collect the files of {name}"):
            tree.mkdir()
            rootfs.build(tree, described, source.pex, files)
        with shown.step(f"Write the image {name}"):
            layer = pathlib.Path(scratch) / "layer.tar"
            oci_image.write_layer(tree, layer)
            part = output / f".{name}.tar.new"
            output.mkdir(parents=True, exist_ok=True)
            config = configuration(described, source.commit)
            oci_image.write(part, reference, layer, config, architecture())
            size = layer.stat().st_size
            shutil.move(part, output / f"{name}.tar")
    return Image(output / f"{name}.tar", reference, size)


def architecture() -> str:
    """Return the architecture of this machine, as images name it."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def commit_of(checkout: pathlib.Path) -> str:
    """Return the commit of a checkout, empty without git.

    It ends with "-dirty" when tracked files differ from it. Source: git-describe(1).
    """
    words = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    try:
        done = subprocess.run(
            words,
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def configuration(described: description.Description, commit: str) -> dict[str, object]:
    """Return how it is run. Source: OCI Image Format Specification 1.1, config."""
    return {
        "User": f"{described.user}:{described.user}",
        "Entrypoint": [f"/{rootfs.BIN}/{described.pex}"],
        "Env": [
            f"PATH=/{rootfs.BIN}",
            f"HOME=/{rootfs.SCRATCH}",
            f"SSL_CERT_FILE=/{rootfs.CERTIFICATES}",
            *([f"{metrics.COMMIT}={commit}"] if commit else []),
        ],
        "Labels": {REVISION: commit} if commit else {},
        "WorkingDir": f"/{rootfs.SCRATCH}",
    }
