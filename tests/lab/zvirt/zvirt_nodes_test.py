"""zvirt-ccm on a real control plane and a simulated engine: Nodes follow VMs."""

import pathlib
from collections.abc import Iterator

import pytest

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


@pytest.fixture(scope="module")
def pex() -> pathlib.Path:
    """Return the PEX file of zvirt-ccm."""
    return pexes.beside(NAME)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("engine")
    with serving(folder, "delay * 0.02") as engine:
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
        f"--kubeconfig={control_plane.admin_kubeconfig(apart)}",
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
        served.ask(do="rules", lines=["delay * 0.02", "html GET api/vms/* 404 -"])
        vms.delete(ids["goes-1"])
        nodes.until("goes-1 is not Ready", lambda: not nodes.is_ready("goes-1"))
        served.ask(do="rules", lines=["delay * 0.02"])
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
