"""Two clusters of one name in one project, and load balancers of nobody's.

Two control planes and two daemons; what one does must leave the other's things as they
were, to the second of their last change.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping

import openstack.connection
import pytest

from lib.cloud.openstack.load_balancers import annotations as keys
from lib.lab import ccm, cluster, control_plane, places, services, stages, waiting
from lib.lab.openstack import balancers
from lib.lab.services import Told

NAMESPACE = "owners"
SECOND = "second-cluster"
USUAL = f"kube_service_kubernetes_{NAMESPACE}_web"
TIMEOUT_S = 180.0
FOREIGN = "ForeignLoadBalancer"


@dataclasses.dataclass
class Cluster:
    """One cluster with its daemon, and the Service web in it."""

    services: services.Services

    def web(self, name: str = "web") -> str:
        """Make the Service; give the id of the load balancer that it gets."""
        self.services.make(name)
        waiting.until(f"{name} is served", lambda: self.addresses(name), TIMEOUT_S)
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
        waiting.until(
            f"{name} is gone", lambda: self.services.get(name) is None, TIMEOUT_S
        )

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
    apart: places.Places, open_stage: stages.Open, ccm_pex: pathlib.Path
) -> Iterator[Ground]:
    """Have both, each under the ServiceAccount of its chart."""
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(open_stage(NAMESPACE))
        admin = control_plane.admin_kubeconfig(apart)
        api = cluster.connect(admin)
        cluster.create_all(api, ccm.manifest())
        kubeconfig = apart.state / "ccm-account"
        cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, kubeconfig)
        second = stages.Cluster(apart, api, kubeconfig, ccm_pex)
        other = stack.enter_context(
            stages.opened(second, one.mine, one.conf, NAMESPACE)
        )
        network_id, subnet_id = one.network()
        (addresses,) = balancers.node_ports(one.mine.connection, network_id, 1)
        for stage, flags in ((one, ()), (other, (f"--cluster-id={SECOND}",))):
            stage.add_nodes({"owned-1": addresses})
            stage.serve(flags)
        yield Ground(
            one.mine.connection,
            Cluster(one.services),
            Cluster(other.services),
            subnet_id,
        )


def test_two_clusters_of_one_name_leave_each_other_alone(ground: Ground) -> None:
    """Both have a Service web: two load balancers, two addresses, two ends."""
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
    waiting.until("changed", lambda: limit(ground, second) == 7, TIMEOUT_S)
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
    name = f"kube_service_kubernetes_{NAMESPACE}_shop"
    about = f"Kubernetes external service {NAMESPACE}/shop from cluster kubernetes"
    octavia, network = ground.connection.load_balancer, ground.connection.network
    made = octavia.create_load_balancer(
        name=name,
        description=about,
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
        description=f"Floating IP for {about}",
    )
    foreign = str(made.id)
    waiting.until("ACTIVE", lambda: status(ground, foreign) == "ACTIVE", TIMEOUT_S)
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
