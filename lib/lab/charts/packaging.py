"""Packages of the charts of a checkout, each with its provenance file."""

import dataclasses
import pathlib

from lib.lab import places
from lib.lab.charts import charts, helm


@dataclasses.dataclass(frozen=True, slots=True)
class Signing:
    """A key of PGP, by its name in a keyring."""

    key: str
    keyring: pathlib.Path


def package(
    where: places.Places,
    root: pathlib.Path,
    target: pathlib.Path,
    signing: Signing | None = None,
) -> tuple[pathlib.Path, ...]:
    """Package every chart but the library; return the files, sorted.

    signing: helm writes a provenance file beside each package.

    Raises:
        LabError: helm failed.
    """
    target.mkdir(parents=True, exist_ok=True)
    files = (root / "charts").glob("*/Chart.yaml")
    names = sorted(file.parent.name for file in files)
    sign = (
        ["--sign", f"--key={signing.key}", f"--keyring={signing.keyring}"]
        if signing
        else []
    )
    for name in names:
        if name != charts.LIBRARY:
            folder = charts.folder(root, name)
            helm.run(where, ["package", folder, f"--destination={target}", *sign])
    return tuple(sorted(target.iterdir()))
