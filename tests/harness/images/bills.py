"""Comparison of an image with its bill of materials."""

import pathlib
from collections.abc import Sequence
from typing import Any

from lib.lab.images import images, rootfs
from tests.harness.images import bill_schema
from tests.harness.images.container import UnpackedImage


def problems(image: images.Image) -> Sequence[str]:
    """Return what the schema and the project require, and a bill does not meet."""
    document = bill_schema.read(image.bill)
    errors = bill_schema.validator().iter_errors(document)
    rows = document["components"]
    incomplete = [
        f"{row['name']}: no {field}"
        for row in rows
        for field in ("version", "purl", "hashes", "licenses")
        if not row.get(field)
    ]
    digest = document["metadata"]["component"]["hashes"][0]["content"]
    other = (
        [] if image.digest == f"sha256:{digest}" else [f"of another image: {digest}"]
    )
    return [*(error.message for error in errors), *incomplete, *other]


def of_kind(image: images.Image, kind: str) -> list[dict[str, Any]]:
    """Return the components of a kind of package URL: deb, pypi or golang."""
    rows = bill_schema.read(image.bill)["components"]
    return [row for row in rows if row["purl"].startswith(f"pkg:{kind}/")]


def without_licence_text(image: images.Image, unpacked: UnpackedImage) -> list[str]:
    """Return the components of which the image contains no licence text."""
    root = unpacked.root
    missing = []
    for row in of_kind(image, "deb"):
        folder = root / rootfs.LICENCES / row["name"]
        if not (folder / "copyright").is_file():
            missing.append(row["name"])
    for row in of_kind(image, "golang"):
        if not (root / rootfs.LICENCES / "go" / row["name"] / "LICENSE").is_file():
            missing.append(row["name"])
    for row in of_kind(image, "pypi"):
        if not licence_files(root / rootfs.PACKAGES, row["name"], row["version"]):
            missing.append(row["name"])
    return missing


def licence_files(folder: pathlib.Path, name: str, version: str) -> list[pathlib.Path]:
    """Return the licence texts in the metadata of a distribution."""
    normal = name.lower().replace("-", "_").replace(".", "_")
    infos = [
        info
        for info in folder.glob(f"*-{version}.dist-info")
        if info.name.lower().replace("-", "_").replace(".", "_").startswith(normal)
    ]
    words = ("licen", "copying", "notice")
    files = [file for info in infos for file in info.rglob("*") if file.is_file()]
    return [file for file in files if file.name.lower().startswith(words)]
