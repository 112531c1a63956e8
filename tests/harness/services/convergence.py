"""Services of many kinds beside objects of others, and when all is as they ask.

The tests of many Services at once and of a storm of changes share a project in which
things of others lie, some with names like ours.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import errors
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers, inventory
from tests.harness.openstack.balancers import ADDRESSES, BALANCERS, GROUPS, PORTS
from tests.harness.openstack.inventory import Inventory
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

NODES = 6
QUIET_S = 6.0
POLL_S = 1.0
LEASE = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
OTHERS_PORTS = (7,)
"""Of what lies in the project besides."""
USERS_OWN = "users-own"
"""A load balancer that its user lets Services share, by its id."""
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a Service asks for. is_shared: on the user's own load balancer."""

    name: str
    protocols: tuple[str, ...]
    is_internal: bool = False
    is_shared: bool = False
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def ports(self, first: int) -> list[Mapping[str, Any]]:
        return [
            services.port(first + at, protocol)
            for at, protocol in enumerate(self.protocols)
        ]

    def all_annotations(self, own_id: str) -> Mapping[str, str]:
        annotations = dict(self.annotations)
        if self.is_internal:
            annotations[keys.INTERNAL] = "true"
        if self.is_shared:
            annotations[keys.LOAD_BALANCER_ID] = own_id
        return annotations


MONITORED = {keys.ENABLE_MONITOR: "true"}
KINDS = (
    Kind("one port", ("TCP",)),
    Kind("three, monitored", ("TCP", "TCP", "TCP"), annotations=MONITORED),
    Kind("internal", ("TCP",), is_internal=True),
    Kind("TCP and UDP", ("TCP", "UDP")),
    Kind("internal UDP", ("UDP",), is_internal=True),
)
SHARED = Kind("shared", ("TCP", "TCP"), is_shared=True)


def inactive(room: Room, ids: Collection[str]) -> list[str]:
    """Return which of these load balancers are not ACTIVE, with their status."""
    load_balancers = balancers.listed(room.mine.connection, BALANCERS)
    states = {
        id_: load_balancers[id_]["provisioning_status"]
        for id_ in ids
        if id_ in load_balancers
    }
    return [
        f"{id_} is {state}"
        for id_, state in states.items()
        if state != balancers.ACTIVE
    ]


def plant(room: Room, cluster_name: str) -> str:
    """Create objects of others; return the ID of a load balancer to share."""
    namespace, network = room.services.namespace, room.mine.connection.network
    add = room.mine.add_load_balancer
    own = add(USERS_OWN, OTHERS_PORTS)
    namesake = f"kube_service_{cluster_name}_{namespace}_at-once-0"
    other = add(namesake, OTHERS_PORTS, [namesake, "mooring:another-cluster:uid"])
    foreign = [other, add("somebody", OTHERS_PORTS, ["kube_service_somebody"])]
    waiting.until("ACTIVE", lambda: not inactive(room, [own, *foreign]))
    load_balancers = balancers.listed(room.mine.connection, BALANCERS)
    text = (
        f"Floating IP for Kubernetes external service {namespace}/at-once-0"
        f" from cluster {cluster_name}"
    )
    outside = next(iter(network.networks(is_router_external=True)))
    for description, more in (
        ("of its user", {"port_id": load_balancers[own]["vip_port_id"]}),
        (
            f"{text} (mooring:another-cluster:uid)",
            {"port_id": load_balancers[other]["vip_port_id"]},
        ),
        (text, {}),
        ("", {}),
    ):
        network.create_ip(
            floating_network_id=outside.id, description=description, **more
        )
    network.create_security_group(
        name=f"lb-sg-uid-{namespace}-at-once-0",
        description="Security Group for a Service",
    )
    network.create_security_group(name="somebody")
    return own


