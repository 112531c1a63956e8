"""The image of csi-node: built, and started as a container is.

It has all kinds of layers: the base, tools, distributions and project code. All images
are built in all_images_test.py.
"""

import json
import pathlib

import pytest

from lib.kernel.linux import kernel
from lib.lab.images import images, rootfs, sizes
from tests.harness.images import bills, building
from tests.harness.images.container import UnpackedImage

MODULES = """
import importlib, pkgutil, pathlib, sys
import bz2, ctypes, decimal, hashlib, lzma, socket, ssl, uuid, zlib, zoneinfo
folder = pathlib.Path("/usr/lib/python3.11/lib-dynload")
names = sorted(file.name.split(".")[0] for file in folder.glob("*.so"))
for name in names:
    importlib.import_module(name)
print("modules", len(names))
print("zone", zoneinfo.ZoneInfo("Europe/Berlin").key)
print("authorities", len(ssl.create_default_context().get_ca_certs()) > 9)
print("names", socket.getaddrinfo("localhost", 1)[0][4][0])
print("user", __import__("os").getuid())
for path in ("/", "/etc", "/usr/bin", "/tmp"):
    try:
        (pathlib.Path(path) / "x").write_text("x")
        print("written", path)
    except OSError as error:
        print("refused", path, error.strerror)
"""
REPAIR = ("e2fsck", "xfs_repair")
SHELLS = ("sh", "bash", "dash", "busybox")
MANAGERS = ("apt", "apt-get", "dpkg", "pip", "pip3")


def test_sizes_are_within_their_limits(node_image: images.Image) -> None:
    print(sizes.table([node_image]))
    assert [layer.name for layer in node_image.layers] == list(sizes.LAYERS)
    assert sizes.exceeded(node_image) == ()


def test_it_is_described_as_it_is_run(node_container: UnpackedImage) -> None:
    config = node_container.config
    print(json.dumps(config, indent=1))
    assert config["User"] == "0:0"
    assert (node_container.root / node_container.program.lstrip("/")).exists()
    prefix = "org.opencontainers.image."
    labels = {key.removeprefix(prefix): text for key, text in config["Labels"].items()}
    assert labels == {
        "title": "csi-node",
        "description": "Node service of CSI",
        "version": node_container.run(node_container.program, "--version")
        .stdout.split()[1]
        .removeprefix("v"),
        "licenses": "Apache-2.0",
        "revision": building.COMMIT,
        "created": building.CREATED,
        "base.name": "bookworm",
    }


def programs_of_the_kernel() -> list[str]:
    """Return the programs that csi-node starts, and those of repairs."""
    return sorted(
        {
            *(words[0] for words in kernel.MKFS.values()),
            *("resize2fs", "xfs_growfs", "btrfs", "mount", "umount", "blkid"),
            *REPAIR,
        }
    )


@pytest.mark.parametrize("program", programs_of_the_kernel())
def test_a_tool_starts(node_container: UnpackedImage, program: str) -> None:
    for option in ("--version", "-V"):
        done = node_container.run(program, option)
        if done.returncode == 0:
            break
    print(done.stdout, done.stderr)
    assert done.returncode in (0, 1), "not an option of it, but it has started"
    assert "error while loading" not in done.stderr
    assert any(character.isdigit() for character in done.stdout + done.stderr)


def test_there_is_no_shell_and_no_package_manager(
    node_container: UnpackedImage,
) -> None:
    files = {
        file.name
        for folder in rootfs.SEARCH
        for file in (node_container.root / folder.lstrip("/")).glob("*")
    }
    print(sorted(files))
    assert files & {*SHELLS, *MANAGERS} == set()
    assert "python3.11" in files
    done = node_container.run("/bin/sh", "-c", "true")
    assert done.returncode == 127


def test_python_is_complete_and_only_the_scratch_folder_is_written(
    node_container: UnpackedImage,
) -> None:
    done = node_container.run("/usr/bin/python3.11", "-IB", "-c", MODULES)
    print(done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert int(lines[0].split()[1]) > 20
    assert lines[1:3] == ["zone Europe/Berlin", "authorities True"]
    assert lines[3] in ("names 127.0.0.1", "names ::1")
    assert lines[4] == "user 0"
    assert [line.split()[0] for line in lines[5:]] == ["refused"] * 3 + ["written"]


def test_all_modules_are_compiled(node_container: UnpackedImage) -> None:
    """A read-only root keeps no bytecode, and starting without it takes seconds."""
    root = node_container.root
    folders = ("usr/lib/python3.11", rootfs.PACKAGES, rootfs.PROJECT)
    for folder in folders:
        sources = list((root / folder).rglob("*.py"))
        missing = [file for file in sources if not _bytecode(file).exists()]
        print(f"{folder}: {len(sources)} modules, {len(missing)} without bytecode")
        assert sources
        assert missing == []


def _bytecode(file: pathlib.Path) -> pathlib.Path:
    return file.parent / "__pycache__" / f"{file.stem}.cpython-311.pyc"


def test_its_bill_of_materials_is_valid_and_complete(
    node_image: images.Image, node_container: UnpackedImage
) -> None:
    """Each Debian package and distribution that is in the image, and no other."""
    assert bills.problems(node_image) == []
    root = node_container.root
    status = root / "var/lib/dpkg/status.d"
    packages = {row["name"] for row in bills.of_kind(node_image, "deb")}
    assert packages == {file.name for file in status.iterdir()}
    infos = [file.name for file in (root / rootfs.PACKAGES).glob("*.dist-info")]
    distributions = bills.of_kind(node_image, "pypi")
    for row in (*bills.of_kind(node_image, "deb"), *distributions):
        licence = row["licenses"][0]["license"]["name"]
        print(f"{row['name']:24} {row['version']:28} {licence[:70]}")
    assert len(distributions) == len(infos) > 5
    assert bills.without_licence_text(node_image, node_container) == []
