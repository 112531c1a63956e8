"""Services that move from one load balancer to another, on the real Octavia.

One table: to another that is shared, off an own one, back to an own one, all at once.
What is left where they were is read from Octavia and Neutron.
"""

import contextlib
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.load_balancers import annotations as keys
from lib.lab import places, services, stages
from lib.lab.openstack import accounts, balancers, cloud, premises, wishes
from lib.lab.openstack.wishes import Row, Seen

NAMESPACE = "moving"
SERVED_S = 300.0
OWN = f"kube_service_kubernetes_{NAMESPACE}_{{}}"
NODE = "moved-1"
CONF = """
[LoadBalancer]
max-shared-lb = 4
"""


def places_of(seen: Seen) -> object:
    """Names of those with its listeners, and with its tags; floating IPs made for it.

    And whether its status shows the address of the one that it is on.
    """
    name = OWN.format(seen.name)
    uid = seen.service["metadata"]["uid"]
    view, found = seen.view, seen.view.balancers
    listening = {
        str(found[one["loadbalancers"][0]["id"]]["name"])
        for one in view.listeners.values()
        if name in one["tags"]
    }
    tagged = {
        str(one["name"])
        for one in found.values()
        if any(tag == name or uid in tag for tag in one["tags"])
    }
    about = f"{NAMESPACE}/{seen.name} "
    made = [one for one in view.floating_ips.values() if about in one["description"]]
    is_shown = seen.ingress == [f"{seen.address} VIP"]
    return sorted(listening), sorted(tagged), len(made), is_shown


def on(name: str, made: int = 0) -> object:
    return [name], [name], made, True


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


@pytest.fixture(scope="module")
def ground(where: places.Places, open_stage: stages.Open) -> Iterator[wishes.Ground]:
    names: dict[str, str] = {}
    with contextlib.ExitStack() as ends:
        admin = cloud.connect(where, accounts.ADMIN)
        ends.callback(admin.close)
        premises.offer(admin, names)
        ends.callback(premises.withdraw, admin, names)
        stage = ends.enter_context(open_stage(NAMESPACE))
        connection = stage.mine.connection
        premises.furnish(connection, names)
        (found,) = balancers.node_ports(connection, names["network"], 1)
        stage.add_nodes({NODE: found})
        stage.serve(settings=CONF)
        yield wishes.Ground(stage.services, connection, names)


def test_a_move_leaves_nothing_at_the_former_place(ground: wishes.Ground) -> None:
    """Listeners, pools and tags are where the Service is, and nowhere else."""
    table = wishes.Table(ground, ROWS)
    try:
        table.serve(len(ROWS), SERVED_S)
    finally:
        print("\n".join(table.lines()))
    assert not table.wrong()


def test_nothing_is_left_when_all_have_gone(ground: wishes.Ground) -> None:
    """The user's own load balancers are as they were, and there is no other."""
    ground.services.clear()
    left = balancers.look(ground.connection)
    assert {one["name"] for one in left.balancers.values()} == {"u1", "u2"}
    assert not any(one["tags"] for one in left.balancers.values())
    assert left.listeners == left.pools == {}
