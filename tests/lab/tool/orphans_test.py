"""`mooring orphans` on a real Octavia, Neutron and Cinder while openstack-ccm runs.

Every kind of leftover has a row: how it came about, and what the tool finds.
"""

import contextlib
import dataclasses
import json
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.cloud import route_records
from lib.cloud.routes import AddressPair, Record, Recorded, Route
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import places
from lib.lab.kube import control_plane, kube_objects
from lib.lab.openstack import layout
from tests.harness import waiting
from tests.harness.daemons.tool import Said, mooring_process
from tests.harness.openstack import balancers, census
from tests.harness.services import balancing, services

SETTINGS = {"manage-security-groups": "true", "max-shared-lb": "4"}
KEEP = "loadbalancer.openstack.org/keep-floatingip"
SHARED = services.LOAD_BALANCER_ID
SERVED = (
    *("living", "stripped", "recreated", "kept", "failed"),
    *("grouped", "twin", "owner"),
)
TIMEOUT_S = 300.0
ANY_AGE = "--min-age=0"
LOST = Route("10.244.7.0/24", "10.42.15.250")
OTHERS = Route("192.0.2.0/24", "10.42.15.251")
LB, IP, SG = "load-balancer", "floating-ip", "security-group"
CLUSTER_KEY = "cinder.csi.openstack.org/cluster"
Document = Mapping[str, Any]


@dataclasses.dataclass
class Ground:
    """A room with leftovers. uids: of Services, by name, as they were served."""

    room: balancing.Room
    conf: pathlib.Path
    kubeconfig: pathlib.Path
    cluster_id: str
    doomed: services.Services
    uids: dict[str, str] = dataclasses.field(default_factory=dict)
    ids: dict[str, str] = dataclasses.field(default_factory=dict)

    def run(self, *words: str, kubeconfig: str = "", typed: str = "") -> Said:
        found = kubeconfig or str(self.kubeconfig)
        said = mooring_process(
            "orphans",
            f"--kubeconfig={found}",
            f"--cloud-config={self.conf}",
            *words,
            typed=typed,
        )
        print(*words, f"-> {said.returncode}", said.stderr[-2000:], sep="\n")
        return said

    def list(self, *words: str, code: int, kubeconfig: str = "") -> Document:
        said = self.run(ANY_AGE, "--output=json", *words, kubeconfig=kubeconfig)
        assert said.returncode == code, said
        found: Document = json.loads(said.stdout)
        return found

    @property
    def network(self) -> Any:
        return self.room.mine.connection.network

    @property
    def octavia(self) -> Any:
        return self.room.mine.connection.load_balancer


@pytest.fixture(scope="module")
def ground(where: places.Places, open_room: balancing.Open) -> Iterator[Ground]:
    """Have Services served, then the daemon stopped, leftovers made, and it started."""
    room = open_room("orphans", 1)
    room.add_nodes(["node-01"])
    conf = where.state / "orphans-cloud.conf"
    conf.write_text(balancing.conf(room.entrance, where, room.account, SETTINGS))
    system = room.api.read(resources.NAMESPACES, "kube-system", None, timeout_s=30)
    found = Ground(
        room,
        conf,
        control_plane.admin_kubeconfig(where),
        str(json.loads(system)["metadata"]["uid"]),
        services.Services(room.api, f"{room.services.namespace}-doomed"),
    )
    serve(found)
    leave(found)
    try:
        yield found
    finally:
        # A router with routes keeps its interfaces.
        found.network.update_router(found.ids["router"], routes=[])
        with contextlib.suppress(kube_errors.KubeError):
            found.doomed.abandon()
        objects = kube_objects.Objects(room.api, "")
        objects.delete(resources.PERSISTENT_VOLUMES, "orphans-used")
        volumes = room.mine.connection.block_storage
        for volume in volumes.volumes():
            volumes.delete_volume(str(volume.id))