@dataclasses.dataclass(frozen=True)
class Ground:
    """The room with what was there before. own_id: of the user's own load balancer."""

    room: Room
    own_id: str
    before: Inventory

    def changed(self) -> list[str]:
        """Return the objects of others that were changed or deleted."""
        changes = inventory.changes(
            self.before, inventory.take(self.room.mine.connection)
        )
        foreign = self.before[BALANCERS].keys() - {self.own_id}
        return inactive(self.room, foreign) + [
            str(change)
            for change in changes
            if change.id in self.before[change.kind] and not self._is_lent(change)
        ]

    def _is_lent(self, change: inventory.Change) -> bool:
        """Nodes' ports get our groups, what is shared gets our tags, for a while."""
        nodes = self.room.nodes.values()
        if change.kind == PORTS:
            fixed = self.before[PORTS][change.id]["fixed_ips"]
            return any(fixed_ip["ip_address"] in nodes for fixed_ip in fixed)
        return change.kind == BALANCERS and change.id == self.own_id

    def left(self) -> list[str]:
        """Return the objects that are new, or differ from those before."""
        changes = inventory.changes(
            self.before, inventory.take(self.room.mine.connection)
        )
        inactive_ids = inactive(self.room, self.before[BALANCERS])
        return inactive_ids + [str(change) for change in changes]


def open_ground(open_room: balancing.Open, name: str) -> Ground:
    """Open a room in which things of others lie. name: of its project."""
    room = open_room(name, NODES)
    own = plant(room, "mooring-lab")
    return Ground(room, own, inventory.take(room.mine.connection))


def wrong(ground: Ground, *, is_managed: bool) -> list[str]:
    """Return what in the cloud differs from what the Services ask for."""
    room = ground.room
    now = inventory.take(room.mine.connection)
    existing = room.services.all()
    problems = []
    for name, service in existing.items():
        problems += [f"{name}: {problem}" for problem in _wrong(ground, now, service)]
        if is_managed:
            problems += [
                f"{name}: {problem}" for problem in _wrong_group(ground, now, service)
            ]
    uids = {service["metadata"]["uid"] for service in existing.values()}
    for kind in (BALANCERS, ADDRESSES, GROUPS):
        problems += [
            f"{kind} without a Service: {object_.get('name')}"
            f" {object_.get('description')}"
            for id_, object_ in now[kind].items()
            if id_ not in ground.before[kind] and not _is_of(object_, uids)
        ]
    return problems


def _is_of(object_: Json, uids: set[str]) -> bool:
    texts = [*object_.get("tags", []), object_.get("description") or ""]
    return any(uid in text for uid in uids for text in texts)


def receivers(room: Room) -> set[str]:
    """Return the addresses of the Nodes that receive traffic."""
    return {
        room.nodes[name]
        for name, labels in services.node_labels(room.api).items()
        if EXCLUDED not in labels and name in room.nodes
    }


def _wrong(ground: Ground, now: Inventory, service: Json) -> Iterator[str]:
    uid = service["metadata"]["uid"]
    annotations = services.annotations(service)
    own = [
        balancer
        for balancer in now[BALANCERS].values()
        if any(tag.endswith(uid) for tag in balancer["tags"])
    ]
    if keys.LOAD_BALANCER_ID in annotations and not own:
        own = [now[BALANCERS][ground.own_id]]
    if len(own) != 1:
        yield f"{len(own)} load balancers"
        return
    (balancer,) = own
    if balancer["provisioning_status"] != balancers.ACTIVE:
        yield f"it is {balancer['provisioning_status']}"
    yield from _wrong_ports(ground, now, service, balancer)
    shown = services.addresses(service)
    port_id = balancer["vip_port_id"]
    ips = [
        floating_ip["floating_ip_address"]
        for floating_ip in now[ADDRESSES].values()
        if floating_ip["port_id"] == port_id
    ]
    is_internal = annotations.get(keys.INTERNAL) == "true"
    if shown != ([balancer["vip_address"]] if is_internal else ips):
        yield f"{shown} in its status, {ips} before {balancer['vip_address']}"
    if is_internal and ips:
        yield f"internal, with {ips}"


