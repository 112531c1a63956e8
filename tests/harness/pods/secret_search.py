"""Where a container has a text: in its environment, or in the files of its pod."""

import os
import pathlib

import psutil

SIZE_MAX = 2**20
_KERNEL = {"proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "mqueue", "devpts"}


def places(process: psutil.Process, text: str, of_host: tuple[str, ...]) -> list[str]:
    """Return the variables and files of a process that contain a text.

    of_host: folders of the host that are mounted into the container.
    """
    folder = pathlib.Path(f"/proc/{process.pid}")
    needle = text.encode()
    variables = (folder / "environ").read_bytes().split(b"\0")
    named = [row.partition(b"=")[0].decode() for row in variables if needle in row]
    skipped = {*of_host, *_kernel_mounts(folder)}
    root = folder / "root"
    for at, names, files in os.walk(root):
        path = "/" + os.path.relpath(at, root).lstrip(".")
        names[:] = [n for n in names if str(pathlib.PurePath(path, n)) not in skipped]
        for name in files:
            file = pathlib.Path(at, name)
            if _contains(root, file, needle):
                named.append(str(pathlib.PurePath(path, name)))
    return named


def _contains(root: pathlib.Path, file: pathlib.Path, needle: bytes) -> bool:
    """Report whether a file has the text; links are followed inside the root."""
    for _ in range(8):
        if not file.is_symlink():
            break
        target = pathlib.PurePath(os.readlink(file))
        inside = target.relative_to("/") if target.is_absolute() else None
        file = root / inside if inside is not None else file.parent / target
    if not file.is_file() or file.stat().st_size > SIZE_MAX:
        return False
    return needle in file.read_bytes()


def _kernel_mounts(folder: pathlib.Path) -> set[str]:
    lines = (folder / "mounts").read_text().splitlines()
    return {line.split()[1] for line in lines if line.split()[2] in _KERNEL}