def serve(ground: Ground) -> None:
    """Have all Services served; the last one on the load balancer of another."""
    room = ground.room
    room.replica(1, settings=SETTINGS).start()
    for name in SERVED:
        room.services.make(name, {KEEP: "true"} if name == "kept" else None)
    ground.doomed.make("doomed")
    waiting.until("served", lambda: not unserved(ground), TIMEOUT_S)
    owner = room.services.get("owner")
    assert owner is not None
    ground.ids["shared"] = services.balancer_id(owner)
    shared = {SHARED: ground.ids["shared"]}
    room.services.make("user", shared, (services.port(81),))
    waiting.until("served", lambda: not unserved(ground), TIMEOUT_S)
    for name, service in {**room.services.all(), **ground.doomed.all()}.items():
        ground.uids[name] = str(service["metadata"]["uid"])
        ground.ids[name] = services.balancer_id(service)
    room.services.delete(["kept"])
    waiting.until("deleted", lambda: room.services.get("kept") is None, TIMEOUT_S)

    def has_pool() -> bool:
        return bool(balancers.look(room.mine.connection).members(shared_id, 81))

    shared_id = ground.ids["shared"]
    waiting.until("the pool of the shared one has members", has_pool, TIMEOUT_S)


def unserved(ground: Ground) -> list[str]:
    every = {**ground.room.services.all(), **ground.doomed.all()}
    return [name for name, one in every.items() if not services.addresses(one)]


def leave(ground: Ground) -> None:
    """Make what the daemon cannot see, and let it run again."""
    room = ground.room
    room.replicas[1].stop()
    room.services.abandon(["stripped", "recreated", "failed", "grouped"])
    ground.doomed.abandon()
    kube_objects.Objects(room.api, "").delete(
        resources.NAMESPACES, ground.doomed.namespace
    )
    home = layout.of(room.where)
    balancers.set_status(home, ground.ids["failed"], "ERROR")
    view = balancers.look(room.mine.connection)
    ground.octavia.delete_load_balancer(ground.ids["grouped"], cascade=True)
    ground.network.delete_ip(view.floating_ip(ground.ids["grouped"])["id"])
    listener = view.listener(ground.ids["shared"], 81)
    ground.octavia.delete_listener(listener["id"])
    room.services.abandon(["user"])
    room.services.make("recreated")
    room.replica(1, settings=SETTINGS).start()
    waiting.until("served", lambda: not unserved(ground), TIMEOUT_S)
    plant(ground)
    volumes(ground)
    routes(ground)
    busy = [*ground.ids.values(), ground.ids["second"], ground.ids["namesake"]]

    def settled() -> bool:
        states = balancers.listed(room.mine.connection, balancers.BALANCERS)
        passing = (states[id_]["provisioning_status"] for id_ in busy if id_ in states)
        return not any(str(state).startswith("PENDING") for state in passing)

    waiting.until("settled", settled, TIMEOUT_S)


def plant(ground: Ground) -> None:
    """Have a second load balancer with one Service's tag, and untagged look-alikes."""
    mine = ground.room.mine
    name = f"kube_service_kubernetes_{ground.doomed.namespace}_x"
    tag = f"mooring:{ground.cluster_id}:{ground.uids['twin']}"
    ground.ids["second"] = mine.add_load_balancer("twin-again", [80], [tag])
    ground.ids["namesake"] = mine.add_load_balancer(name, [80], [name])
    about = f"Kubernetes external service {ground.doomed.namespace}/x from cluster c"
    outside = next(iter(ground.network.networks(is_router_external=True)))
    address = ground.network.create_ip(
        floating_network_id=outside.id, description=f"Floating IP for {about}"
    )
    group = ground.network.create_security_group(name="lb-sg-uid-x-x", description="x")
    ground.ids |= {"address": str(address.id), "group": str(group.id)}


