"""zvirt-ccm on a real control plane and a simulated engine: Nodes follow VMs.

Under its own rights, and through outages of the engine.
"""

import pathlib
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from lib.cloud.zvirt import component_rights
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes
from lib.lab.zvirt import seed, server
from tests.harness.dvp import dvp_manager
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.lab.zvirt.served import Served, serving

NAME = "zvirt-ccm"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
VMS = ("machine-1", "goes-1")
STEADY, SILENT = "machine-2", "machine-3"
"""Of outages: a Ready Node, and one whose kubelet is silent; both VMs are up."""
USUAL = "delay * 0.02"
HELD_S, SILENT_S = 30.0, 120.0
"""Of an outage: several checks of a Node, and more than an absence is confirmed for."""
ACCOUNT = ("kube-system", NAME)


@pytest.fixture(scope="module")
def pex() -> pathlib.Path:
    """Return the PEX file of zvirt-ccm."""
    return pexes.beside(NAME)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("engine")
    with serving(folder, USUAL) as engine:
        yield engine


@pytest.fixture()
def manager(apart: places.Places, pex: pathlib.Path, served: Served) -> Iterator[None]:
    """Run zvirt-ccm with the reference's arguments, and its password in a file."""
    password = served.folder / "password.txt"
    password.write_text(served.password)
    words = (
        "--cloud-provider=zvirt",
        "--allow-untagged-cloud=true",
        "--configure-cloud-routes=false",
        "--controllers=cloud-node,cloud-node-lifecycle",
        "--v=4",
        f"--kubeconfig={account(apart, served.folder)}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        "--bind-address=127.0.0.1",
        f"--secure-port={apart.port(ccm.PORT)}",
        "--topology-labels",
    )
    env = {
        "ZVIRT_API_URL": served.url,
        "ZVIRT_USERNAME": "admin@internal",
        "ZVIRT_PASSWORD_FILE": str(password),
        "ZVIRT_CA_BUNDLE": (served.folder / server.CA).read_text(),
    }
    ccm.start(apart, pex, words, env, NAME)
    yield
    processes.stop(apart, [NAME])


def account(apart: places.Places, folder: pathlib.Path) -> pathlib.Path:
    """Apply the manifest of zvirt-ccm; return a kubeconfig of its account."""
    control_plane.apply_manifests(apart, component_rights.manifest())
    admin, target = control_plane.admin_kubeconfig(apart), folder / "child.kubeconfig"
    api = cluster.connect(admin)
    cluster.service_account_kubeconfig(api, admin, ACCOUNT, target)
    return target


@pytest.fixture()
def nodes(apart: places.Places) -> dvp_manager.SeenNodes:
    return dvp_manager.SeenNodes(cluster.connect(control_plane.admin_kubeconfig(apart)))


@pytest.fixture()
def kubelets(apart: places.Places) -> Iterator[dvp_manager.Kubelets]:
    running = dvp_manager.Kubelets(
        cluster.connect(control_plane.admin_kubeconfig(apart))
    )
    yield running
    running.end()


@pytest.mark.usefixtures("manager")
def test_nodes_follow_their_vms(
    served: Served,
    nodes: dvp_manager.SeenNodes,
    kubelets: dvp_manager.Kubelets,
) -> None:
    """Initialise, stop, start, delete, with a gateway that answers 404 in between."""
    vms = Vms(served.service)
    ids = {name: vms.boot(name) for name in VMS}
    nodes.register_foreign("static-1", "static://rack/1")
    static = nodes.get("static-1")
    kubelets.boot(*VMS)
    try:
        for name, vm in ids.items():
            check_initialised(nodes, name, vm)
        vms.stop(ids["machine-1"])
        kubelets.fall_silent("machine-1", "goes-1")
        nodes.until(
            "a VM that is down: the taint",
            lambda: SHUTDOWN in nodes.taints("machine-1"),
        )
        vms.delete(ids["goes-1"])
        nodes.until("goes-1 is not Ready", lambda: not nodes.is_ready("goes-1"))
        served.ask(do="rules", lines=[USUAL, "html GET api/vms/* 404 -"])
        before = versions(nodes, "goes-1")
        time.sleep(HELD_S)
        assert versions(nodes, "goes-1") == before, "a gateway's 404 proves nothing"
        served.ask(do="rules", lines=[USUAL])
        vms.request("POST", f"vms/{ids['machine-1']}/start", "<action/>")
        served.ask(do="advance", seconds=20)
        kubelets.boot("machine-1")
        nodes.until(
            "it runs again: no taint", lambda: SHUTDOWN not in nodes.taints("machine-1")
        )
        nodes.until("a VM that is gone: no Node", lambda: nodes.get("goes-1") is None)
        assert static is not None
        kept = nodes.get("static-1")
        assert kept is not None
        assert kept["spec"]["providerID"] == static["spec"]["providerID"]
        writes = {
            kind
            for kind in served.service.counts
            if not kind.startswith("GET ") and "sso/" not in kind
        }
        assert writes == set()
        print(dict(served.service.counts))
    finally:
        nodes.show()


