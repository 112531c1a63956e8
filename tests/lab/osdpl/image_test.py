"""The image of osdpl-controller: built, and started as a container is.

In namespaces of its own, as the user of the image, with a read-only root: what
containerd does with it, without containerd. It installs from its /charts, too, as the
ServiceAccount of its chart.
"""

import base64
import os
import pathlib
import urllib.parse
from collections.abc import Iterator, Sequence

import psutil
import pytest
import yaml

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.images import images, sizes
from lib.lab.osdpl import chart_set, chart_sources, controller, deployment
from lib.lab.run import processes
from tests.harness import testing
from tests.harness.images import building
from tests.harness.images import container as unpacking
from tests.harness.images.container import UnpackedImage
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import OperatorStage

USER = 64535
CHARTS = "/charts"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Source: Kubernetes, Accessing the API from a Pod."""


@pytest.fixture(scope="module")
def container(
    where: places.Places, tmp_path_factory: pytest.TempPathFactory
) -> UnpackedImage:
    """Build the image and unpack it."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root: the image is built and not started")
    folder = tmp_path_factory.mktemp("image")
    source = building.source()
    names = ["osdpl-controller"]
    (built,) = images.build(where, source, names, folder / "out", testing.shown())
    print(sizes.table([built]))
    assert sizes.exceeded(built) == ()
    return unpacking.unpack(built, folder)


def test_it_is_described_as_it_is_run(container: UnpackedImage) -> None:
    print(container.config)
    user, _, group = str(container.config["User"]).partition(":")
    assert user == group == str(USER)
    assert container.config["Labels"][images.REVISION] == building.COMMIT
    assert (container.root / container.program.lstrip("/")).exists()


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
    container: UnpackedImage, arguments: Sequence[str], code: int, words: str
) -> None:
    done = container.run(*arguments)
    print(done.stdout, done.stderr)
    assert done.returncode == code
    assert words in done.stdout + done.stderr


def test_nothing_but_the_scratch_folder_is_written(container: UnpackedImage) -> None:
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
    done = container.run("/usr/bin/python3.11", "-IB", "-c", code)
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
    container: UnpackedImage,
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
        processes.wait_for(where, controller.NAME, lambda: controller.is_ready(where))
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
    site.wait_deployed({"openstack-memcached", "etcd"})
    assert building.COMMIT in site.log()
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