def volumes(ground: Ground) -> None:
    """Have a volume that is used, a lost one, one to come, and one without metadata."""
    api, cinder = ground.room.api, ground.room.mine.connection.block_storage
    namespace = ground.room.services.namespace
    claim = kube_objects.Objects(api, namespace).make(
        resources.CLAIMS,
        "pending",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "orphans-none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    )
    names = {
        "volume-used": "pvc-used",
        "volume-lost": "pvc-lost",
        "volume-pending": f"pvc-{claim['metadata']['uid']}",
        "volume-bare": "pvc-bare",
    }
    for key, name in names.items():
        metadata = {} if key == "volume-bare" else {CLUSTER_KEY: ground.cluster_id}
        made = cinder.create_volume(size=1, name=name, metadata=metadata)
        ground.ids[key] = str(made.id)
    handle = ground.ids["volume-used"]
    kube_objects.Objects(api, "").make(
        resources.PERSISTENT_VOLUMES,
        "orphans-used",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": handle},
        },
    )

    def are_available() -> bool:
        return all(one.status == "available" for one in cinder.volumes())

    waiting.until("volumes", are_available, TIMEOUT_S)


def routes(ground: Ground) -> None:
    """Have a recorded route and pair of a Node that is gone, and a route of others."""
    api, network = ground.room.api, ground.network
    (router,) = network.routers(
        project_id=ground.room.mine.connection.current_project_id
    )
    listed = [
        {"destination": str(one.destination), "nexthop": one.next_hop}
        for one in (LOST, OTHERS)
    ]
    network.update_router(router, routes=listed)
    port = next(iter(network.ports(device_id="node-1")))
    pairs = [{"ip_address": LOST.destination}, {"ip_address": "10.42.15.9"}]
    network.update_port(port, allowed_address_pairs=pairs)
    since = int(time.time())
    entries = (LOST, AddressPair(str(port.id), LOST.destination))
    record = Record(
        str(router.id),
        ground.cluster_id,
        tuple(Recorded(entry, "node-lost", since) for entry in entries),
    )
    kube_objects.Objects(api, route_records.NAMESPACE).make(
        resources.CONFIG_MAPS,
        route_records.NAME,
        data={route_records.key(record): route_records.written(record)},
    )
    ground.ids |= {"router": str(router.id), "port": str(port.id)}
    text = ground.conf.read_text()
    ground.conf.write_text(f"{text}\n[Route]\nrouter-id = {router.id}\n")


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
    before = census.take(ground.room.mine.connection)
    young = ground.run("--output=json")
    assert young.returncode == 0, "all are younger than ten minutes"
    assert json.loads(young.stdout)["orphans"] == []
    counted = balancing.Counted(ground.room.entrance)
    found = ground.list(code=3)
    calls = [balancing.kind(call) for call in counted.calls()]
    print(f"{len(calls)} calls of the cloud for the list: {calls}")
    assert counted.writes() == []
    check_rows(ground, found)
    assert ground.run(ANY_AGE).stdout.count("Orphans") == 1
    refused = ground.run(ANY_AGE, "--delete", typed="n\n")
    assert refused.returncode == 3
    assert counted.writes() == []

    said = ground.list("--delete", "--yes", code=3)
    assert said["failed"] == []
    assert {row["id"] for row in said["deleted"]} == {
        row["id"] for row in found["orphans"] if row["kind"] != "volume"
    }
    said = ground.list("--delete", "--yes", "--kept", "--volumes", code=0)
    assert said["failed"] == []
    kinds = sorted(row["kind"] for row in said["deleted"])
    assert kinds == [IP, "volume"]
    writes = len(counted.writes())
    assert ground.list("--delete", "--yes", "--kept", "--volumes", code=0) == {
        **said,
        "orphans": [],
        "kept": [],
        "deleted": [],
    }
    assert len(counted.writes()) == writes
    check_left(ground, before, found)


