"""A thousand Nodes: requests of dvp-ccm to the parent, writes of a restart, memory."""

import collections
import concurrent.futures
import time

import psutil

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, metrics
from lib.lab.dvp.project import Project
from lib.lab.kube import simulated_kubelet
from lib.lab.run import processes
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent

NUMBER = 1000
MOST_REQUESTS = 6
RSS_MAX_MIB = 150
SETTLE_S = 20.0


def requests(parent: DvpParent, project: Project) -> collections.Counter[str]:
    return collections.Counter(row.verb for row in parent.requests(project))


def rss_mib(where: places.Places) -> float:
    process = processes.find(where, dvp_manager.NAME)
    assert process is not None
    return float(psutil.Process(process.pid).memory_info().rss) / 2**20


def writes_of_nodes(where: places.Places) -> float:
    """Return the number of writes of Nodes, by the process's own metrics."""
    text = ccm.ask(where, "/metrics", timeout_s=30)[1]
    return sum(
        metrics.total(
            text, "rest_client_requests_total", method=method, resource="nodes"
        )
        for method in ("PATCH", "DELETE", "POST", "PUT")
    )


def test_a_thousand_nodes_are_few_requests(
    where: places.Places, api: client.Api, parent: DvpParent, project: Project
) -> None:
    """Initialised by two pages of one list; a restart reads, and writes no Node."""
    names = parent.seed(project, NUMBER)
    nodes = dvp_manager.SeenNodes(api)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        now = dvp_manager.utc_now()
        list(pool.map(lambda n: simulated_kubelet.register(api, n, now), names))
    env = dvp_manager.environment(project)
    words = dvp_manager.arguments(
        where, project.kubeconfig, [dvp_manager.NODES_ONLY, "--v=2"]
    )
    pex = pexes.beside(dvp_manager.NAME)
    before = requests(parent, project)
    with dvp_manager.running(where, pex, words, env):
        took_s = nodes.until("all initialised", lambda: not nodes.new())
        used = requests(parent, project) - before
        print(f"{NUMBER} Nodes initialised in {took_s:.0f} s: {dict(used)}")
        assert used.total() <= MOST_REQUESTS
        time.sleep(SETTLE_S)
        print(f"{rss_mib(where):.0f} MiB with {NUMBER} Nodes and VMs")
        assert rss_mib(where) <= RSS_MAX_MIB
    before = requests(parent, project)
    with dvp_manager.running(where, pex, words, env):
        time.sleep(SETTLE_S)
        used = requests(parent, project) - before
        written = writes_of_nodes(where)
    print(f"restart: {dict(used)}, {written:.0f} writes of Nodes")
    assert used.total() <= MOST_REQUESTS
    assert written == 0
    assert len(nodes.names()) == NUMBER
