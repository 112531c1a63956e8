"""Building of images in a process of its own, with a clock and a locale of its own."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import debian_trees, oci_image, pexes
from lib.lab.images import description, images
from tests.harness import testing

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CREATED = "2026-01-02T03:04:05Z"
_RUN = "from tests.harness.images import building; building.main()"
_BUILD_S = 900


def source() -> images.ImageSource:
    """Return the checkout, and the PEX files that Pants put beside a test."""
    root = pathlib.Path.cwd()
    files = {
        name: pexes.beside(name) for name in description.names(root) if _is_there(name)
    }
    return images.ImageSource(root, files, COMMIT, CREATED)


def _is_there(name: str) -> bool:
    here = pathlib.Path.cwd()
    return any((here / at / f"{name}.pex").is_file() for at in ("", "dist"))


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What must not change an image. clock: of libfaketime, such as "+3d"."""

    clock: str
    umask: int
    env: Mapping[str, str]


def in_surroundings(
    surroundings: Surroundings, names: Sequence[str], output: pathlib.Path
) -> Sequence[images.Image]:
    """Build images in another process; return them without their files."""
    output.mkdir(parents=True)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(output), *names],
        env={
            **{
                name: os.environ[name]
                for name in ("PATH", "HOME")
                if name in os.environ
            },
            "PYTHONPATH": path,
            "LD_PRELOAD": str(_faketime()),
            "FAKETIME": surroundings.clock,
            **surroundings.env,
        },
        umask=surroundings.umask,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_BUILD_S,
        check=True,
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    return [
        images.Image(
            row["name"],
            row["reference"],
            row["digest"],
            [
                oci_image.Layer(**{**layer, "file": pathlib.Path(layer["file"])})
                for layer in row["layers"]
            ],
            pathlib.Path(row["layout"]),
            pathlib.Path(row["file"]),
            pathlib.Path(row["bill"]),
        )
        for row in rows
    ]


def main() -> None:
    """Build images, and print them as JSON. Arguments: output folder and names."""
    output, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    built = images.build(places.default(), source(), names, output, testing.shown())
    rows = [dataclasses.asdict(image) for image in built]
    print(json.dumps(rows, default=str))


def _faketime() -> pathlib.Path:
    """Return the library that shifts the clock of a process, a Debian package."""
    tree = places.default().cache / "faketime"
    if not tree.is_dir():
        choose = debian_trees.with_missing("libfaketime")
        with testing.shown().step("libfaketime") as step:
            debian_trees.unpack(tree, choose, os.environ, step)
    return next(tree.glob("usr/lib/*/faketime/libfaketime.so.1"))