def check_initialised(nodes: dvp_manager.SeenNodes, name: str, vm: str) -> None:
    nodes.until(f"{name} is initialised", lambda: not nodes.is_new(name))
    node = nodes.get(name)
    assert node is not None
    assert node["spec"]["providerID"] == f"zvirt://{vm}"
    kinds = [kind for kind, _ in nodes.addresses(name)]
    assert kinds == ["ExternalIP", "InternalIP", "Hostname"]
    labels = node["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == seed.CLUSTER
    assert labels["node.kubernetes.io/instance-type"] == seed.TEMPLATE


def versions(nodes: dvp_manager.SeenNodes, *names: str) -> Mapping[str, str]:
    """Return the versions of Nodes, which each write increases."""
    by_name = {name: nodes.get(name) for name in names}
    return {
        name: node["metadata"]["resourceVersion"]
        for name, node in by_name.items()
        if node is not None
    }


def facts(nodes: dvp_manager.SeenNodes, name: str) -> object:
    """Return the parts of a Node that zvirt-ccm writes."""
    node = nodes.get(name)
    assert node is not None, f"{name} is lost"
    return node["spec"], node["metadata"]["labels"], node["status"]["addresses"]


def rules(served: Served, *lines: str) -> None:
    served.ask(do="rules", lines=[USUAL, *lines])


def rotate(served: Served, password: str) -> None:
    served.service.sso.set_password("admin@internal", password)
    served.service.sso.lose_tokens()


def stall(served: Served) -> None:
    rules(served, "silence POST sso/* -")
    served.service.sso.lose_tokens()


Step = Callable[[Served], None]
OUTAGES: Mapping[str, tuple[float, Step, Step]] = {
    "the engine is silent": (
        SILENT_S,
        lambda served: rules(served, "silence * * -"),
        lambda served: rules(served),
    ),
    "the engine is restarted": (
        HELD_S,
        lambda served: served.stop(),
        lambda served: served.start(),
    ),
    "a gateway answers 503 with a page": (
        HELD_S,
        lambda served: rules(served, "html * * 503 -"),
        lambda served: rules(served),
    ),
    "the single sign-on stalls": (
        HELD_S,
        stall,
        lambda served: rules(served),
    ),
    "the session was idle for an hour": (
        HELD_S,
        lambda served: served.service.engine.advance(3600.0),
        lambda served: None,
    ),
    "all permissions are revoked": (
        HELD_S,
        lambda served: rules(served, "hide *"),
        lambda served: rules(served),
    ),
    "the password is rotated, the file 30 s later": (
        HELD_S,
        lambda served: rotate(served, "another password"),
        lambda served: write_password(served, "another password"),
    ),
}
"""Seconds, the beginning and the end of each outage."""


def write_password(served: Served, password: str) -> None:
    (served.folder / "password.txt").write_text(password)


@pytest.mark.usefixtures("manager")
def test_no_outage_loses_or_changes_a_node(
    served: Served,
    nodes: dvp_manager.SeenNodes,
    kubelets: dvp_manager.Kubelets,
) -> None:
    """After each one, a new Node is initialised; in the end a VM is deleted."""
    vms = Vms(served.service)
    ids = {name: vms.boot(name) for name in (STEADY, SILENT)}
    kubelets.boot(STEADY, SILENT)
    try:
        for name, vm in ids.items():
            check_initialised(nodes, name, vm)
        kubelets.fall_silent(SILENT)
        nodes.until("not Ready", lambda: not nodes.is_ready(SILENT))
        for number, (outage, (held_s, begin, end)) in enumerate(OUTAGES.items()):
            before = facts(nodes, STEADY), versions(nodes, SILENT)
            begin(served)
            time.sleep(held_s)
            assert (facts(nodes, STEADY), versions(nodes, SILENT)) == before, outage
            end(served)
            name = f"fresh-{number}"
            vms.boot(name)
            kubelets.boot(name)
            nodes.until(f"after: {outage}", lambda name=name: not nodes.is_new(name))
        vms.stop(ids[SILENT])
        nodes.until("the taint", lambda: SHUTDOWN in nodes.taints(SILENT))
        vms.delete(ids[SILENT])
        nodes.until("no VM, no Node", lambda: nodes.get(SILENT) is None)
    finally:
        nodes.show()