def check_rows(ground: Ground, found: Document) -> None:
    """Print the table; a leftover without its findings fails."""
    assert found["unknown"] == []
    expected = 0
    for row, (service, kinds, word) in ROWS.items():
        rows = of_service(ground, found, service)
        reasons = {one["reason"] for one in rows}
        print(f"{row:34} {sorted(one['kind'] for one in rows)} {sorted(reasons)}")
        assert sorted(one["kind"] for one in rows) == sorted(kinds)
        assert any(word in reason for reason in reasons)
        expected += len(kinds)
    by_id = {one["id"]: one for one in found["orphans"]}
    for row, (key, kind, word) in LONE.items():
        one = by_id[ground.ids[key]]
        print(f"{row:34} {one['kind']} {one['reason']}")
        assert one["kind"] == kind
        assert word in one["reason"]
        expected += 1
    assert len(found["orphans"]) == expected
    (kept,) = found["kept"]
    print(f"{'floating IP retained':34} {kept['kind']} {kept['reason']}")
    assert kept["kind"] == IP
    keys = ("namesake", "address", "group", "volume-bare", "router")
    assert {one["id"] for one in found["not_owned"]} == {ground.ids[k] for k in keys}
    shown = json.dumps(found)
    for key in ("volume-used", "volume-pending", "living"):
        assert ground.ids[key] not in shown, key


def check_left(ground: Ground, before: census.Census, found: Document) -> None:
    """Compare all of the project, field by field, with what was there before."""
    after = census.take(ground.room.mine.connection)
    listed = {one["id"] for one in (*found["orphans"], *found["kept"])}
    gone = {
        change.id
        for change in census.changes(before, after)
        if change.after is None and change.field == ""
    }
    balancers_gone = {id_ for id_ in gone if id_ in before[balancers.BALANCERS]}
    uses = {one["id"] for one in found["orphans"] if one["kind"] == "shared-use"}
    assert balancers_gone == listed & before[balancers.BALANCERS].keys() - uses
    left = {ground.ids[key] for key in ("living", "twin", "owner", "namesake")}
    assert left <= after[balancers.BALANCERS].keys()
    for change in census.changes(before, after):
        of_living = change.id in left and change.id != ground.ids["shared"]
        assert not of_living, change
    cinder = ground.room.mine.connection.block_storage
    names = {volume.id for volume in cinder.volumes()}
    keys = ("volume-used", "volume-pending", "volume-bare")
    assert names == {ground.ids[key] for key in keys}
    owner = after[balancers.BALANCERS][ground.ids["owner"]]
    assert not any(ground.uids["user"] in tag for tag in owner["tags"])
    router = ground.network.get_router(ground.ids["router"])
    assert [one["destination"] for one in router.routes] == [OTHERS.destination]
    port = ground.network.get_port(ground.ids["port"])
    addresses = [pair["ip_address"] for pair in port.allowed_address_pairs]
    assert addresses == ["10.42.15.9"]


def test_ids_of_other_clusters_are_refused(ground: Ground) -> None:
    said = ground.run(ANY_AGE, "--cluster-id=another-cluster")
    assert (said.returncode, said.stdout) == (1, "")
    assert 'invalid value "another-cluster"' in said.stderr


def test_a_list_that_fails_is_unknown(ground: Ground) -> None:
    """Octavia hangs up: load balancers are unknown, security groups are not."""
    ground.room.entrance.down.add(layout.OCTAVIA)
    try:
        found = ground.list(code=1)
    finally:
        ground.room.entrance.down.clear()
    unknown = {one["kind"] for one in found["unknown"]}
    print(found["unknown"])
    assert unknown == {LB, "shared-use", "pool"}


def test_a_cluster_that_answers_is_not_gone(ground: Ground) -> None:
    """Then one that does not: the cloud alone is read, and its ID has to be typed."""
    gone = ("--cluster-is-gone", f"--cluster-id={ground.cluster_id}")
    said = ground.run(*gone)
    assert (said.returncode, said.stdout) == (1, "")
    assert "still answers" in said.stderr
    silent = ground.conf.with_name("orphans-silent-kubeconfig")
    text = ground.kubeconfig.read_text()
    silent.write_text(text.replace(f":{ground.room.where.port('apiserver')}", ":1"))
    assert silent.read_text() != text
    found = ground.list(*gone, code=3, kubeconfig=str(silent))
    uids = json.dumps(found["orphans"])
    assert ground.ids["living"] in uids
    said = ground.run(
        ANY_AGE, *gone, "--delete", "--yes", kubeconfig=str(silent), typed="no\n"
    )
    assert said.returncode == 1
    assert "nothing was deleted" in said.stderr
