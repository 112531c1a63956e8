"""An image that is unpacked and run as a container is.

In namespaces of its own, as the user of the image, with a read-only root: what
containerd does with it, without containerd.
"""

import dataclasses
import json
import pathlib
import shlex
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from lib.lab.images import images

DEVICES = ("null", "zero", "random", "urandom")
"""Source: OCI Runtime Specification 1.2, config-linux, default devices."""
RUN_S = 900


@dataclasses.dataclass(frozen=True)
class UnpackedImage:
    """An unpacked image. config: user, entry point, environment, labels."""

    root: pathlib.Path
    config: Mapping[str, Any]

    def words(
        self,
        arguments: Sequence[str],
        mounts: Mapping[str, pathlib.Path] | None = None,
        env: Sequence[str] = (),
    ) -> list[str]:
        """Return the command that runs a program of the image.

        mounts: folders by the path at which they are mounted, read-only. env:
        variables besides those of the image, as NAME=value.
        """
        root = shlex.quote(str(self.root))
        steps = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
        steps.append(f"mount -t tmpfs -o mode=755 tmpfs {root}/dev")
        for device in DEVICES:
            at = f"{root}/dev/{device}"
            steps += [f"touch {at}", f"mount --bind /dev/{device} {at}"]
        for path, folder in (mounts or {}).items():
            at = f"{root}{path}"
            bind = f"mount --bind {shlex.quote(str(folder))} {at}"
            steps += [f"mkdir -p {at}", bind, f"mount -o remount,ro,bind {at}"]
        steps += [
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",  # noqa: S108
            f"mount -o remount,ro,bind {root}",
        ]
        variables = " ".join(map(shlex.quote, (*self.config["Env"], *env)))
        user = self.config["User"]
        program = " ".join(map(shlex.quote, arguments))
        chroot = f"/usr/sbin/chroot --userspec={user} {root}"
        run = f"exec env -i {variables} {chroot} {program}"
        script = " && ".join([*steps, run])
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM"),
            *("--propagation", "private", "sh", "-c", script),
        ]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image to its end."""
        return subprocess.run(
            self.words(arguments),
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )

    @property
    def program(self) -> str:
        """Return the entry point."""
        (only,) = self.config["Entrypoint"]
        return str(only)


def unpack(built: images.Image, folder: pathlib.Path) -> UnpackedImage:
    """Unpack an image into a folder that its user can read."""
    index = json.loads((built.layout / "index.json").read_text())
    (entry,) = index["manifests"]
    manifest = json.loads(blob(built.layout, entry["digest"]).read_text())
    described = json.loads(blob(built.layout, manifest["config"]["digest"]).read_text())
    root = folder / "root"
    for layer in manifest["layers"]:
        with tarfile.open(blob(built.layout, layer["digest"])) as archive:
            archive.extractall(root)  # noqa: S202 # built a moment ago
    (root / "tmp").chmod(0o1777)
    root.chmod(0o755)
    for above in (folder, *folder.parents):
        if above.stat().st_uid == 0 and above != pathlib.Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    return UnpackedImage(root, described["config"])


def blob(layout: pathlib.Path, digest: str) -> pathlib.Path:
    """Return the file of a blob."""
    return layout / "blobs" / digest.replace(":", "/")
