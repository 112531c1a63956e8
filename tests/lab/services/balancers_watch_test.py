"""openstack-ccm, the PEX, reaches the API server by a proxy that cuts idle connections.

Such proxies close a connection after 35 to 60 s, before the first bookmark of a watch;
this one does so after 10 s. The API server's audit log shows what the daemon asks for.
"""

import collections
import contextlib
import dataclasses
import datetime
import pathlib
import time
from collections.abc import Callable, Iterator

import pytest
import yaml

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import pki
from lib.lab.run import waiting
from tests.harness.faults import tcp_proxy
from tests.harness.kube import audit
from tests.harness.openstack import balancers
from tests.harness.openstack import testing as openstack_testing
from tests.harness.services import balancing, services, stages
from tests.harness.services.balancing import Room

IDLE_S = 10.0
CUTS = 3
"""Of each watch, while nothing happens."""
WATCHED = ("services", "nodes")
SLACK = 2
"""Watches more than cuts: the first one, and one that a Service has prolonged."""


@dataclasses.dataclass(frozen=True)
class Ground:
    """The room, whose daemon reaches the API server through the proxy."""

    room: Room
    proxy: tcp_proxy.TcpProxy

    def requests(self, began: datetime.datetime) -> collections.Counter[str]:
        """Count the daemon's lists and watches since a time."""
        counts: collections.Counter[str] = collections.Counter()
        audit_ids = set()
        for row in audit.rows(self.room.where, ccm.ACCOUNT):
            at = datetime.datetime.fromisoformat(row.received)
            key = (row.verb, row.resource, row.received)
            # A watch is logged at its start and at its end.
            if at >= began and row.resource in WATCHED and key not in audit_ids:
                audit_ids.add(key)
                counts[f"{row.verb} {row.resource}"] += 1
        return counts


def through(
    proxy: tcp_proxy.TcpProxy, kubeconfig: pathlib.Path, target: pathlib.Path
) -> pathlib.Path:
    """Write a kubeconfig that leads through the proxy."""
    read = yaml.safe_load(kubeconfig.read_text())
    read["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    pki.write_secret(target, yaml.safe_dump(read).encode())
    return target


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    kubernetes: stages.Cluster,
    project: openstack_testing.MakeProject,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    account, _ = project("idle")
    file = tmp_path_factory.mktemp("idle") / "kubeconfig"
    with contextlib.closing(
        tcp_proxy.TcpProxy(where.port("apiserver"), IDLE_S)
    ) as proxy:
        behind = through(proxy, kubernetes.kubeconfig, file)
        with balancing.room(where, kubernetes.pex, behind, account, 1) as room:
            room.add_nodes(room.nodes)
            yield Ground(room, proxy)


def served(room: Room, name: str) -> Callable[[], bool]:
    return lambda: services.addresses(room.services.get(name)) != []


def lists(requests: collections.Counter[str]) -> list[str]:
    return [name for name in requests if name.startswith("list")]


def test_watches_that_a_proxy_cuts_cost_no_list(ground: Ground) -> None:
    """Each is resumed where it was, without a pause, and no change is lost."""
    room = ground.room
    room.replica(1).start()
    room.services.make("before", {keys.INTERNAL: "true"})
    waiting.until("served", served(room, "before"))
    quiet, cuts = datetime.datetime.now(datetime.UTC), ground.proxy.cuts
    began = time.monotonic()

    def opened() -> int:
        return min(ground.requests(quiet)[f"watch {kind}"] for kind in WATCHED)

    waiting.until("cuts", lambda: opened() >= CUTS, poll_s=1.0)
    took_s, requests = time.monotonic() - began, ground.requests(quiet)
    print(
        f"idle after {IDLE_S:.0f} s: {ground.proxy.cuts - cuts} connections closed in"
        f" {took_s:.0f} s; {dict(requests)}"
    )
    assert lists(requests) == []
    most = took_s / IDLE_S + SLACK
    watches = [requests[f"watch {kind}"] for kind in WATCHED]
    assert max(watches) <= most, "a watch is opened without a cut"
    room.services.make("after", {keys.INTERNAL: "true"})
    waiting.until("served", served(room, "after"))
    room.services.delete(["before"])
    waiting.until("gone", lambda: room.services.get("before") is None)
    assert lists(ground.requests(quiet)) == [], "a change was found by a list"
    assert len(balancers.listed(room.mine.connection, balancers.BALANCERS)) == 1
