"""QEMU, and what a guest consists of: unpacked Debian packages, in the lab's cache."""

import os
import pathlib
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import debian, debian_trees, pexes
from lib.lab.run import progress

KERNEL = "linux-image-cloud-amd64"
MODULES = ("virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod")
_PROGRAMS = (
    *("busybox-static", "udev", "kmod", "e2fsprogs", "logsave", "mount", "util-linux"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)
_LIBRARIES = (
    *("libacl1", "libattr1", "libaudit1", "libblkid1", "libbz2-1.0", "libc6"),
    *("libcap-ng0", "libcap2", "libcom-err2", "libcrypt1", "libexpat1", "libext2fs2"),
    *("libffi8", "libgcc-s1", "libkmod2", "liblzma5", "libmount1", "libpcre2-8-0"),
    *("libselinux1", "libsmartcols1", "libss2", "libssl3", "libstdc++6", "libtinfo6"),
    *("libudev1", "libuuid1", "libzstd1", "zlib1g"),
)


def unavailable() -> str | None:
    """Return in one sentence why there is no guest here; None when there is."""
    if platform.machine() != "x86_64":
        return "the guest is an x86-64 machine, and its programs are this machine's"
    tools = ("apt-get", "apt-cache", "dpkg-deb")
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if lacking:
        return f"{lacking[0]} is absent: QEMU is an unpacked Debian package"
    return None


def host_tree(where: places.Places) -> pathlib.Path:
    """Return the tree with QEMU."""
    return where.cache / "guest/host"


def guest_tree(where: places.Places) -> pathlib.Path:
    """Return the tree with the guest's kernel and programs."""
    return where.cache / "guest/tree"


def kernel(where: places.Places) -> pathlib.Path:
    """Return the guest's kernel."""
    return next((guest_tree(where) / "boot").glob("vmlinuz-*"))


def ensure(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Unpack both trees, unless they are there.

    Raises:
        LabError: packages cannot be downloaded.
    """
    if not host_tree(where).is_dir():
        choose = debian_trees.with_missing("qemu-system-x86")
        debian_trees.unpack(host_tree(where), choose, env, step)
    if not guest_tree(where).is_dir():
        debian_trees.unpack(guest_tree(where), _of_the_guest, env, step)


def _of_the_guest(options: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
    """Choose the packages of the guest; the kernel's name contains its version."""
    lines = debian.output(["apt-cache", *options, "depends", KERNEL], env, KERNEL)
    depends = [line.split() for line in lines if line.strip().startswith("Depends:")]
    return (*_PROGRAMS, *_LIBRARIES, *(words[1] for words in depends))


def unpacked_pex(pex: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Unpack the code of a PEX file; return the folder that is to be on the path."""
    command = [*pexes.command(pex), "venv", "--collisions-ok", str(target)]
    env = {**os.environ, "PEX_TOOLS": "1"}
    subprocess.run(command, env=env, check=True, timeout=300)
    return next(target.glob("lib/python*/site-packages"))
