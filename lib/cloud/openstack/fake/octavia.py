"""Octavia in memory, with its state machine: PENDING, 409 while it lasts, ERROR.

Source: octavia/api/v2/controllers; octavia/common/constants.py (which statuses take
which writes, which protocols fit); octavia/api/v2/types (which attributes there are).
"""

import dataclasses
from collections.abc import Callable, Iterable

from lib.cloud.openstack.fake import octavia_bodies, vips
from lib.cloud.openstack.fake.children import Children
from lib.cloud.openstack.fake.neutron import FakeNeutron
from lib.cloud.openstack.fake.wire import (
    Answer,
    Call,
    Json,
    Refused,
    objects,
    part,
    shown,
    texts,
)


@dataclasses.dataclass
class FakeOctavia:
    """Objects of Octavia by ID; tests change them.

    clock: monotonic seconds. build_s, update_s, delete_s: duration of each.
    builds_fail: number of next load balancers that end in ERROR; updates_fail: of next
    changes that end there; deletions_fail: of next deletions of load balancers.
    hidden: load balancers that lists lack, as those of a replica that lags.
    version: of the API. providers: others are refused. flavors, availabilityzones:
    whether each is enabled, by id and by name.
    """

    neutron: FakeNeutron
    new_id: Callable[[str], str]
    clock: Callable[[], float]
    build_s: float = 5.0
    update_s: float = 1.0
    delete_s: float = 2.0
    builds_fail: int = 0
    updates_fail: int = 0
    deletions_fail: int = 0
    hidden: set[str] = dataclasses.field(default_factory=set)
    version: tuple[int, int] = (2, 30)
    providers: tuple[str, ...] = ("amphora", "octavia", "ovn", "f5", "amphorav2")
    flavors: dict[str, bool] = dataclasses.field(default_factory=dict)
    availabilityzones: dict[str, bool] = dataclasses.field(default_factory=dict)
    load_balancers: dict[str, Json] = dataclasses.field(default_factory=dict)
    listeners: Children = dataclasses.field(default_factory=Children)
    pools: Children = dataclasses.field(default_factory=Children)
    monitors: dict[str, Json] = dataclasses.field(default_factory=dict)
    members: dict[str, dict[str, Json]] = dataclasses.field(default_factory=dict)
    _due: dict[str, tuple[float, str]] = dataclasses.field(default_factory=dict)

    def answer(self, call: Call) -> Answer:
        """Answer one request."""
        self.advance()
        _, kind, *rest = call.parts
        if call.method == "GET":
            return self._read(kind, rest, call)
        if rest[1:] == ["members"]:
            return self._put_members(rest[0], call)
        if kind != "loadbalancers":
            return self._child(call, kind, rest)
        if call.method == "POST":
            return self._created("loadbalancer", self._new_balancer(call))
        if call.method == "DELETE":
            return self._delete_balancer(rest[0], call.one("cascade") == "true")
        return self._change_balancer(rest, call)

    def _change_balancer(self, rest: list[str], call: Call) -> Answer:
        balancer = self._balancer(rest[0])
        if rest[1:] == ["failover"]:
            self._begin(balancer, "ERROR")
            return Answer(202)
        self._begin(balancer)
        self._put(balancer, part(call.body, "loadbalancer"), octavia_bodies.BALANCER)
        return Answer(200, {"loadbalancer": balancer})

    def advance(self) -> None:
        """Complete everything that is due by now."""
        for id_, (at, status) in list(self._due.items()):
            if at <= self.clock():
                del self._due[id_]
                if status == "DELETED":
                    self._drop(id_)
                else:
                    self._set_status(self.load_balancers[id_], status)

    def finish(self) -> None:
        """Complete everything that is in progress."""
        self._due = {id_: (0.0, status) for id_, (_, status) in self._due.items()}
        self.advance()

    def _read(self, kind: str, rest: list[str], call: Call) -> Answer:
        if rest and kind == "loadbalancers":
            balancer = self._balancer(rest[0])
            if rest[1:] == ["status"]:
                tree = self._tree(balancer)
                return Answer(200, {"statuses": {"loadbalancer": tree}})
            return Answer(200, {"loadbalancer": balancer})
        if rest and kind == "healthmonitors":
            if rest[0] not in self.monitors:
                raise Refused(404, f"healthmonitor {rest[0]} not found.")
            return Answer(200, {"healthmonitor": self.monitors[rest[0]]})
        if rest[1:] == ["members"]:
            return shown(list(self.members.get(rest[0], {}).values()), call, "members")
        if kind in ("providers", "flavors", "availabilityzones"):
            return self._offers(kind, "".join(rest))
        collections_ = {
            "loadbalancers": self.load_balancers,
            "listeners": self.listeners,
            "pools": self.pools,
            "healthmonitors": self.monitors,
        }[kind]
        only = call.one("load_balancer_id") or call.one("loadbalancer_id")
        items = list(collections_.values())
        if only:
            items = collections_.of(only) if isinstance(collections_, Children) else []
        items = [item for item in items if item["id"] not in self.hidden]
        return shown(items, call, kind)

    def _offers(self, kind: str, id_: str) -> Answer:
        """List providers, or show one flavor or availability zone."""
        if kind == "providers":
            known = [{"name": name, "description": ""} for name in self.providers]
            return Answer(200, {"providers": known})
        offered = self.flavors if kind == "flavors" else self.availabilityzones
        if id_ not in offered:
            raise Refused(404, f"{kind} {id_} not found.")
        shown = {"name": id_, "enabled": offered[id_]}
        return Answer(200, {kind.removesuffix("s"): shown})

    def _tree(self, balancer: Json) -> Json:
        id_ = str(balancer["id"])
        listeners = self.listeners.of(id_)
        return octavia_bodies.tree(balancer, listeners, self.pools, self.members)

    def _new_balancer(self, call: Call) -> Json:
        request = part(call.body, "loadbalancer")
        octavia_bodies.check(request, octavia_bodies.BALANCER)
        if request.get("provider") not in self.providers:
            raise Refused(400, f"Provider '{request.get('provider')}' was not found.")
        if "tags" in request and self.version < (2, 5):
            raise Refused(400, "Unknown attribute tags")
        vip = vips.have(self.neutron, request)
        id_ = self.new_id("loadbalancer")
        balancer = octavia_bodies.balancer(id_, request, vip, self._time())
        try:
            octavia_bodies.check_children(balancer, request)
        except Refused:
            if not request.get("vip_port_id"):
                self.neutron.delete_port(str(balancer["vip_port_id"]))
            raise
        self.load_balancers[id_] = balancer
        for listener in objects(request, "listeners"):
            self._new_listener(balancer, listener)
        end = "ACTIVE"
        if self.builds_fail:
            self.builds_fail, end = self.builds_fail - 1, "ERROR"
        self._due[id_] = (self.clock() + self.build_s, end)
        return balancer

    def _delete_balancer(self, id_: str, cascades: bool) -> Answer:
        balancer = self._balancer(id_)
        if balancer["provisioning_status"] not in ("ACTIVE", "ERROR"):
            raise _immutable(id_)
        if not cascades and self.listeners.of(id_):
            raise Refused(400, "Cannot delete Load Balancer - it has children")
        self._set_status(balancer, "PENDING_DELETE")
        end = "DELETED"
        if self.deletions_fail:
            self.deletions_fail, end = self.deletions_fail - 1, "ERROR"
        self._due[id_] = (self.clock() + self.delete_s, end)
        return Answer(204)

    def _drop(self, id_: str) -> None:
        balancer = self.load_balancers.pop(id_)
        for listener in self.listeners.of(id_):
            del self.listeners[str(listener["id"])]
        for pool in self.pools.of(id_):
            self._drop_pool(pool)
        self.neutron.delete_port(str(balancer["vip_port_id"]))

    def _child(self, call: Call, kind: str, rest: list[str]) -> Answer:
        if call.method == "POST":
            return self._new_child(kind, call)
        child = {
            "listeners": self.listeners,
            "pools": self.pools,
            "healthmonitors": self.monitors,
        }[kind].get(rest[0])
        if child is None:
            raise Refused(404, f"{kind} {rest[0]} not found.")
        for request in (part(call.body, key) for key in call.body):
            octavia_bodies.check_algorithm(self._parent(child), request)
            octavia_bodies.check_cidrs(self._parent(child), request)
        self._begin(self._parent(child))
        if call.method == "DELETE":
            self._delete_child(kind, child)
            return Answer(204)
        key = {"listeners": "listener", "pools": "pool"}.get(kind, "healthmonitor")
        allowed = {
            "listener": octavia_bodies.LISTENER,
            "pool": octavia_bodies.POOL,
        }.get(key, octavia_bodies.MONITOR)
        self._put(child, part(call.body, key), allowed)
        return Answer(200, {key: child})

    def _new_child(self, kind: str, call: Call) -> Answer:
        match kind:
            case "listeners":
                request = part(call.body, "listener")
                balancer = self._balancer(str(request.get("loadbalancer_id")))
                self._begin(balancer)
                return self._created("listener", self._new_listener(balancer, request))
            case "pools":
                request = part(call.body, "pool")
                listener = self.listeners.get(str(request.get("listener_id")))
                if listener is None:
                    raise Refused(404, "Listener not found.")
                if listener["default_pool_id"]:
                    raise Refused(409, "This listener already has a default pool")
                balancer = self._parent(listener)
                self._begin(balancer)
                bare = {
                    k: v for k, v in request.items() if k not in octavia_bodies.NESTED
                }
                return self._created("pool", self._new_pool(balancer, listener, bare))
        request = part(call.body, "healthmonitor")
        pool = self.pools.get(str(request.get("pool_id")))
        if pool is None:
            raise Refused(404, "Pool not found.")
        if pool["healthmonitor_id"]:
            raise Refused(409, "This pool already has a health monitor")
        self._begin(self._parent(pool))
        return self._created("healthmonitor", self._new_monitor(pool, request))

    def _delete_child(self, kind: str, child: Json) -> None:
        if kind == "listeners":
            del self.listeners[str(child["id"])]
            for pool in self.pools.values():
                _unlink(pool, "listeners", child["id"])
        elif kind == "pools":
            self._drop_pool(child)
        else:
            del self.monitors[str(child["id"])]
            for pool in self.pools.values():
                if pool["healthmonitor_id"] == child["id"]:
                    pool["healthmonitor_id"] = None

    def _drop_pool(self, pool: Json) -> None:
        del self.pools[str(pool["id"])]
        self.members.pop(str(pool["id"]), None)
        self.monitors.pop(str(pool["healthmonitor_id"]), None)
        for listener in self.listeners.values():
            if listener["default_pool_id"] == pool["id"]:
                listener["default_pool_id"] = None

    def _new_listener(self, balancer: Json, request: Json) -> Json:
        octavia_bodies.check(request, octavia_bodies.LISTENER)
        protocol = str(request["protocol"])
        if protocol not in octavia_bodies.FITTING:
            text = f"Invalid input for field/attribute protocol: {protocol}"
            raise Refused(400, text)
        own = (octavia_bodies.transport(protocol), request["protocol_port"])
        for other in self.listeners.of(str(balancer["id"])):
            if own == (
                octavia_bodies.transport(other["protocol"]),
                other["protocol_port"],
            ):
                text = "Another Listener on this Load Balancer is already using it"
                raise Refused(409, text)
        octavia_bodies.check_cidrs(balancer, request)
        id_ = self.new_id("listener")
        listener = octavia_bodies.listener(id_, balancer, request)
        self.listeners[id_] = listener
        if request.get("default_pool_id"):
            pool = self.pools.get(str(request["default_pool_id"]))
            if pool is None:
                raise Refused(404, "Pool not found.")
            listener["default_pool_id"] = pool["id"]
            pool["listeners"] = [*objects(pool, "listeners"), {"id": id_}]
        if request.get("default_pool"):
            self._new_pool(balancer, listener, part(request, "default_pool"))
        return listener

    def _new_pool(self, balancer: Json, listener: Json, request: Json) -> Json:
        octavia_bodies.check(request, octavia_bodies.POOL)
        if request["protocol"] not in octavia_bodies.FITTING[str(listener["protocol"])]:
            raise Refused(
                400,
                f"Validation failure: The pool protocol '{request['protocol']}' is"
                f" invalid while the listener protocol is '{listener['protocol']}'.",
            )
        octavia_bodies.check_algorithm(balancer, request)
        id_ = self.new_id("pool")
        pool = octavia_bodies.pool(id_, balancer, listener, request)
        self.pools[id_] = pool
        self.members[id_] = {}
        listener["default_pool_id"] = id_
        for member in objects(request, "members"):
            self._new_member(id_, member)
        if request.get("healthmonitor"):
            self._new_monitor(pool, part(request, "healthmonitor"))
        return pool

    def _new_monitor(self, pool: Json, request: Json) -> Json:
        octavia_bodies.check(request, octavia_bodies.MONITOR)
        if request["type"] == "UDP-CONNECT" and int(str(request["delay"])) < 3:
            raise Refused(400, "The request delay value should be larger than 3")
        bare = {k: v for k, v in request.items() if k != "pool_id"}
        bare = {"admin_state_up": True, **bare}
        monitor = {"id": self.new_id("monitor"), "pools": [{"id": pool["id"]}], **bare}
        self.monitors[str(monitor["id"])] = monitor
        pool["healthmonitor_id"] = monitor["id"]
        return monitor

    def _new_member(self, pool_id: str, request: Json) -> None:
        octavia_bodies.check(request, octavia_bodies.MEMBER)
        port = request["protocol_port"]
        if not isinstance(port, int) or not 1 <= port <= 65535:
            raise Refused(
                400, f"Invalid input for field/attribute protocol_port: {port}"
            )
        subnet_id = request.get("subnet_id")
        if subnet_id and subnet_id not in self.neutron.subnets:
            raise Refused(404, f"Subnet {subnet_id} not found.")
        member = octavia_bodies.member(self.new_id("member"), request)
        self.members[pool_id][str(member["id"])] = member

    def _put_members(self, pool_id: str, call: Call) -> Answer:
        """Set members: known by address and port; a subnet is set once, then stays."""
        pool = self.pools.get(pool_id)
        if pool is None:
            raise Refused(404, f"Pool {pool_id} not found.")
        self._begin(self._parent(pool))
        additive = call.one("additive_only") == "true" and self.version >= (2, 11)
        members = self.members[pool_id]
        known = {(m["address"], m["protocol_port"]): m for m in members.values()}
        requests = objects(call.body, "members")
        desired = {(m["address"], m["protocol_port"]) for m in requests}
        if len(desired) != len(requests):
            raise Refused(400, "Member must be updated only once in the same request.")
        for request in requests:
            member = known.get((request["address"], request["protocol_port"]))
            if member is None:
                self._new_member(pool_id, request)
            else:
                octavia_bodies.check(request, octavia_bodies.MEMBER)
                member |= {"weight": 1, "admin_state_up": True}
                fixed = {"address", "protocol_port"}
                fixed |= {"subnet_id"} if member.get("subnet_id") else set()
                member |= {k: v for k, v in request.items() if k not in fixed}
        if not additive:
            for key in known.keys() - desired:
                del members[str(known[key]["id"])]
        return Answer(202)

    def _put(self, stored: Json, request: Json, allowed: Iterable[str]) -> None:
        octavia_bodies.check(request, frozenset(allowed) - octavia_bodies.FIXED)
        if "tags" in request:
            request = {
                **request,
                "tags": [tag for tag in texts(request["tags"]) if tag],
            }
        stored |= request

    def _begin(self, balancer: Json, *also_from: str) -> None:
        """Start a change; only an ACTIVE load balancer takes one."""
        if balancer["provisioning_status"] not in ("ACTIVE", *also_from):
            raise _immutable(str(balancer["id"]))
        self._set_status(balancer, "PENDING_UPDATE")
        end = "ACTIVE"
        if self.updates_fail:
            self.updates_fail, end = self.updates_fail - 1, "ERROR"
        self._due[str(balancer["id"])] = (self.clock() + self.update_s, end)

    def _set_status(self, balancer: Json, status: str) -> None:
        balancer["provisioning_status"] = status
        balancer["updated_at"] = self._time()

    def _time(self) -> str:
        """Return the time as Octavia writes it, which has a resolution of 1 s."""
        seconds = int(self.clock())
        return (
            f"2026-01-{1 + seconds // 86400:02}T{seconds // 3600 % 24:02}"
            f":{seconds // 60 % 60:02}:{seconds % 60:02}"
        )

    def _balancer(self, id_: str) -> Json:
        if id_ not in self.load_balancers:
            raise Refused(404, f"Load Balancer {id_} not found.")
        return self.load_balancers[id_]

    def _parent(self, child: Json) -> Json:
        if "pools" in child:
            pool_id = _linked(child, "pools")[0]
            child = self.pools[pool_id]
        return self._balancer(_linked(child, "loadbalancers")[0])

    def _created(self, key: str, created: Json) -> Answer:
        return Answer(201, {key: created})


def _linked(item: Json, key: str) -> list[str]:
    references = item.get(key)
    return (
        [str(reference["id"]) for reference in references]
        if isinstance(references, list)
        else []
    )


def _unlink(item: Json, key: str, id_: object) -> None:
    item[key] = [
        {"id": reference} for reference in _linked(item, key) if reference != id_
    ]


def _immutable(id_: str) -> Refused:
    return Refused(409, f"Load Balancer {id_} is immutable and cannot be updated.")
