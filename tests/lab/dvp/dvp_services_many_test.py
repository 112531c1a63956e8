"""Services of many Nodes on a real parent: writes, requests of a restart, memory.

One more Node of a Service of 100 is one write. Then 1,000 VMs and 100 Services, as the
reference leaves them: adopted by one write each, and a restart writes nothing.
"""

import collections
import concurrent.futures
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import psutil
import pytest

from lib.cloud.dvp.load_balancers import lb_names
from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, metrics
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import simulated_kubelet
from lib.lab.run import processes, waiting
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.services.services import Services

FEW, MANY, NUMBER = 100, 1000, 100
MOST_REQUESTS = 12
RSS_MAX_MIB = 150
SETTLE_S = 20.0
HOUR = (
    "--lb-drift-period=10s",
    "--node-status-update-frequency=5s",
    "--node-monitor-period=100ms",
)
"""Six drift checks, twelve updates of addresses, 720 checks of Nodes: those of an hour
with the default periods, in HOUR_S."""
HOUR_S = 73.0
SERVICES = resources.SERVICES
READS = ("get", "list", "watch", "")


class Crowd:
    """A child with many Nodes, and its parent."""

    def __init__(
        self,
        where: places.Places,
        api: client.Api,
        parent: DvpParent,
        project: Project,
    ) -> None:
        self.where, self.api = where, api
        self.parent, self.project = parent, project
        self.objects = parent.objects(project)
        self.nodes = dvp_manager.SeenNodes(api)
        self.services = Services(api, "crowd")

    def boot(self, count: int, prefix: str) -> Sequence[str]:
        """Create VMs that run, and their Nodes, not initialised yet."""
        names = self.parent.seed(self.project, count, prefix)
        now = dvp_manager.utc_now()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    lambda name: simulated_kubelet.register(self.api, name, now), names
                )
            )
        return names

    def requests(self) -> collections.Counter[tuple[str, str]]:
        """Count the requests of the project's user, once no more come."""
        self.parent.settled(self.project)
        rows = self.parent.requests(self.project)
        return collections.Counter((row.verb, row.resource) for row in rows)

    def has_address(self, service: str) -> bool:
        status = (self.services.get(service) or {}).get("status", {})
        return bool(status.get("loadBalancer", {}).get("ingress"))

    def labelled(self, key: str) -> int:
        """Count the VMs with a label."""
        vms = self.objects.all(MACHINES)
        return sum(key in vm["metadata"]["labels"] for vm in vms)

    def leave(self, names: Sequence[str]) -> None:
        """Create Services, and what the reference has created for them."""
        created = [self.services.make(f"many-{number}") for number in range(NUMBER)]
        labels: dict[str, str] = {}
        for document in created:
            name = lb_names.object_name(document["metadata"]["uid"])
            key = lb_names.label_key(name)
            labels[key] = lb_names.LABEL_VALUE
            port = document["spec"]["ports"][0]
            ports = {"name": port["name"], "protocol": "TCP", "port": 80}
            spec = {
                "type": "LoadBalancer",
                "selector": {key: lb_names.LABEL_VALUE},
                "ports": [{**ports, "targetPort": port["nodePort"]}],
                "externalTrafficPolicy": "Cluster",
            }
            self.objects.make(SERVICES, name, spec=spec)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    lambda vm: self.objects.patch(
                        MACHINES, vm, metadata={"labels": labels}
                    ),
                    names,
                )
            )

    def passes(self) -> float:
        """Return the number of reconciliations of the process so far."""
        text = ccm.ask(self.where, "/metrics", timeout_s=30)[1]
        return metrics.total(text, "mooring_reconcile_total")

    def rss_mib(self) -> float:
        process = processes.find(self.where, dvp_manager.NAME)
        assert process is not None
        return float(psutil.Process(process.pid).memory_info().rss) / 2**20


@pytest.fixture(scope="module")
def crowd(
    where: places.Places, api: client.Api, parent: DvpParent, project: Project
) -> Iterator[Crowd]:
    new = Crowd(where, api, parent, project)
    yield new
    new.nodes.delete_all()