def _wrong_ports(
    ground: Ground, now: Inventory, service: Json, balancer: Json
) -> Iterator[str]:
    """Compare listeners and members with ports and Nodes."""
    tag = f"_{service['metadata']['namespace']}_{service['metadata']['name']}"
    listeners = {
        (listener["protocol"], listener["protocol_port"]): listener
        for listener in now[balancers.LISTENERS].values()
        if listener["loadbalancers"][0]["id"] == balancer["id"]
        and (balancer["id"] != ground.own_id or tag in "".join(listener["tags"]))
    }
    desired = {
        (port["protocol"], port["port"]): port for port in service["spec"]["ports"]
    }
    if listeners.keys() != desired.keys():
        yield f"listeners {sorted(listeners)}, ports {sorted(desired)}"
        return
    for key, port in desired.items():
        if not listeners[key]["default_pool_id"]:
            yield f"port {key}: no pool"
            continue
        pool = now[balancers.POOLS].get(listeners[key]["default_pool_id"], {})
        members = {
            (member["address"], member["protocol_port"])
            for row in pool.get("members", ())
            if (member := now[balancers.MEMBERS].get(row["id"]))
        }
        expected = {(receiver, port["nodePort"]) for receiver in receivers(ground.room)}
        if members != expected:
            yield f"port {key}: members {sorted(members)}, not {sorted(expected)}"


def _wrong_group(ground: Ground, now: Inventory, service: Json) -> Iterator[str]:
    """Compare security groups with ports, and who carries them with the Nodes."""
    uid = service["metadata"]["uid"]
    own = {id_ for id_, group in now[GROUPS].items() if f"lb-sg-{uid}" in group["name"]}
    if len(own) != 1:
        yield f"{len(own)} security groups"
        return
    (id_,) = own
    rules = {
        (rule["protocol"].upper(), rule["port_range_min"])
        for rule in now[GROUPS][id_]["security_group_rules"]
        if rule["direction"] == "ingress"
    }
    ports = service["spec"]["ports"]
    if rules != {(port["protocol"], port["nodePort"]) for port in ports}:
        yield f"rules {sorted(rules)}"
    carriers = {
        fixed["ip_address"]
        for port in now[PORTS].values()
        for fixed in port["fixed_ips"]
        if id_ in port["security_groups"]
    }
    if carriers != receivers(ground.room):
        yield f"its group is carried by {sorted(carriers)}"


def settle(ground: Ground, *, is_managed: bool = False) -> float:
    """Wait until all is as the Services want it; return the seconds that took.

    The cloud's APIs are read once the Services are served and no load balancer is
    changing: to read all costs Octavia a second of its processor.
    """
    problems: list[str] = []
    with ground.room.states() as states:

        def is_settled() -> bool:
            nonlocal problems
            problems = _waiting_for(ground.room, states)
            try:
                problems = problems or wrong(ground, is_managed=is_managed)
            except errors.LabError as error:
                problems = [str(error)]  # what was just listed may be gone
            return not problems

        return waiting.until(lambda: "\n".join(problems), is_settled, poll_s=POLL_S)


def _waiting_for(room: Room, states: balancer_watch.States) -> list[str]:
    """Return what is not finished, by what is quickly read."""
    unserved = [
        name
        for name, service in room.services.all().items()
        if not services.addresses(service) or "deletionTimestamp" in service["metadata"]
    ]
    pending = (f"{id_} is changing" for id_ in states.pending())
    return [*(f"{name} waits" for name in unserved), *pending]


def started(room: Room, number: int, settings: Mapping[str, str]) -> Counted:
    """Have one replica only, with a new process; return its calls."""
    for replica in room.replicas.values():
        replica.stop()
    counted = Counted(room.entrance)
    room.replica(number, LEASE, settings).start()
    if room.services.all():
        asked = layout.OCTAVIA
        waiting.until(
            "it looks", lambda: any(call.service == asked for call in counted.calls())
        )
    return counted
