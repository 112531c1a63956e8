"""Two clusters of one name in one project, and load balancers of nobody's.

Two control planes and two daemons; what one does must leave the other's things as they
were, to the second of their last change.
"""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping

import openstack.connection
import pytest

from lib.cloud.openstack.load_balancers import annotations as keys
from lib.kube import client
from lib.lab import ccm, cluster, control_plane, places, processes, services
from lib.lab.openstack import accounts, balancers, tenant
from lib.lab.services import Told

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
FLAGS = ("--controllers=service", "--cluster-name=kubernetes")
SECOND = "second-cluster"
USUAL = "kube_service_kubernetes_default_web"
NODES = ("owned-1",)
TIMEOUT_S = 180.0
POLL_S = 1.0
FOREIGN = "ForeignLoadBalancer"


def until(what: str, seen: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    end = time.monotonic() + timeout_s
    while not seen():
        assert time.monotonic() < end, what
        time.sleep(POLL_S)


@dataclasses.dataclass
class Cluster:
    """One cluster with its daemon, and default/web in it."""

    api: client.Api
    services: services.Services
    connection: openstack.connection.Connection

    def web(self, name: str = "web") -> str:
        """Make the Service; give the id of the load balancer that it gets."""
        self.services.make(name)
        until(f"{name} is served", lambda: self.addresses(name))
        service = self.services.get(name)
        assert service is not None
        return services.balancer_id(service)

    def addresses(self, name: str = "web") -> list[str]:
        return services.addresses(self.services.get(name))

    def uid(self, name: str = "web") -> str:
        service = self.services.get(name)
        assert service is not None
        return str(service["metadata"]["uid"])

    def remove(self, name: str = "web") -> None:
        self.services.delete([name])
        until(f"{name} is gone", lambda: self.services.get(name) is None)

    def told(self, reason: str, name: str = "web") -> list[Told]:
        found = self.services.events().get(name, ())
        return [one for one in found if one.reason == reason]


def whole(view: balancers.View, id_: str) -> Mapping[str, object]:
    """Give all there is of a load balancer, times of change included."""
    return {
        "load balancer": view.balancers[id_],
        "listener": view.listener(id_, 80),
        "pool": view.pool(id_, 80),
        "members": view.members(id_, 80),
        "floating IP": view.floating_ip(id_),
    }


@dataclasses.dataclass
class Ground:
    connection: openstack.connection.Connection
    one: Cluster
    other: Cluster
    subnet_id: str

    def whole(self, id_: str) -> Mapping[str, object]:
        return whole(balancers.look(self.connection), id_)


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    apart: places.Places,
    api: client.Api,
    project: MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> Iterator[Ground]:
    """Have both, each under the ServiceAccount of its chart."""
    account, mine = project("owners")
    connection = mine.connection
    inside = connection.network.find_network(tenant.NETWORK, ignore_missing=False)
    addresses = balancers.node_ports(connection, str(inside.id), len(NODES))
    text = accounts.cloud_conf(where, account)
    admin = control_plane.admin_kubeconfig(apart)
    second = cluster.connect(admin)
    cluster.create_all(second, ccm.manifest())
    kubeconfig = apart.state / "ccm-account"
    cluster.service_account_kubeconfig(second, admin, ccm.ACCOUNT, kubeconfig)
    clusters = []
    with contextlib.ExitStack() as stack:
        stack.callback(balancers.clear, connection)
        for place, access, config, more in (
            (where, api, ccm_kubeconfig, ()),
            (apart, second, kubeconfig, (f"--cluster-id={SECOND}",)),
        ):
            conf = place.state / "owners-cloud.conf"
            conf.write_text(text)
            stack.callback(services.delete_nodes, access, NODES)
            for name, some in zip(NODES, addresses, strict=True):
                services.make_node(access, name, some)
            words = ccm.arguments(place, config, conf, (*FLAGS, *more))
            ccm.start(place, ccm_pex, words)
            stack.callback(processes.stop, place, [ccm.NAME])
            served = services.Services(access, "default")
            clusters.append(Cluster(access, served, connection))
        one, other = clusters
        yield Ground(connection, one, other, str(inside.subnet_ids[0]))


def test_two_clusters_of_one_name_leave_each_other_alone(ground: Ground) -> None:
    """Both have default/web: two load balancers, two addresses, two ends."""
    one, other = ground.one, ground.other
    rows: list[str] = []
    first = one.web()
    before = ground.whole(first)
    second = other.web()
    rows.append(f"load balancers {first} and {second}")
    assert first != second
    assert set(one.addresses()).isdisjoint(other.addresses())
    view = balancers.look(ground.connection)
    assert view.balancers[first]["name"] == USUAL
    assert view.balancers[second]["name"] == f"{USUAL}_{other.uid()[:8]}"
    assert f"mooring:{SECOND}:{other.uid()}" in view.balancers[second]["tags"]
    (told,) = other.told(FOREIGN)
    assert (told.type, told.count) == ("Warning", 1)
    assert first in told.message
    assert not one.told(FOREIGN)
    rows.append(f"the other was told: {told.message}")

    other.services.change("web", {keys.CONNECTION_LIMIT: "7"})
    until("changed", lambda: limit(ground, second) == 7)
    assert ground.whole(first) == before
    other.remove()
    assert ground.whole(first) == before
    left = balancers.look(ground.connection)
    assert list(left.balancers) == [first]
    rows.append("the other's was changed and deleted; the first one's stayed as it was")
    assert len(left.floating_ips) == 1

    again = other.web()
    kept = ground.whole(again)
    one.remove()
    assert ground.whole(again) == kept
    rows.append("the first one's was deleted; the other's stayed as it was")
    other.remove()
    view = balancers.look(ground.connection)
    assert (view.balancers, view.floating_ips) == ({}, {})
    print("\n".join(rows))


def limit(ground: Ground, id_: str) -> object:
    found = balancers.look(ground.connection).listener(id_, 80)
    return found.get("connection_limit")


def test_a_namesake_of_nobodys_is_left_alone(ground: Ground) -> None:
    """As the reference makes them: ours is made beside it, and an Event says so."""
    name = "kube_service_kubernetes_default_shop"
    octavia, network = ground.connection.load_balancer, ground.connection.network
    made = octavia.create_load_balancer(
        name=name,
        description="Kubernetes external service default/shop from cluster kubernetes",
        vip_subnet_id=ground.subnet_id,
        tags=[name],
        listeners=[
            {
                "name": f"listener_0_{name}",
                "protocol": "TCP",
                "protocol_port": 80,
                "tags": [name],
                "default_pool": {
                    "name": f"pool_0_{name}",
                    "protocol": "TCP",
                    "lb_algorithm": "ROUND_ROBIN",
                },
            }
        ],
    )
    public = next(iter(network.networks(is_router_external=True)))
    network.create_ip(
        floating_network_id=public.id,
        port_id=made.vip_port_id,
        description="Floating IP for Kubernetes external service default/shop from"
        " cluster kubernetes",
    )
    foreign = str(made.id)
    until("it is ACTIVE", lambda: status(ground, foreign) == "ACTIVE")
    before = ground.whole(foreign)
    ours = ground.one.web("shop")
    assert ours != foreign
    assert ground.whole(foreign) == before
    (told,) = ground.one.told(FOREIGN, "shop")
    assert foreign in told.message
    assert told.count == 1
    print(told.message)
    ground.one.remove("shop")
    assert ground.whole(foreign) == before
    assert list(balancers.look(ground.connection).balancers) == [foreign]


def status(ground: Ground, id_: str) -> str:
    found = balancers.look(ground.connection).balancers[id_]
    return str(found["provisioning_status"])
