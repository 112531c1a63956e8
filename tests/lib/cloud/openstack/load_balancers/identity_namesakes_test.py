"""Services of one name in clusters of one name, on a load balancer of a third Service.

One cluster has the reference, which tells its own by their names alone.
"""

import pytest

from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Port,
    Ref,
)
from lib.cloud.openstack.fake import driver, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names

NAME = "kube_service_kubernetes_default_web"


def owner_of_all() -> driver.Driver:
    """Have a load balancer, on port 80, of a Service called "third"."""
    on = driver.ground()
    facts = driver.service((on.node(1), on.node(2)), name="third", uid="third-uid")
    owner = driver.Driver(on, facts)
    owner.settle()
    return owner


def guest(owner: driver.Driver, port: int, cluster: str = "cluster-1") -> driver.Driver:
    """Have default/web on it, with one port."""
    facts = driver.service(
        owner.facts.nodes,
        cluster=Cluster(cluster, "kubernetes"),
        uid=f"uid-in-{cluster}",
        ports=(Port(port, node_port=30000 + port),),
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    return driver.Driver(owner.ground, facts)


def as_the_reference_leaves_it(owner: driver.Driver, served: driver.Driver) -> None:
    """Take our marks of one guest away."""
    user, mark = names.user(ref_of(served)), names.ownership_tag(ref_of(served))
    octavia = owner.cloud.octavia
    for thing in (*octavia.load_balancers.values(), *octavia.listeners.values()):
        tags = wire.texts(thing["tags"])
        thing["tags"] = [tag for tag in tags if tag not in (user, mark)]
    served.restart()


def ref_of(driven: driver.Driver) -> Ref:
    return driven.balancers.refer(driven.facts)


def ports(owner: driver.Driver) -> set[object]:
    return {
        listener["protocol_port"] for listener in owner.cloud.octavia.listeners.values()
    }


@pytest.mark.parametrize("depth", [Depth.TREE, Depth.FULL])
def test_a_namesakes_listener_stays_whatever_ours_does(depth: Depth) -> None:
    """Before, while and after ours is there too."""
    owner = owner_of_all()
    driven = guest(owner, 81, "cluster-2")
    driven.settle()
    as_the_reference_leaves_it(owner, driven)
    driven = guest(owner, 82)
    driven.settle()
    driven.depth = depth
    driven.restart()
    assert driven.settle() == []
    assert ports(owner) == {80, 81, 82}
    driven.settle(gone=True)
    assert ports(owner) == {80, 81}
    assert NAME in wire.texts(owner.balancer["tags"])  # it is theirs as well


def test_what_the_reference_made_there_is_adopted_listeners_first() -> None:
    """Our tag on the load balancer says that whatever has no mark is not ours."""
    owner = owner_of_all()
    driven = guest(owner, 81)
    driven.settle()
    as_the_reference_leaves_it(owner, driven)
    before = len(owner.cloud.writes)
    driven.settle()
    changed = [call.path.split("/")[1] for call in owner.cloud.writes[before:]]
    assert changed == ["listeners", "loadbalancers"]
    assert driven.settle() == []
    driven.settle(gone=True)
    assert ports(owner) == {80}


def test_what_the_reference_made_there_goes_also_when_it_was_never_adopted() -> None:
    """The Service is deleted while nobody looks."""
    owner = owner_of_all()
    driven = guest(owner, 81)
    driven.settle()
    as_the_reference_leaves_it(owner, driven)
    driven.settle(gone=True)
    assert ports(owner) == {80}
    assert NAME not in wire.texts(owner.balancer["tags"])
