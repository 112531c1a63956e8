"""Runs cloud-data-discoverer in a lab, under its own ServiceAccount."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import socket
from collections.abc import Iterator, Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import metrics
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes, tls

NAME = "cloud-data-discoverer"
ACCOUNT = ("d8-cloud-provider-openstack", "cloud-data-discoverer")
NAMESPACE = "kube-system"
_INPUT = ("d8-provider-cluster-configuration", "cloud-provider-discovery-data.json")
DATA = ("d8-cloud-provider-discovery-data", "discovery-data.json")
"""Secrets of an installer and of the discoverer, each with its key.

Source: Deckhouse, module cloud-provider-openstack, cloud-data-discoverer.
"""
TIMEOUT_S = 5


def chart(name: str) -> str:
    """Return a file of the chart, such as files/rbac.yaml."""
    # Two rooms up from this file in a checkout, a sandbox and an unpacked PEX alike.
    root = pathlib.Path(__file__).parents[3]
    return (root / "charts" / NAME / name).read_text()


def permissions(
    *, manages_classes: bool = True, creates_secret: bool = True, reader: bool = True
) -> str:
    """Return the RBAC manifests of the chart.

    manages_classes: for --manage-storage-classes. creates_secret: to create the Secret
    with the discovery data. reader: also those of Deckhouse's Prometheus.
    """
    names = ["files/rbac.yaml"]
    names += ["files/rbac-storage-classes.yaml"] if manages_classes else []
    names += ["files/rbac-create-secret.yaml"] if creates_secret else []
    names += ["files/rbac-metrics-reader.yaml"] if reader else []
    return "---\n".join(chart(name) for name in names)


@dataclasses.dataclass(frozen=True, slots=True)
class Daemon:
    """One that runs. port: of plain HTTP on loopback. secure_port: of HTTPS."""

    where: places.Places
    name: str
    port: int
    secure_port: int

    def ask(self, path: str) -> tuple[int, str]:
        """Send a request by plain HTTP; return status and body."""
        address = ("127.0.0.1", self.port)
        return _ask(http.client.HTTPConnection(*address, timeout=TIMEOUT_S), path, {})

    def ask_securely(self, path: str, token: str) -> tuple[int, str]:
        """Ask HTTPS with a token, which may be empty; its certificate is its own."""
        context = tls.unverified()
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.secure_port, timeout=TIMEOUT_S, context=context
        )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return _ask(connection, path, headers)

    def serves(self) -> bool:
        """Report whether it answers and is well."""
        try:
            return self.ask("/healthz") == (200, "ok")
        except (OSError, http.client.HTTPException):
            return False

    def samples(self, series: str) -> tuple[tuple[Mapping[str, str], float], ...]:
        """Return what /metrics shows of a series: labels and values."""
        return metrics.samples(self.ask("/metrics")[1], series)

    def raised(self, series: str, label: str) -> frozenset[str]:
        """Return the values of a label for which a series is not 0."""
        samples = self.samples(series)
        return frozenset(labels[label] for labels, value in samples if value)

    def passes(self) -> int:
        """Count the steps that were taken, well or not."""
        samples = self.samples("mooring_reconcile_total")
        mine = [n for labels, n in samples if labels["controller"] == "discovery"]
        return int(sum(mine))

    def log(self) -> str:
        """Return all that it has logged."""
        return (self.where.log / f"{self.name}.log").read_text()

    def errors(self) -> str:
        """Return the failures in its log, as it was before it became JSON."""
        lines = [line for line in self.log().splitlines() if line.startswith("{")]
        return "\n".join(json.loads(line).get("err", "") for line in lines)


def install(where: places.Places, installed: Mapping[str, object]) -> None:
    """Create the namespace, the permissions and the CRD of the chart, and the Secret.

    installed: content of the Secret in which an installer describes the cluster.

    Raises:
        LabError: the control plane does not answer.
    """
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {ACCOUNT[0]}}}\n"
    crd = chart("crds/instancetypescatalogs.yaml")
    rights = permissions(manages_classes=False, reader=False)
    secret = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _INPUT[0], "namespace": NAMESPACE},
            "stringData": {_INPUT[1]: json.dumps(installed)},
        }
    )
    documents = (namespace, rights, crd, secret)
    control_plane.apply_manifests(where, "\n---\n".join(documents))


def start(
    where: places.Places,
    pex: pathlib.Path,
    env: Mapping[str, str],
    extra: Sequence[str] = (),
) -> None:
    """Start it on the lab's ports, unless it runs; return when it serves.

    env: the cloud's variables. extra: more flags.

    Raises:
        LabError: it ended, or did not serve in time.
    """
    _start(at(where), pex, env, extra)


def at(where: places.Places) -> Daemon:
    """Return the one of `start`."""
    return Daemon(where, NAME, where.port(NAME), where.port(f"{NAME}-secure"))


@contextlib.contextmanager
def running(
    where: places.Places,
    pex: pathlib.Path,
    name: str,
    env: Mapping[str, str],
    extra: Sequence[str] = (),
) -> Iterator[Daemon]:
    """Run it as its own ServiceAccount until the block ends.

    name: of the program in this lab. env: the cloud's variables. extra: more flags.
    """
    daemon = Daemon(where, name, _free_port(), _free_port())
    try:
        _start(daemon, pex, env, extra)
        yield daemon
    finally:
        processes.stop(where, [name])


def _start(
    daemon: Daemon, pex: pathlib.Path, env: Mapping[str, str], extra: Sequence[str]
) -> None:
    where, name = daemon.where, daemon.name
    admin, kubeconfig = (
        control_plane.admin_kubeconfig(where),
        where.state / f"{name}.kc",
    )
    api = cluster.connect(admin)
    cluster.service_account_kubeconfig(api, admin, ACCOUNT, kubeconfig)
    is_named = any(word.startswith("--cloud=") for word in extra)
    words = (
        *(() if is_named else ("--cloud=openstack",)),
        f"--listen-address=127.0.0.1:{daemon.port}",
        f"--secure-port={daemon.secure_port}",
        "--bind-address=127.0.0.1",
        "--logging-format=json",
        f"--kubeconfig={kubeconfig}",
        *extra,
    )
    whole = {**pexes.environment(where), **env}
    processes.start(where, name, [*pexes.command(pex), *words], whole)
    processes.wait_for(where, name, daemon.serves)


def _ask(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
) -> tuple[int, str]:
    with contextlib.closing(connection):
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
