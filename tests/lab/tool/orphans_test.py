"""`mooring orphans` on a real Octavia, Neutron and Cinder while openstack-ccm runs.

Every kind of leftover has a row: how it came about, and what the tool finds.
"""

import json
from collections.abc import Iterator

import pytest

from tests.harness.openstack import balancers, inventory
from tests.harness.orphans import leftovers
from tests.harness.orphans.leftovers import OTHERS, Document, Ground
from tests.harness.services import balancing

LB, IP, SG = "load-balancer", "floating-ip", "security-group"


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Iterator[Ground]:
    """Return a project with leftovers."""
    with leftovers.ground(open_room("orphans", 1)) as new_ground:
        yield new_ground


ROWS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "finalizer stripped": ("stripped", (LB, IP, SG), "does not exist"),
    "namespace force-deleted": ("doomed", (LB, IP, SG), "does not exist"),
    "recreated under the same name": ("recreated", (LB, IP, SG), "another UID"),
    "load balancer in ERROR": ("failed", (LB, IP, SG), "does not exist"),
    "pool whose listener was deleted": (
        "user",
        ("pool", "shared-use", SG),
        "does not exist",
    ),
    "security group still on a port": ("grouped", (SG,), "on port"),
}
"""The Service that was lost, the kinds of what it leaves, and a word of the reason."""
LONE = {
    "younger of two duplicates": ("second", LB, "not this second one"),
    "volume without PersistentVolume": ("volume-lost", "volume", "no Persistent"),
    "route of a Node deleted meanwhile": ("router", "route", "Node node-lost"),
    "address pair of that Node": ("port", "address-pair", "Node node-lost"),
}


def of_service(ground: Ground, document: Document, name: str) -> list[Document]:
    """Return the orphans that were created for a Service."""
    namespace = ground.room.services.namespace
    namespace = ground.doomed.namespace if name == "doomed" else namespace
    rows: list[Document] = document["orphans"]
    return [row for row in rows if row["created_for"] == f"{namespace}/{name}"]


def test_every_leftover_is_found_deleted_and_nothing_else_changed(
    ground: Ground,
) -> None:
    """The table of rows; then `--delete`, twice, and a look at all that is left."""
    before = inventory.take(ground.room.mine.connection)
    counted = balancing.Counted(ground.room.entrance)
    document = ground.list(code=3)
    calls = [balancing.kind(call) for call in counted.calls()]
    print(f"{len(calls)} calls of the cloud for the list: {calls}")
    assert counted.writes() == []
    check_rows(ground, document)

    everything = ("--delete", "--yes", "--kept", "--volumes")
    result = ground.list(*everything, code=0)
    assert result["failed"] == []
    assert {row["id"] for row in result["deleted"]} == {
        row["id"] for row in (*document["orphans"], *document["kept"])
    }
    writes = len(counted.writes())
    assert ground.list(*everything, code=0) == {
        **result,
        "orphans": [],
        "kept": [],
        "deleted": [],
    }
    assert len(counted.writes()) == writes
    check_left(ground, before, document)


def check_rows(ground: Ground, document: Document) -> None:
    """Print the table; a leftover without its findings fails."""
    assert document["unknown"] == []
    expected = 0
    for row, (service, kinds, word) in ROWS.items():
        rows = of_service(ground, document, service)
        reasons = {orphan["reason"] for orphan in rows}
        print(f"{row:34} {sorted(orphan['kind'] for orphan in rows)} {sorted(reasons)}")
        assert sorted(orphan["kind"] for orphan in rows) == sorted(kinds)
        assert any(word in reason for reason in reasons)
        expected += len(kinds)
    by_id = {orphan["id"]: orphan for orphan in document["orphans"]}
    for row, (key, kind, word) in LONE.items():
        orphan = by_id[ground.ids[key]]
        print(f"{row:34} {orphan['kind']} {orphan['reason']}")
        assert orphan["kind"] == kind
        assert word in orphan["reason"]
        expected += 1
    assert len(document["orphans"]) == expected
    (kept,) = document["kept"]
    print(f"{'floating IP retained':34} {kept['kind']} {kept['reason']}")
    assert kept["kind"] == IP
    keys = ("namesake", "address", "group", "volume-bare", "router")
    assert {row["id"] for row in document["not_owned"]} == {ground.ids[k] for k in keys}
    shown = json.dumps(document)
    for key in ("volume-used", "volume-pending", "living"):
        assert ground.ids[key] not in shown, key


def check_left(ground: Ground, before: inventory.Inventory, document: Document) -> None:
    """Compare all of the project, field by field, with what was there before."""
    after = inventory.take(ground.room.mine.connection)
    rows = (*document["orphans"], *document["kept"])
    listed = {row["id"] for row in rows}
    gone = {
        change.id
        for change in inventory.changes(before, after)
        if change.after is None and change.field == ""
    }
    balancers_gone = {id_ for id_ in gone if id_ in before[balancers.BALANCERS]}
    uses = {row["id"] for row in document["orphans"] if row["kind"] == "shared-use"}
    assert balancers_gone == listed & before[balancers.BALANCERS].keys() - uses
    left = {ground.ids[key] for key in ("living", "twin", "owner", "namesake")}
    assert left <= after[balancers.BALANCERS].keys()
    for change in inventory.changes(before, after):
        of_living = change.id in left and change.id != ground.ids["shared"]
        assert not of_living, change
    cinder = ground.room.mine.connection.block_storage
    names = {volume.id for volume in cinder.volumes()}
    keys = ("volume-used", "volume-pending", "volume-bare")
    assert names == {ground.ids[key] for key in keys}
    owner = after[balancers.BALANCERS][ground.ids["owner"]]
    assert not any(ground.uids["user"] in tag for tag in owner["tags"])
    router = ground.network.get_router(ground.ids["router"])
    assert [route["destination"] for route in router.routes] == [OTHERS.destination]
    port = ground.network.get_port(ground.ids["port"])
    addresses = [pair["ip_address"] for pair in port.allowed_address_pairs]
    assert addresses == ["10.42.15.9"]
