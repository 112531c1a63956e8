"""The image of osdpl-controller: built, and started as a container is.

In namespaces of its own, as the user of the image, with a read-only root: what
containerd does with it, without containerd.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.images import images
from tests.harness import testing

MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Container:
    """An unpacked image. config: as it says that it is run."""

    root: pathlib.Path
    config: Mapping[str, Any]
    size: int

    def words(
        self, arguments: Sequence[str], mounts: Mapping[pathlib.Path, str] | None = None
    ) -> list[str]:
        """Return the command that runs a program of the image.

        mounts: folders by the path at which they are seen, read-only.
        """
        root = shlex.quote(str(self.root))
        steps = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
        for folder, path in (mounts or {}).items():
            steps.append(f"mount --bind {shlex.quote(str(folder))} {root}{path}")
        steps += [
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",  # noqa: S108
            f"mount -o remount,ro,bind {root}",
        ]
        env = " ".join(shlex.quote(one) for one in self.config["Env"])
        user = self.config["User"]
        program = " ".join(map(shlex.quote, arguments))
        run = f"exec env -i {env} /usr/sbin/chroot --userspec={user} {root} {program}"
        script = " && ".join([*steps, run])
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM"),
            *("--propagation", "private", "sh", "-c", script),
        ]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(arguments),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    @property
    def program(self) -> str:
        """Return the entry point."""
        (only,) = self.config["Entrypoint"]
        return str(only)


@pytest.fixture(scope="module")
def container(
    where: places.Places, tmp_path_factory: pytest.TempPathFactory
) -> Container:
    """Build the image and unpack it."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root: the image is built and not started")
    folder = tmp_path_factory.mktemp("image")
    pex = pexes.beside(pexes.OSDPL)
    built = images.build(
        where, pathlib.Path(), "osdpl-controller", pex, folder, testing.shown()
    )
    with tarfile.open(built.file) as archive:
        archive.extractall(folder / "oci", filter="data")
    blobs = folder / "oci"
    (entry,) = json.loads((blobs / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(blobs, entry["digest"]).read_text())
    described = json.loads(blob(blobs, manifest["config"]["digest"]).read_text())
    root = folder / "root"
    for layer in manifest["layers"]:
        with tarfile.open(blob(blobs, layer["digest"])) as archive:
            archive.extractall(root, filter="tar")
    (root / "tmp").chmod(0o1777)
    folder.chmod(0o755)
    for above in folder.parents:
        if above.stat().st_uid == os.geteuid() and above != pathlib.Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    return Container(root, described["config"], built.size)


def blob(folder: pathlib.Path, digest: str) -> pathlib.Path:
    return folder / "blobs" / digest.replace(":", "/")


def test_it_is_described_as_it_is_run(container: Container) -> None:
    print(f"{container.size / MIB:.0f} MiB, {container.config}")
    user, _, group = str(container.config["User"]).partition(":")
    assert user == group == "64535"
    assert (container.root / container.program.lstrip("/")).exists()
    assert container.size < 400 * MIB


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("/usr/local/bin/osdpl-controller", "--version"), 0, "osdpl-controller 0."),
        (("/usr/local/bin/osdpl-controller", "--helm-slots=0"), 2, "--helm-slots"),
        (("/usr/local/bin/helm", "version", "--short"), 0, "v4."),
        (("/bin/sh", "-c", "true"), 127, "No such file"),
    ],
)
def test_a_program_of_it_starts(
    container: Container, arguments: Sequence[str], code: int, words: str
) -> None:
    done = container.run(*arguments)
    print(done.stdout, done.stderr)
    assert done.returncode == code
    assert words in done.stdout + done.stderr


def test_nothing_but_the_scratch_folder_is_written(container: Container) -> None:
    code = (
        "import os, pathlib, socket, ssl\n"
        "print('user', os.getuid(), os.getgid(), 'pid', os.getpid())\n"
        "print('names', socket.getaddrinfo('localhost', 1)[0][4][0])\n"
        "print('authorities', len(ssl.create_default_context().get_ca_certs()) > 9)\n"
        "for path in ('/', '/etc', '/charts', '/usr/local/bin', '/tmp'):\n"
        "    try:\n"
        "        (pathlib.Path(path) / 'x').write_text('x')\n"
        "        print('written', path)\n"
        "    except OSError as error:\n"
        "        print('refused', path, error.strerror)\n"
    )
    done = container.run("/usr/local/bin/python3.11", "-IB", "-c", code)
    print(done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert lines[0] == "user 64535 64535 pid 1"
    assert lines[1] in ("names 127.0.0.1", "names ::1")
    assert lines[2] == "authorities True"
    refused = [line for line in lines[3:] if line.startswith("refused")]
    assert len(refused) == 4
    assert lines[-1] == "written /tmp"
