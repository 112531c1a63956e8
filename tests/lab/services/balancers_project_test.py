"""openstack-ccm, the PEX, whose cloud.conf suddenly leads to another project.

There every server and load balancer of the cluster is "not found". A reload is refused;
a process that starts with it changes nothing; both go on when the file is right again.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator

import pytest

from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.openstack import accounts, tenant
from lib.lab.run import waiting
from tests.harness.openstack import balancers, inventory
from tests.harness.openstack import testing as openstack_testing
from tests.harness.services import balancing, services, stages
from tests.harness.services.balancing import Room

FLAGS = (
    "--lb-drift-period=10s",
    "--node-monitor-period=5s",
    "--controllers=service-lb-controller,cloud-node-lifecycle-controller",
)
SERVERS = ("mine-1", "mine-2")
ABSENT_S = 20.0
"""Longer than the time between the two reads that prove an absence, which is 15 s."""
REFUSED = '"msg": "configuration reload failed, keeping the previous one"'
KEPT = "NodeDeletionBlocked"
REOPENED = '"msg": "configuration reloaded"'


@dataclasses.dataclass(frozen=True)
class Ground:
    """The room of the one project, and the other one, which has no server."""

    room: Room
    account: accounts.Account
    other: tenant.Tenant

    def lead(self, account: accounts.Account) -> None:
        """Change the daemon's cloud.conf to a project."""
        replica = self.room.replicas[1]
        file = replica.place.state / "cloud.conf"
        text = balancing.conf(self.room.entrance, self.room.where, account)
        part = file.with_suffix(".new")
        part.write_text(text)
        part.replace(file)

    def log(self) -> str:
        return (self.room.replicas[1].place.log / f"{ccm.NAME}.log").read_text()

    def logged(self, text: str) -> Callable[[], bool]:
        """Return whether an entry is there that is not there yet."""
        count = self.log().count(text)
        return lambda: self.log().count(text) > count

    def service(self, name: str) -> Callable[[], object]:
        return lambda: services.addresses(self.room.services.get(name))

    def pictures(self) -> tuple[object, object, object]:
        """Return all of both projects, the Services and which Nodes there are."""
        room = self.room
        existing = room.services.all()
        shown = {
            name: (service["metadata"].get("annotations"), service["status"])
            for name, service in existing.items()
        }
        nodes = sorted(services.node_labels(room.api))
        other = balancers.look(self.other.connection)
        assert (other.balancers, other.floating_ips) == ({}, {})
        return inventory.take(room.mine.connection), shown, nodes

    def unchanged(self, before: tuple[object, object, object]) -> None:
        cloud, *cluster = self.pictures()
        assert inventory.changes(before[0], cloud) == ()  # type: ignore[arg-type]
        assert cluster == list(before[1:])


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    kubernetes: stages.Cluster,
    project: openstack_testing.MakeProject,
) -> Iterator[Ground]:
    account, mine = project("here")
    elsewhere, other = project("elsewhere")
    api, pex = kubernetes.api, kubernetes.pex
    with balancing.room(where, pex, kubernetes.kubeconfig, account, 0) as room:
        booted = mine.boot_all(SERVERS)
        try:
            yield Ground(room, elsewhere, other)
        finally:
            services.delete_nodes(api, booted)
            for server in mine.items():
                mine.delete(server.id)
            waiting.until("the servers are gone", lambda: not mine.items())


def add_node(ground: Ground, name: str) -> None:
    """Register a server as a Node that has never become ready."""
    (server,) = (
        server_ for server_ in ground.room.mine.items() if server_.name == name
    )
    api = ground.room.api
    services.make_node(api, name, server.addresses, server_id=server.id)


def settled(ground: Ground) -> tuple[object, object, object]:
    """Return the pictures once nothing changes any more."""
    pictures = [ground.pictures()]

    def is_still() -> bool:
        if states.pending():
            return False
        pictures.append(ground.pictures())
        return pictures[-1] == pictures[-2]

    with ground.room.states() as states:
        waiting.until("nothing changes", is_still, poll_s=2.0)
    return pictures[-1]


def is_gone(ground: Ground, name: str) -> Callable[[], bool]:
    return lambda: ground.room.services.get(name) is None


def kept(room: Room) -> set[str]:
    """Return the Nodes of which an Event reports that they are not deleted."""
    events = services.Services(room.api, "default").events()
    return {
        name for name, of in events.items() if KEPT in {event.reason for event in of}
    }


def reload_is_refused(ground: Ground) -> None:
    """All stays as it is, and the former credentials go on working."""
    before, refused = settled(ground), ground.logged(REFUSED)
    ground.lead(ground.account)
    waiting.until("the reload is refused", refused)
    time.sleep(ABSENT_S)
    ground.unchanged(before)
    add_node(ground, SERVERS[1])
    with ground.room.states() as states:
        waiting.until("the Node is a member", lambda: states.members() == 4)
    ground.room.services.delete(["leaves"])
    waiting.until("the Service is deleted", is_gone(ground, "leaves"))
    view = balancers.look(ground.room.mine.connection)
    assert (len(view.balancers), len(view.floating_ips)) == (1, 1)


def restart_changes_nothing(ground: Ground) -> None:
    """No load balancer is created there, no Service released and no Node deleted."""
    room, before = ground.room, settled(ground)
    replica = room.replica(1, FLAGS)
    ground.lead(ground.account)
    replica.start()

    def told() -> list[str]:
        events = room.services.events().get("stays", ())
        return [event.message for event in events if event.type == "Warning"]

    waiting.until("an Event reports it", told)
    waiting.until("the Nodes are kept", lambda: kept(room) == set(SERVERS))
    room.services.delete(["stays"])
    time.sleep(ABSENT_S)
    print(told())
    ground.unchanged(before)


def test_another_project_deletes_and_creates_nothing(ground: Ground) -> None:
    """Neither after a reload nor after a restart; then the file is right again."""
    room = ground.room
    add_node(ground, SERVERS[0])
    room.replica(1, FLAGS).start()
    for name in ("stays", "leaves"):
        room.services.make(name)
    for name in ("stays", "leaves"):
        waiting.until(f"{name} is served", ground.service(name))
    reload_is_refused(ground)
    restart_changes_nothing(ground)
    reopened = ground.logged(REOPENED)
    ground.lead(room.account)
    waiting.until("the right file is read", reopened)
    waiting.until("the Service is deleted", is_gone(ground, "stays"))
    view = balancers.look(room.mine.connection)
    assert (view.balancers, view.floating_ips) == ({}, {})