def running(crowd: Crowd, *flags: str) -> AbstractContextManager[None]:
    """Return what runs dvp-ccm with all its controllers."""
    words = dvp_manager.arguments(
        crowd.where, crowd.project.kubeconfig, ["--leader-elect=false", "--v=2", *flags]
    )
    env = dvp_manager.environment(crowd.project)
    return dvp_manager.running(crowd.where, pexes.beside(dvp_manager.NAME), words, env)


def test_one_more_node_of_a_service_is_one_write(crowd: Crowd) -> None:
    """A Service of 100 Nodes is 101 writes: its object, and a label for each VM."""
    crowd.boot(FEW, "few")
    with running(crowd):
        waiting.until("initialised", lambda: not crowd.nodes.new())
        before = crowd.requests()
        document = crowd.services.make("web")
        key = lb_names.label_key(lb_names.object_name(document["metadata"]["uid"]))
        waiting.until("labels", lambda: crowd.labelled(key) == FEW)
        waiting.until("address", lambda: crowd.has_address("web"))
        sent = writes(crowd.requests() - before)
        print(f"a Service of {FEW} Nodes: {sent}")
        assert sum(sent.values()) == FEW + 1
        before = crowd.requests()
        crowd.boot(1, "more")
        waiting.until("one more", lambda: crowd.labelled(key) == FEW + 1)
        sent = writes(crowd.requests() - before)
        print(f"one more Node: {sent}")
        assert sum(sent.values()) == 1
        crowd.services.delete(["web"])
        waiting.until("deleted", lambda: not crowd.services.all())


def writes(counts: collections.Counter[tuple[str, str]]) -> dict[tuple[str, str], int]:
    return {key: count for key, count in counts.items() if key[0] not in READS}


def test_a_restart_with_a_hundred_services_writes_nothing(crowd: Crowd) -> None:
    """Memory with 1,000 VMs and 100 Services; adoption is one write each."""
    crowd.boot(MANY - FEW - 1, "many")
    names = [vm["metadata"]["name"] for vm in crowd.objects.all(MACHINES)]
    assert len(names) == MANY
    crowd.leave(names)
    before = crowd.requests()
    with running(crowd):
        took_s = waiting.until(
            "addresses",
            lambda: all(crowd.has_address(name) for name in crowd.services.all()),
        )
        waiting.until("initialised", lambda: not crowd.nodes.new())
        used = crowd.requests() - before
        print(f"{NUMBER} Services adopted in {took_s:.0f} s: {dict(used)}")
        assert writes(used) == {("patch", "services"): NUMBER}
        time.sleep(SETTLE_S)
        print(f"{crowd.rss_mib():.0f} MiB with {MANY} VMs and {NUMBER} Services")
        assert crowd.rss_mib() <= RSS_MAX_MIB
    before = crowd.requests()
    with running(crowd):
        time.sleep(SETTLE_S)
        used = crowd.requests() - before
        print(f"restart: {used.total()} requests: {dict(used)}")
        print(f"{crowd.rss_mib():.0f} MiB after a restart")
        assert used.total() <= MOST_REQUESTS
        assert writes(used) == {}
        check_delay(crowd, names[0])


def test_an_idle_hour_is_no_request(crowd: Crowd) -> None:
    """All periodic work of an hour reads the stores; by the parent's audit log."""
    with running(crowd, *HOUR):
        time.sleep(SETTLE_S)
        before, passed = crowd.requests(), crowd.passes()
        time.sleep(HOUR_S)
        sent, passed = crowd.requests() - before, crowd.passes() - passed
    print(f"{HOUR_S:.0f} s: {passed:.0f} reconciliations, requests: {dict(sent)}")
    assert {verb for verb, _ in sent} <= {"watch"}  # the parent ends watches by time
    assert passed >= 5 * NUMBER


def check_delay(crowd: Crowd, vm: str) -> None:
    """Print the time from a changed VM to its Node; no other request is sent."""
    before = crowd.requests()
    crowd.parent.set_status(MACHINES, crowd.project, vm, {"ipAddress": "10.97.0.1"})
    took_s = waiting.until(
        "the Node", lambda: ("InternalIP", "10.97.0.1") in crowd.nodes.addresses(vm)
    )
    print(f"changed VM to its Node, of {MANY}: {took_s:.1f} s")
    assert crowd.requests() - before == collections.Counter()
