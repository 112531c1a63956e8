"""The files that come with this package, and what identifies them."""

import hashlib
import importlib.resources
import pathlib
from importlib.resources import abc

PACKAGES = "packages.lock.txt"
"""Every package of the lab's OpenStack, with version and hashes."""
UV = "uv.lock.txt"
"""The installer that unpacks them."""
CLIENT = "client.lock.txt"
"""The command line client; its own requirements are in PACKAGES."""
SEED = (
    "config.py",
    "database.py",
    "migrate.py",
    "seed_cloud.py",
    "seed_identity.py",
)
"""Our own code that decides what a fresh database holds."""

_ENTRY_POINTS = "entry_points.txt"
_DISTRIBUTION = "mooring_lab-1.0.dist-info"
_METADATA = "Metadata-Version: 2.1\nName: mooring-lab\nVersion: 1.0\n"


def _root() -> abc.Traversable:
    return importlib.resources.files("lib.lab.openstack")


def read(name: str) -> str:
    """Return the text of a file of this package ("templates/nova.conf")."""
    return _root().joinpath(*name.split("/")).read_text(encoding="utf-8")


def names(folder: str) -> tuple[str, ...]:
    """Return the files of a folder of this package, without its BUILD file."""
    entries = _root().joinpath(folder).iterdir()
    return tuple(
        sorted(
            f"{folder}/{file.name}"
            for file in entries
            if file.is_file() and file.name != "BUILD"
        )
    )


def digest(*parts: str) -> str:
    """Return 16 hexadecimal digits that identify `parts` in their order."""
    joined = hashlib.sha256()
    for part in parts:
        joined.update(f"{len(part)}:{part}".encode())
    return joined.hexdigest()[:16]


def seed_digest() -> str:
    """Identify everything of ours that decides what a fresh database holds."""
    templates, guest = names("templates"), names("guest")
    return digest(*(read(name) for name in (*SEED, *templates, *guest)))


def unpack_guest(folder: pathlib.Path) -> None:
    """Write the files that run with the lab's own Python to `folder`.

    Entry points are searched in `*.dist-info` folders on the module path, so that
    folder is made by hand; nothing is installed for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in names("guest"):
        _replace(folder / name.removeprefix("guest/"), read(name))
    info = folder / _DISTRIBUTION
    info.mkdir(exist_ok=True)
    _replace(info / "METADATA", _METADATA)
    (folder / _ENTRY_POINTS).replace(info / _ENTRY_POINTS)


def _replace(file: pathlib.Path, text: str) -> None:
    part = file.with_name(f".{file.name}.new")
    part.write_text(text, encoding="utf-8")
    part.replace(file)
