"""The image of osdpl-controller: built, and started as a container is.

In namespaces of its own, as the user of the image, with a read-only root: what
containerd does with it, without containerd. It installs from its /charts, too, as the
ServiceAccount of its chart.
"""

import base64
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import tarfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psutil
import pytest
import yaml

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.images import images
from lib.lab.osdpl import chart_set, chart_sources, controller, deployment
from lib.lab.run import processes
from tests.harness import testing
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import OperatorStage

MIB = 1024 * 1024
USER = 64535
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DEVICES = ("null", "zero", "random", "urandom")
"""Source: OCI Runtime Specification 1.2, config-linux, default devices."""
CHARTS = "/charts"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Source: Kubernetes, Accessing the API from a Pod."""
START_S = 300
INSTALL_S = 600


@dataclasses.dataclass(frozen=True)
class Container:
    """An unpacked image. config: as it says that it is run."""

    root: pathlib.Path
    config: Mapping[str, Any]
    size: int

    def words(
        self,
        arguments: Sequence[str],
        mounts: Mapping[str, pathlib.Path] | None = None,
        env: Sequence[str] = (),
    ) -> list[str]:
        """Return the command that runs a program of the image.

        mounts: folders by the path at which they are seen, read-only. env: variables
        besides those of the image, as NAME=value.
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
    source = images.ImageSource(pathlib.Path(), pex, COMMIT)
    built = images.build(where, source, "osdpl-controller", folder, testing.shown())
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
    assert user == group == str(USER)
    assert container.config["Labels"] == {images.REVISION: COMMIT}
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


@pytest.fixture(scope="module")
def site(
    where: places.Places,
    container: Container,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorStage]:
    """Run a cluster, and in it the controller of the image, as a pod has it."""
    pex = pexes.beside(pexes.OSDPL)
    with stage.opened(where, pex, testing.shown()) as opened:
        account = tmp_path_factory.mktemp("account")
        host, port = write_account(where, account)
        words = container.words(
            (
                container.program,
                f"--namespace={deployment.NAMESPACE}",
                "--chart-cache=/tmp/osdpl-controller",
                f"--chart-source={CHARTS}",
                "--bind-address=127.0.0.1",
                f"--secure-port={where.port(controller.NAME)}",
            ),
            {
                CHARTS: pathlib.Path(chart_sources.write_folder(where)),
                SERVICE_ACCOUNT: account,
            },
            (f"KUBERNETES_SERVICE_HOST={host}", f"KUBERNETES_SERVICE_PORT={port}"),
        )
        processes.start(where, controller.NAME, words)
        processes.wait_for(
            where, controller.NAME, lambda: controller.is_ready(where), START_S
        )
        yield opened


def write_account(where: places.Places, folder: pathlib.Path) -> tuple[str, int]:
    """Write the files of a ServiceAccount; return address and port of the API server.

    They can be read by the user of the image.
    """
    kubeconfig = yaml.safe_load(controller.kubeconfig(where).read_text())
    (cluster,), (user,) = kubeconfig["clusters"], kubeconfig["users"]
    authority = cluster["cluster"]["certificate-authority-data"]
    files = {
        "ca.crt": base64.b64decode(authority),
        "token": user["user"]["token"].encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
        os.chown(folder / name, USER, USER)
    folder.chmod(0o755)
    url = urllib.parse.urlsplit(cluster["cluster"]["server"])
    return str(url.hostname), int(url.port or 443)


def test_it_installs_from_its_chart_folder(site: OperatorStage) -> None:
    """Of a spec that names no repository."""
    document = deployment.manifest("")
    group = {"releases": {"version": chart_set.VERSION}}
    document["spec"]["common"] = {"openstack": group, "infra": group}
    site.apply(document)
    site.wait_deployed({"openstack-memcached", "etcd"}, INSTALL_S)
    assert COMMIT in site.log()
    bundle = site.get(deployment.BUNDLES, "openstack-memcached") or {}
    print(bundle["spec"])
    assert [row["url"] for row in bundle["spec"]["repositories"]] == [CHARTS]
    users = {
        uid
        for process in site.process().children(recursive=True)
        for uid in users_of(process)
    }
    assert users == {USER}


def users_of(process: psutil.Process) -> Sequence[int]:
    """Return the users of a process; none if it has ended."""
    try:
        return tuple(process.uids())
    except psutil.NoSuchProcess:
        return ()
