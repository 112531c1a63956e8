"""Writes the file system from which the guest runs: a cpio archive of chosen files."""

import os
import pathlib
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import IO

INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bb
export PATH=/usr/sbin:/usr/bin:/bb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /dev/shm /tmp /root /var/lib/kubelet
for module in $(cat /modules/order); do insmod /modules/$module; done
/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle
echo "guest: devices are set up"
export PYTHONPATH=/opt/agent:/opt/csi-node HOME=/root LC_ALL=C.UTF-8
exec python3.11 -u -m agent
"""
_DEPENDS = re.compile(rb"\0depends=([^\0]*)")
_SKIPPED = re.compile(
    r"^(usr/share|usr/include|boot|usr/lib/modules|var|etc/init|usr/games)(/|$)"
    r"|\.a$|/(idlelib|lib2to3|test|ensurepip|pydoc_data|gconv|locale)/"
)
_MERGED = re.compile(r"^(bin|sbin|lib|lib64)(?=/|$)")


def modules(folder: pathlib.Path, names: Iterable[str]) -> list[pathlib.Path]:
    """Return kernel modules and those they depend on, in the order of loading.

    Source: modinfo(8), field "depends"; "-" and "_" in names are the same.
    """
    files = {file.stem.replace("-", "_"): file for file in folder.rglob("*.ko")}
    order: list[pathlib.Path] = []

    def add(name: str) -> None:
        file = files[name.replace("-", "_")]
        if file in order:
            return
        match = _DEPENDS.search(file.read_bytes())
        for needed in match[1].decode().split(",") if match else ():
            if needed:
                add(needed)
        order.append(file)

    for name in names:
        add(name)
    return order


class Archive:
    """A cpio archive in the format "newc". Source: Linux initramfs buffer format."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._number = 0
        self._folders: set[str] = set()

    def add(self, name: str, mode: int, data: bytes = b"", device: int = 0) -> None:
        """Add an entry, and the folders above it."""
        above = os.path.dirname(name)
        if above and above not in self._folders:
            self.folder(above)
        self._number += 1
        path = name.encode() + b"\0"
        numbers = (
            *(self._number, mode, 0, 0, 1, 0, len(data), 0, 0),
            *(os.major(device), os.minor(device), len(path), 0),
        )
        head = b"070701" + b"".join(b"%08x" % number for number in numbers)
        self._write(head + path)
        self._write(data)

    def folder(self, name: str) -> None:
        """Add a folder, and those above it."""
        if name not in self._folders:
            self._folders.add(name)
            self.add(name, stat.S_IFDIR | 0o755)

    def close(self) -> None:
        """Write the end."""
        self.add("TRAILER!!!", 0)

    def _write(self, data: bytes) -> None:
        self._file.write(data + bytes(-len(data) % 4))


def entries(tree: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Yield name in the guest and path of what it needs of unpacked packages.

    /bin, /sbin and /lib are links into /usr there, as on every Debian.
    """
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        name = _MERGED.sub(lambda match: f"usr/{match[0]}", name)
        if not _SKIPPED.search(name) and (path.is_symlink() or path.is_file()):
            yield name, path


def write(
    target: pathlib.Path,
    tree: pathlib.Path,
    kernel_modules: Collection[pathlib.Path],
    programs: Iterable[tuple[str, pathlib.Path]],
) -> None:
    """Write the archive. programs: further folders, by their place in the guest."""
    with target.open("wb") as file:
        archive = Archive(file)
        for name in ("proc", "sys", "dev", "run", "tmp", "root", "bb", "etc", "mnt"):
            archive.folder(name)
        for name in ("bin", "sbin", "lib", "lib64"):
            archive.add(name, stat.S_IFLNK | 0o777, f"usr/{name}".encode())
        archive.add("usr/bin/sh", stat.S_IFLNK | 0o777, b"busybox")
        archive.add("dev/console", stat.S_IFCHR | 0o600, device=os.makedev(5, 1))
        archive.add("init", stat.S_IFREG | 0o755, INIT.encode())
        archive.add("etc/passwd", stat.S_IFREG | 0o644, b"root:x:0:0::/root:/bin/sh\n")
        _add_all(archive, entries(tree))
        for module in kernel_modules:
            name = f"modules/{module.name}"
            archive.add(name, stat.S_IFREG | 0o644, module.read_bytes())
        order = "\n".join(module.name for module in kernel_modules)
        archive.add("modules/order", stat.S_IFREG | 0o644, order.encode())
        for place, folder in programs:
            files = (path for path in sorted(folder.rglob("*")) if path.is_file())
            _add_all(
                archive,
                ((f"{place}/{path.relative_to(folder)}", path) for path in files),
            )
        archive.close()


def _add_all(archive: Archive, files: Iterable[tuple[str, pathlib.Path]]) -> None:
    known = set()
    for name, path in files:
        if name in known or "__pycache__" in name:
            continue
        known.add(name)
        if path.is_symlink():
            archive.add(name, stat.S_IFLNK | 0o777, os.readlink(path).encode())
        else:
            mode = stat.S_IFREG | (0o755 if os.access(path, os.X_OK) else 0o644)
            archive.add(name, mode, path.read_bytes())
