"""The page about restored clusters is followed line by line, after the loss of one.

The first cluster is lost by deleting its Services while no daemon runs; the second one
has them from the backup, with other UIDs. Commands are those of the page.
"""

import pathlib
import re
import shlex
from collections.abc import Mapping

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.kube import control_plane
from lib.lab.kube.kube_objects import Json
from lib.lab.run import waiting
from tests.harness.daemons import tool
from tests.harness.docs import pages
from tests.harness.openstack import balancers, inventory
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Room

PAGE = pathlib.Path("docs/how-to/restore-a-cluster.md")
INTERNAL = {keys.INTERNAL: "true"}
EARLY, LATE, BARE = "early", "late", "bare"
"""Services that are adopted before the daemon runs, after it has served them, and
without the annotations of the backup."""


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    room = open_room("restore", 2)
    room.add_nodes(room.nodes)
    room.replica(1).start()
    return room


def served(room: Room, name: str) -> list[str]:
    waiting.until(
        f"{name} is served", lambda: services.addresses(room.services.get(name))
    )
    return services.addresses(room.services.get(name))


def lost(room: Room) -> Mapping[str, Json]:
    """Lose the cluster; return the backup of its Services."""
    backup = room.services.all()
    room.replicas[1].stop()
    room.services.abandon()
    waiting.until("the Services are lost", lambda: not room.services.all())
    return backup


def restore(room: Room, name: str, backup: Json) -> None:
    """Create a Service as backup tools do: another UID, the same annotations."""
    annotations = {} if name == BARE else services.annotations(backup)
    more = INTERNAL if name == BARE else {}
    room.services.make(name, {**annotations, **more})


def commands(room: Room, id_: str, name: str) -> list[list[str]]:
    """Return the commands of the page for one load balancer, with files of the lab."""
    state = room.replicas[1].place.state
    names = {
        "ID": id_,
        "NAMESPACE/NAME": f"{room.services.namespace}/{name}",
        "admin.conf": str(control_plane.admin_kubeconfig(room.where)),
        "cloud.conf": str(state / "cloud.conf"),
    }
    words = [
        [names.get(word, word) for word in shlex.split(command)]
        for block in pages.blocks(PAGE)
        for command in block.commands()
    ]
    assert [row[:3] for row in words] == [["mooring", "adopt", "load-balancer"]] * 2
    return words


def adopt(room: Room, id_: str, name: str) -> None:
    """Follow steps 2 and 3 of the page."""
    show, carry_out = commands(room, id_, name)
    before = inventory.take(room.mine.connection)
    shown = tool.mooring_process(*show[1:])
    print(shown.stdout, shown.stderr)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "owned until now by Service" in shown.stdout
    assert "Nothing was changed" in shown.stdout
    # The daemon may already run, and then has work with other load balancers.
    changes = inventory.changes(before, inventory.take(room.mine.connection))
    assert not [change for change in changes if change.id == id_]
    done = tool.mooring_process(*carry_out[1:])
    print(done.stdout, done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    steps = re.findall(r"^would (?!annotate)(.*)$", shown.stdout, re.MULTILINE)
    assert steps
    assert all(f"done: {step}" in done.stdout for step in steps)


def repeat(room: Room, id_: str, name: str) -> None:
    """Carry step 3 out a second time."""
    again = tool.mooring_process(*commands(room, id_, name)[1][1:])
    assert again.returncode == 0
    assert again.stdout.count("done: ") == 1, "the annotations alone"


def test_a_cluster_is_restored_with_its_addresses(room: Room) -> None:
    for name in (EARLY, LATE, BARE):
        room.services.make(name, INTERNAL)
    before = {name: served(room, name) for name in (EARLY, LATE, BARE)}
    old = {
        name: services.balancer_id(service)
        for name, service in room.services.all().items()
    }
    backup = lost(room)
    for name in backup:
        restore(room, name, backup[name])
    refused = tool.mooring_process(*commands(room, old[EARLY], "absent")[1][1:])
    assert refused.returncode == 1
    assert "there is no such Service of type LoadBalancer" in refused.stderr
    for name in (EARLY, BARE):
        adopt(room, old[name], name)
        repeat(room, old[name], name)
    room.replicas[1].start()
    assert served(room, EARLY) == before[EARLY]
    assert served(room, BARE) == before[BARE]
    taken = tool.mooring_process(*commands(room, old[EARLY], BARE)[1][1:])
    assert taken.returncode == 1
    assert "which exists" in taken.stderr
    other = served(room, LATE)
    assert other != before[LATE]
    spare = services.balancer_id(room.services.get(LATE) or {})
    adopt(room, old[LATE], LATE)
    waiting.until(
        "the address of old is back",
        lambda: services.addresses(room.services.get(LATE)) == before[LATE],
    )
    repeat(room, old[LATE], LATE)

    def is_named() -> bool:
        events = room.services.events().get(LATE, ())
        return any(
            event.reason == "CleanupIncomplete" and spare in event.message
            for event in events
        )

    waiting.until("the other load balancer is named", is_named)
    assert "mooring.io/confirm-deletion" in PAGE.read_text()
    room.services.change(LATE, {"mooring.io/confirm-deletion": spare})
    waiting.until(
        "the other load balancer is deleted",
        lambda: set(balancers.listed(room.mine.connection, balancers.BALANCERS))
        == set(old.values()),
    )
    assert {name: served(room, name) for name in old} == before
    room.services.clear()
