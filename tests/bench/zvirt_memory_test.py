"""Memory of zvirt-ccm and cloud-data-discoverer with 1,000 Nodes and VMs.

The programs and the API server are real, the engine is the simulated one. Figures are
printed, and asserted with room, for sizes depend on the machine.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import time
from collections.abc import Iterator

from lib.kube import client, resources
from lib.kube import nodes as kube_nodes
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, discoverer
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes, waiting
from lib.lab.zvirt import seed, server
from tests.lib.lab.zvirt.many import fill
from tests.lib.lab.zvirt.served import Served, serving

NODES = 1000
MANAGER, MANAGER_MIB = "zvirt-ccm", 150
DISCOVERER_MIB = 100
ROOM = 1.2
"""A machine with other versions of libraries may need so much more."""
SETTLED_S = 10.0
NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: d8-cloud-provider-openstack}
"""


def rss_mib(where: places.Places, name: str) -> float:
    process = processes.find(where, name)
    assert process is not None, f"{name} does not run"
    return float(process.memory_info().rss) / (1 << 20)


def register(api: client.Api, number: int) -> None:
    """Create a Node as a kubelet does."""
    taint = {"key": kube_nodes.UNINITIALIZED_TAINT, "effect": "NoSchedule"}
    name = f"node-{number:05}"
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": [taint]},
        "status": {
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    api.create(resources.NODES, json.dumps(body).encode(), timeout_s=30)


def uninitialised(api: client.Api) -> int:
    page = api.list_page(resources.NODES, query={}, timeout_s=30)
    return page.count(kube_nodes.UNINITIALIZED_TAINT.encode())


def environment(served: Served) -> dict[str, str]:
    return {
        "ZVIRT_API_URL": served.url,
        "ZVIRT_USERNAME": seed.USER,
        "ZVIRT_PASSWORD": served.password,
        "ZVIRT_CA_BUNDLE": (served.folder / server.CA).read_text(),
    }


@contextlib.contextmanager
def manager(where: places.Places, served: Served) -> Iterator[None]:
    words = (
        "--cloud-provider=zvirt",
        "--configure-cloud-routes=false",
        f"--kubeconfig={control_plane.admin_kubeconfig(where)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={where.port(ccm.PORT)}",
        "--topology-labels",
        "--kube-api-qps=100",
        "--node-status-update-frequency=20s",
    )
    ccm.start(where, pexes.beside(MANAGER), words, environment(served), MANAGER)
    try:
        yield
    finally:
        processes.stop(where, [MANAGER])


def test_memory(ground: places.Places, tmp_path: pathlib.Path) -> None:
    api = cluster.connect(control_plane.admin_kubeconfig(ground))
    with serving(tmp_path) as served:
        fill(served.service.engine, NODES)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: register(api, number), range(NODES)))
        with manager(ground, served):
            waiting.until("all are initialised", lambda: uninitialised(api) == 0)
            time.sleep(SETTLED_S)
            of_manager = rss_mib(ground, MANAGER)
        control_plane.apply_manifests(ground, NAMESPACES)
        for manifest in (
            discoverer.permissions(),
            discoverer.chart("crds/instancetypescatalogs.yaml"),
        ):
            control_plane.apply_manifests(ground, manifest)
        pex = pexes.beside(discoverer.NAME)
        words = ("--cloud=zvirt", "--discovery-period=5s")
        env = environment(served)
        with discoverer.running(ground, pex, "memory", env, words) as daemon:
            waiting.until("three cycles", lambda: daemon.passes() >= 3)
            of_discoverer = rss_mib(ground, "memory")
    print(f"zvirt-ccm, {NODES} Nodes: {of_manager:.0f} MiB [{MANAGER_MIB}]")
    print(f"cloud-data-discoverer: {of_discoverer:.0f} MiB [{DISCOVERER_MIB}]")
    assert of_manager < MANAGER_MIB * ROOM
    assert of_discoverer < DISCOVERER_MIB * ROOM
