"""A project with every kind of leftover for `mooring orphans`, and a daemon at work."""

import contextlib
import dataclasses
import json
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from lib.cloud import route_records
from lib.cloud.routes import AddressPair, Record, Recorded, Route
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.kube import control_plane, kube_objects
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.daemons import tool
from tests.harness.openstack import balancers
from tests.harness.services import balancing, services

SETTINGS = {"manage-security-groups": "true", "max-shared-lb": "4"}
KEEP = "loadbalancer.openstack.org/keep-floatingip"
SHARED = services.LOAD_BALANCER_ID
SERVED = (
    *("stripped", "recreated", "kept", "failed"),
    *("grouped", "twin", "owner"),
)
ANY_AGE = "--min-age=0"
LOST = Route("10.244.7.0/24", "10.42.15.250")
OTHERS = Route("192.0.2.0/24", "10.42.15.251")
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

    def words(self, kubeconfig: str = "") -> list[str]:
        """Return the command with how to reach cluster and cloud."""
        path = kubeconfig or str(self.kubeconfig)
        return [
            "orphans",
            f"--kubeconfig={path}",
            f"--cloud-config={self.conf}",
        ]

    def run(self, *words: str, kubeconfig: str = "", typed: str = "") -> tool.Said:
        """Run the tool, and print what it reports."""
        result = tool.mooring_process(*self.words(kubeconfig), *words, typed=typed)
        print(*words, f"-> {result.returncode}", result.stderr[-2000:], sep="\n")
        return result

    def list(self, *words: str, code: int, kubeconfig: str = "") -> Document:
        """Run the tool for resources of any age; return its JSON document."""
        result = self.run(ANY_AGE, "--output=json", *words, kubeconfig=kubeconfig)
        document: Document = json.loads(result.stdout or "{}")
        problems = [
            document.get("unknown"),
            document.get("failed"),
            result.stderr[-500:],
        ]
        assert result.returncode == code, problems
        return document

    @property
    def network(self) -> Any:
        """Neutron, as the project's user."""
        return self.room.mine.connection.network

    @property
    def octavia(self) -> Any:
        """Octavia, as the project's user."""
        return self.room.mine.connection.load_balancer


@contextlib.contextmanager
def ground(room: balancing.Room) -> Iterator[Ground]:
    """Serve Services, stop the daemon, create leftovers, and start it again."""
    where = room.where
    room.add_nodes(["node-01"])
    conf = where.state / f"{room.account.project}-cloud.conf"
    conf.write_text(balancing.conf(room.entrance, where, room.account, SETTINGS))
    system = room.api.read(resources.NAMESPACES, "kube-system", None, timeout_s=30)
    new_ground = Ground(
        room,
        conf,
        control_plane.admin_kubeconfig(where),
        str(json.loads(system)["metadata"]["uid"]),
        services.Services(room.api, f"{room.services.namespace}-doomed"),
    )
    began = time.monotonic()
    _serve(new_ground)
    served = time.monotonic()
    _leave(new_ground)
    took = served - began, time.monotonic() - served
    print(f"Services served in {took[0]:.0f} s, leftovers created in {took[1]:.0f} s")
    try:
        yield new_ground
    finally:
        # A router with routes keeps its interfaces.
        new_ground.network.update_router(new_ground.ids["router"], routes=[])
        with contextlib.suppress(kube_errors.KubeError):
            new_ground.doomed.abandon()
        objects = kube_objects.Objects(room.api, "")
        objects.delete(resources.PERSISTENT_VOLUMES, "orphans-used")
        volumes = room.mine.connection.block_storage
        for volume in volumes.volumes():
            volumes.delete_volume(str(volume.id))


def _serve(ground: Ground) -> None:
    """Wait until all Services are served; the last shares a load balancer."""
    room = ground.room
    room.replica(1, settings=SETTINGS).start()
    for name in SERVED:
        room.services.make(name, {KEEP: "true"} if name == "kept" else None)
    ground.doomed.make("doomed")
    waiting.until("served", lambda: not _unserved(ground))
    _note(ground)
    shared_id = ground.ids["shared"] = ground.ids["owner"]
    room.services.make("user", {SHARED: shared_id}, (services.port(81),))
    room.services.delete(["kept"])
    waiting.until("served", lambda: not _unserved(ground, "kept"))
    _note(ground)
    waiting.until("deleted", lambda: room.services.get("kept") is None)

    def has_pool() -> bool:
        return bool(balancers.look(room.mine.connection).members(shared_id, 81))

    waiting.until("the pool of the shared one has members", has_pool)


def _every(ground: Ground) -> Mapping[str, Any]:
    return {**ground.room.services.all(), **ground.doomed.all()}


def _note(ground: Ground) -> None:
    """Note UIDs and load balancers of the Services as they are now."""
    for name, service in _every(ground).items():
        ground.uids[name] = str(service["metadata"]["uid"])
        ground.ids[name] = services.balancer_id(service)


def _unserved(ground: Ground, *without: str) -> list[str]:
    every = _every(ground)
    return [n for n in every.keys() - {*without} if not services.addresses(every[n])]


def _leave(ground: Ground) -> None:
    """Create what the daemon cannot see, and start it again."""
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
    waiting.until("served", lambda: not _unserved(ground))
    living = room.services.get("recreated")
    assert living is not None
    ground.ids["living"] = services.balancer_id(living)
    _plant(ground)
    _volumes(ground)
    _routes(ground)
    busy = [*ground.ids.values(), ground.ids["second"], ground.ids["namesake"]]

    def settled() -> bool:
        states = balancers.listed(room.mine.connection, balancers.BALANCERS)
        passing = (states[id_]["provisioning_status"] for id_ in busy if id_ in states)
        return not any(str(state).startswith("PENDING") for state in passing)

    waiting.until("settled", settled)


def _plant(ground: Ground) -> None:
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


def _volumes(ground: Ground) -> None:
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
        volume = cinder.create_volume(size=1, name=name, metadata=metadata)
        ground.ids[key] = str(volume.id)
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
        return all(volume.status == "available" for volume in cinder.volumes())

    waiting.until("volumes", are_available)


def _routes(ground: Ground) -> None:
    """Create a recorded route and pair of a deleted Node, and a route of others."""
    api, network = ground.room.api, ground.network
    (router,) = network.routers(
        project_id=ground.room.mine.connection.current_project_id
    )
    listed = [
        {"destination": str(route.destination), "nexthop": route.next_hop}
        for route in (LOST, OTHERS)
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
