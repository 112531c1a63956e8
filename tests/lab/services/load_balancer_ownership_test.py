"""Two clusters of one name in one project, others' load balancers, and moves.

Two control planes and two daemons; what one does must leave the other's things as they
were, to the second of their last change. Then Services move to another load balancer
that is shared, off an own one, and back to an own one, all at one time; what is left
where they were is read from Octavia and Neutron.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping

import openstack.connection
import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import client
from lib.lab import places
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers, cases, prerequisites
from tests.harness.openstack.cases import Observed, Row
from tests.harness.services import services, stages
from tests.harness.services.services import RecordedEvent

NAMESPACE = "owners"
SECOND = "second-cluster"
USUAL = f"kube_service_kubernetes_{NAMESPACE}_web"
FOREIGN = "LoadBalancerNotOwned"
MOVING = "moving"
"""Namespace of the Services that move."""
MOVED_S = 300.0
OWN = f"kube_service_kubernetes_{MOVING}_{{}}"
CONF = """
[LoadBalancer]
max-shared-lb = 4
"""


@dataclasses.dataclass
class Cluster:
    """One cluster with its daemon, and the Service web in it."""

    services: services.Services

    def web(self, name: str = "web") -> str:
        """Make the Service; give the id of the load balancer that it gets."""
        self.services.make(name)
        waiting.until(f"{name} is served", lambda: self.addresses(name))
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
        waiting.until(f"{name} is gone", lambda: self.services.get(name) is None)

    def events_of(self, reason: str, name: str = "web") -> list[RecordedEvent]:
        events = self.services.events().get(name, ())
        return [event for event in events if event.reason == reason]


def whole(view: balancers.BalancerView, id_: str) -> Mapping[str, object]:
    """Return all there is of a load balancer, times of change included."""
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
    api: client.Api
    primary: Cluster
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
        primary = stack.enter_context(open_stage(NAMESPACE))
        second = stages.cluster_of(apart, ccm_pex)
        other = stack.enter_context(
            stages.opened(second, primary.mine, primary.conf, NAMESPACE)
        )
        network_id, subnet_id = primary.network()
        (addresses,) = balancers.node_ports(primary.mine.connection, network_id, 1)
        for stage, flags in ((primary, ()), (other, (f"--cluster-id={SECOND}",))):
            stage.add_nodes({"owned-1": addresses})
            stage.serve(flags, CONF)
        yield Ground(
            primary.mine.connection,
            primary.cluster.api,
            Cluster(primary.services),
            Cluster(other.services),
            subnet_id,
        )


def test_two_clusters_of_one_name_leave_each_other_alone(ground: Ground) -> None:
    """Both have a Service web: two load balancers, two addresses, two ends."""
    primary, other = ground.primary, ground.other
    rows: list[str] = []
    first = primary.web()
    before = ground.whole(first)
    second = other.web()
    rows.append(f"load balancers {first} and {second}")
    assert first != second
    assert set(primary.addresses()).isdisjoint(other.addresses())
    view = balancers.look(ground.connection)
    assert view.balancers[first]["name"] == USUAL
    assert view.balancers[second]["name"] == f"{USUAL}_{other.uid()[:8]}"
    assert f"mooring:{SECOND}:{other.uid()}" in view.balancers[second]["tags"]
    (event,) = other.events_of(FOREIGN)
    assert (event.type, event.count) == ("Warning", 1)
    assert first in event.message
    assert not primary.events_of(FOREIGN)
    rows.append(f"Event of the other: {event.message}")

    other.services.change("web", {keys.CONNECTION_LIMIT: "7"})
    waiting.until("changed", lambda: limit(ground, second) == 7)
    assert ground.whole(first) == before
    other.remove()
    assert ground.whole(first) == before
    left = balancers.look(ground.connection)
    assert list(left.balancers) == [first]
    rows.append("the other's was changed and deleted; the first one's stayed as it was")
    assert len(left.floating_ips) == 1

    again = other.web()
    kept = ground.whole(again)
    primary.remove()
    assert ground.whole(again) == kept
    rows.append("the first one's was deleted; the other's stayed as it was")
    other.remove()
    view = balancers.look(ground.connection)
    assert (view.balancers, view.floating_ips) == ({}, {})
    print("\n".join(rows))


def limit(ground: Ground, id_: str) -> object:
    listener = balancers.look(ground.connection).listener(id_, 80)
    return listener.get("connection_limit")


def test_a_namesake_of_nobodys_is_left_alone(ground: Ground) -> None:
    """As the reference makes them: ours is created beside it, with an Event."""
    name = f"kube_service_kubernetes_{NAMESPACE}_shop"
    about = f"Kubernetes external service {NAMESPACE}/shop from cluster kubernetes"
    octavia, network = ground.connection.load_balancer, ground.connection.network
    namesake = octavia.create_load_balancer(
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
        port_id=namesake.vip_port_id,
        description=f"Floating IP for {about}",
    )
    foreign = str(namesake.id)
    waiting.until("ACTIVE", lambda: status(ground, foreign) == "ACTIVE")
    before = ground.whole(foreign)
    owned = ground.primary.web("shop")
    assert owned != foreign
    assert ground.whole(foreign) == before
    (event,) = ground.primary.events_of(FOREIGN, "shop")
    assert foreign in event.message
    assert event.count == 1
    print(event.message)
    ground.primary.remove("shop")
    assert ground.whole(foreign) == before
    assert list(balancers.look(ground.connection).balancers) == [foreign]


def status(ground: Ground, id_: str) -> str:
    balancer = balancers.look(ground.connection).balancers[id_]
    return str(balancer["provisioning_status"])


# ------------------------------------------------------------------------------- moves


def places_of(observed: Observed) -> object:
    """Names of those with its listeners, and with its tags; floating IPs made for it.

    And whether its status shows the address of the one that it is on.
    """
    name = OWN.format(observed.name)
    uid = observed.service["metadata"]["uid"]
    view, balancers_by_id = observed.view, observed.view.balancers
    ids = {
        str(listener["loadbalancers"][0]["id"])
        for listener in view.listeners.values()
        if name in listener["tags"]
    }
    # A load balancer may have been created or deleted between the two lists.
    listening = {str(balancers_by_id.get(id_, {}).get("name", id_)) for id_ in ids}
    tagged = {
        str(balancer["name"])
        for balancer in balancers_by_id.values()
        if any(tag == name or uid in tag for tag in balancer["tags"])
    }
    about = f"{MOVING}/{observed.name} "
    created = [
        floating_ip
        for floating_ip in view.floating_ips.values()
        if about in floating_ip["description"]
    ]
    is_shown = observed.ingress == [f"{observed.address} VIP"]
    return sorted(listening), sorted(tagged), len(created), is_shown


def on(name: str, addresses: int = 0) -> object:
    return [name], [name], addresses, True


def row(name: str, port: int, before: str, after: str) -> Row:
    """Make a row. before, after: names of the ground, or "own"."""
    ids = {"own": None, "u1": "{u1}", "u2": "{u2}"}
    shown = {"own": on(OWN.format(name), 1), "u1": on("u1"), "u2": on("u2")}
    created = {keys.LOAD_BALANCER_ID: ids[before]} if ids[before] else {}
    return Row(
        f"from {before} to {after}",
        name,
        places_of,
        {**created, "spec": {"ports": [services.port(port)]}},
        shown[before],
        {keys.LOAD_BALANCER_ID: ids[after]},
        shown[after],
    )


ROWS = (
    row("moves", 81, "u1", "u2"),
    row("joins", 82, "own", "u2"),
    row("parts", 83, "u1", "own"),
)


@dataclasses.dataclass
class Moves(cases.Ground):
    """Beside that, what the project had before."""

    before: balancers.BalancerView


@pytest.fixture(scope="module")
def moves(ground: Ground, where: places.Places) -> Iterator[Moves]:
    """Have two load balancers of the project's user, for Services to share."""
    connection = ground.connection
    outside = next(iter(connection.network.networks(is_router_external=True)))
    names = {"external": str(outside.id), "subnet": ground.subnet_id}
    prerequisites.add_shared(connection, names)
    its = services.Services(ground.api, MOVING)
    with balancer_watch.states(layout.of(where), connection) as states:
        yield Moves(its, connection, names, states, balancers.look(connection))


def test_a_move_leaves_nothing_at_the_former_place(moves: Moves) -> None:
    """Listeners, pools and tags are where the Service is, and nowhere else."""
    table = cases.Table(moves, ROWS)
    try:
        table.serve(len(ROWS), MOVED_S)
    finally:
        print("\n".join(table.lines()))
    assert not table.wrong()


def test_nothing_is_left_of_services_that_moved(moves: Moves) -> None:
    """The user's own load balancers are as they were, and there is no other."""
    moves.services.clear()
    left = balancers.look(moves.connection)
    assert left.balancers.keys() == moves.before.balancers.keys()
    assert [left.balancers[moves.names[name]]["tags"] for name in ("u1", "u2")] == [
        [],
        [],
    ]
    assert left.listeners.keys() == moves.before.listeners.keys()
    assert left.pools.keys() == moves.before.pools.keys()
