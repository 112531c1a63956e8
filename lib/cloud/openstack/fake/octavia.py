"""Octavia in memory, with its state machine: PENDING, 409 while it lasts, ERROR.

Source: octavia/api/v2/controllers; octavia/common/constants.py (which statuses take
which writes, which protocols fit); octavia/api/v2/types (which attributes there are).
"""

import dataclasses
from collections.abc import Callable, Iterable

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

_BALANCER = frozenset(
    "name description provider tags flavor_id availability_zone vip_port_id"
    " vip_subnet_id vip_network_id vip_address additional_vips listeners"
    " admin_state_up".split()
)
_LISTENER = frozenset(
    "name protocol protocol_port connection_limit tags timeout_client_data"
    " timeout_member_connect timeout_member_data timeout_tcp_inspect insert_headers"
    " default_tls_container_ref allowed_cidrs default_pool default_pool_id"
    " loadbalancer_id admin_state_up".split()
)
_POOL = frozenset(
    "name protocol lb_algorithm session_persistence members healthmonitor"
    " listener_id admin_state_up".split()
)
_MONITOR = frozenset(
    "name type delay timeout max_retries max_retries_down url_path http_method"
    " expected_codes pool_id admin_state_up".split()
)
_MEMBER = frozenset(
    "name address protocol_port subnet_id weight monitor_port admin_state_up".split()
)
_FIXED = frozenset(
    "provider flavor_id availability_zone vip_port_id vip_subnet_id vip_network_id"
    " vip_address additional_vips protocol protocol_port loadbalancer_id listener_id"
    " type pool_id default_pool listeners members healthmonitor".split()
)
"""Attributes that a PUT does not take."""
_FITTING = {
    "TCP": ("HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"),
    "HTTP": ("HTTP", "PROXY", "PROXYV2"),
    "TERMINATED_HTTPS": ("HTTP", "PROXY", "PROXYV2"),
    "UDP": ("UDP",),
    "SCTP": ("SCTP",),
}


@dataclasses.dataclass
class FakeOctavia:
    """What Octavia holds, by id; tests change it at will.

    clock: monotonic seconds. build_s, update_s, delete_s: how long it is at it.
    builds_fail: so many next load balancers end in ERROR; updates_fail: so many next
    changes end there. version: of the API. providers: others are refused. flavors,
    availabilityzones: whether each is enabled, by id and by name.
    """

    neutron: FakeNeutron
    new_id: Callable[[str], str]
    clock: Callable[[], float]
    build_s: float = 5.0
    update_s: float = 1.0
    delete_s: float = 2.0
    builds_fail: int = 0
    updates_fail: int = 0
    version: tuple[int, int] = (2, 30)
    providers: tuple[str, ...] = ("amphora", "octavia", "ovn", "f5", "amphorav2")
    flavors: dict[str, bool] = dataclasses.field(default_factory=dict)
    availabilityzones: dict[str, bool] = dataclasses.field(default_factory=dict)
    load_balancers: dict[str, Json] = dataclasses.field(default_factory=dict)
    listeners: dict[str, Json] = dataclasses.field(default_factory=dict)
    pools: dict[str, Json] = dataclasses.field(default_factory=dict)
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
        self._put(balancer, part(call.body, "loadbalancer"), _BALANCER)
        return Answer(200, {"loadbalancer": balancer})

    def advance(self) -> None:
        """Let everything happen that is due by now."""
        for id_, (at, status) in list(self._due.items()):
            if at <= self.clock():
                del self._due[id_]
                if status == "DELETED":
                    self._drop(id_)
                else:
                    self._set_status(self.load_balancers[id_], status)

    def finish(self) -> None:
        """Let everything happen that is under way."""
        self._due = {id_: (0.0, status) for id_, (_, status) in self._due.items()}
        self.advance()

    def _read(self, kind: str, rest: list[str], call: Call) -> Answer:
        if rest and kind == "loadbalancers":
            balancer = self._balancer(rest[0])
            if rest[1:] == ["status"]:
                return Answer(200, {"statuses": {"loadbalancer": self._tree(balancer)}})
            return Answer(200, {"loadbalancer": balancer})
        if rest[1:] == ["members"]:
            return shown(list(self.members.get(rest[0], {}).values()), call, "members")
        if kind in ("providers", "flavors", "availabilityzones"):
            return self._offers(kind, "".join(rest))
        found = {
            "loadbalancers": self.load_balancers,
            "listeners": self.listeners,
            "pools": self.pools,
            "healthmonitors": self.monitors,
        }[kind]
        only = call.one("load_balancer_id") or call.one("loadbalancer_id")
        items = [item for item in found.values() if not only or only in _ids(item)]
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
        return {
            "id": balancer["id"],
            "listeners": [
                {
                    "id": one["id"],
                    "pools": [
                        {
                            "id": pool["id"],
                            "members": [
                                {
                                    key: member[key]
                                    for key in (
                                        "id",
                                        "name",
                                        "address",
                                        "protocol_port",
                                    )
                                }
                                for member in self.members[str(pool["id"])].values()
                            ],
                        }
                        for pool in self.pools.values()
                        if pool["id"] == one["default_pool_id"]
                    ],
                }
                for one in self.listeners.values()
                if balancer["id"] in _ids(one)
            ],
        }

    def _new_balancer(self, call: Call) -> Json:
        wish = part(call.body, "loadbalancer")
        _check(wish, _BALANCER)
        if wish.get("provider") not in self.providers:
            raise Refused(400, f"Provider '{wish.get('provider')}' was not found.")
        if "tags" in wish and self.version < (2, 5):
            raise Refused(400, "Unknown attribute tags")
        port_id, subnet_id = self._vip(wish)
        port = self.neutron.ports[port_id]
        fixed = objects(port, "fixed_ips")
        id_ = self.new_id("loadbalancer")
        extra = objects(wish, "additional_vips")
        balancer: Json = {
            "id": id_,
            "name": wish.get("name", ""),
            "description": wish.get("description", ""),
            "admin_state_up": wish.get("admin_state_up", True),
            "provider": wish["provider"],
            "tags": texts(wish.get("tags")),
            "flavor_id": wish.get("flavor_id"),
            "availability_zone": wish.get("availability_zone"),
            "vip_address": fixed[0]["ip_address"],
            "vip_port_id": port_id,
            "vip_subnet_id": subnet_id,
            "vip_network_id": port["network_id"],
            "additional_vips": [
                {
                    "subnet_id": one["subnet_id"],
                    "ip_address": self.neutron.free_address(str(one["subnet_id"])),
                }
                for one in extra
            ],
            "created_at": self._time(),
            "updated_at": None,
            "provisioning_status": "PENDING_CREATE",
        }
        self.load_balancers[id_] = balancer
        for listener in objects(wish, "listeners"):
            self._new_listener(balancer, listener)
        end = "ACTIVE"
        if self.builds_fail:
            self.builds_fail, end = self.builds_fail - 1, "ERROR"
        self._due[id_] = (self.clock() + self.build_s, end)
        return balancer

    def _vip(self, wish: Json) -> tuple[str, str]:
        """Find or make the VIP's port; give its id and subnet."""
        if wish.get("vip_port_id"):
            port = self.neutron.ports.get(str(wish["vip_port_id"]))
            if port is None:
                raise Refused(400, f"Port {wish['vip_port_id']} not found.")
            fixed = objects(port, "fixed_ips")
            return str(port["id"]), str(fixed[0]["subnet_id"])
        subnet_id = str(wish.get("vip_subnet_id") or "")
        network_id = wish.get("vip_network_id")
        if network_id and not subnet_id and network_id not in self.neutron.networks:
            raise Refused(400, f"Network {network_id} not found.")
        if not subnet_id:
            fitting = [
                key
                for key, one in self.neutron.subnets.items()
                if one["network_id"] == network_id
            ]
            if not fitting:
                raise Refused(400, "VIP must contain one of: port, subnet, network")
            subnet_id = fitting[0]
        if subnet_id not in self.neutron.subnets:
            raise Refused(400, f"Subnet {subnet_id} not found.")
        address = str(wish.get("vip_address") or "")
        if address and any(
            address == one["ip_address"]
            for port in self.neutron.ports.values()
            for one in objects(port, "fixed_ips")
        ):
            text = f"IP address {address} already allocated in subnet {subnet_id}"
            raise Refused(409, text)
        return self.neutron.add_port(subnet_id, address), subnet_id

    def _delete_balancer(self, id_: str, cascades: bool) -> Answer:
        balancer = self._balancer(id_)
        if balancer["provisioning_status"] not in ("ACTIVE", "ERROR"):
            raise _immutable(id_)
        if not cascades and any(id_ in _ids(one) for one in self.listeners.values()):
            raise Refused(400, "Cannot delete Load Balancer - it has children")
        self._set_status(balancer, "PENDING_DELETE")
        self._due[id_] = (self.clock() + self.delete_s, "DELETED")
        return Answer(204)

    def _drop(self, id_: str) -> None:
        balancer = self.load_balancers.pop(id_)
        for listener in [x for x in self.listeners.values() if id_ in _ids(x)]:
            del self.listeners[str(listener["id"])]
        for pool in [x for x in self.pools.values() if id_ in _ids(x)]:
            self._drop_pool(pool)
        self.neutron.delete_port(str(balancer["vip_port_id"]))

    def _child(self, call: Call, kind: str, rest: list[str]) -> Answer:
        if call.method == "POST":
            return self._new_child(kind, call)
        found = {
            "listeners": self.listeners,
            "pools": self.pools,
            "healthmonitors": self.monitors,
        }[kind].get(rest[0])
        if found is None:
            raise Refused(404, f"{kind} {rest[0]} not found.")
        self._begin(self._parent(found))
        if call.method == "DELETE":
            self._delete_child(kind, found)
            return Answer(204)
        key = {"listeners": "listener", "pools": "pool"}.get(kind, "healthmonitor")
        allowed = {"listener": _LISTENER, "pool": _POOL}.get(key, _MONITOR)
        self._put(found, part(call.body, key), allowed)
        return Answer(200, {key: found})

    def _new_child(self, kind: str, call: Call) -> Answer:
        match kind:
            case "listeners":
                wish = part(call.body, "listener")
                balancer = self._balancer(str(wish.get("loadbalancer_id")))
                self._begin(balancer)
                return self._created("listener", self._new_listener(balancer, wish))
            case "pools":
                wish = part(call.body, "pool")
                listener = self.listeners.get(str(wish.get("listener_id")))
                if listener is None:
                    raise Refused(404, "Listener not found.")
                if listener["default_pool_id"]:
                    raise Refused(409, "Listener already has a default pool")
                balancer = self._parent(listener)
                self._begin(balancer)
                bare = {k: v for k, v in wish.items() if k not in _NESTED}
                return self._created("pool", self._new_pool(balancer, listener, bare))
        wish = part(call.body, "healthmonitor")
        pool = self.pools.get(str(wish.get("pool_id")))
        if pool is None:
            raise Refused(404, "Pool not found.")
        if pool["healthmonitor_id"]:
            raise Refused(409, "This pool already has a health monitor")
        self._begin(self._parent(pool))
        return self._created("healthmonitor", self._new_monitor(pool, wish))

    def _delete_child(self, kind: str, found: Json) -> None:
        if kind == "listeners":
            del self.listeners[str(found["id"])]
            for pool in self.pools.values():
                _unlink(pool, "listeners", found["id"])
        elif kind == "pools":
            self._drop_pool(found)
        else:
            del self.monitors[str(found["id"])]
            for pool in self.pools.values():
                if pool["healthmonitor_id"] == found["id"]:
                    pool["healthmonitor_id"] = None

    def _drop_pool(self, pool: Json) -> None:
        del self.pools[str(pool["id"])]
        self.members.pop(str(pool["id"]), None)
        self.monitors.pop(str(pool["healthmonitor_id"]), None)
        for listener in self.listeners.values():
            if listener["default_pool_id"] == pool["id"]:
                listener["default_pool_id"] = None

    def _new_listener(self, balancer: Json, wish: Json) -> Json:
        _check(wish, _LISTENER)
        protocol = str(wish["protocol"])
        if protocol not in _FITTING:
            raise Refused(
                400, f"Invalid input for field/attribute protocol: {protocol}"
            )
        for other in self.listeners.values():
            same = (_transport(other["protocol"]), other["protocol_port"])
            if balancer["id"] in _ids(other) and same == (
                _transport(protocol),
                wish["protocol_port"],
            ):
                raise Refused(409, "Another Listener already exists on that port")
        id_ = self.new_id("listener")
        listener: Json = {
            "id": id_,
            "name": wish.get("name", ""),
            "protocol": protocol,
            "protocol_port": wish["protocol_port"],
            "connection_limit": wish.get("connection_limit", -1),
            "default_pool_id": None,
            "insert_headers": wish.get("insert_headers") or {},
            "default_tls_container_ref": wish.get("default_tls_container_ref"),
            "timeout_client_data": wish.get("timeout_client_data", 50000),
            "timeout_member_connect": wish.get("timeout_member_connect", 5000),
            "timeout_member_data": wish.get("timeout_member_data", 50000),
            "timeout_tcp_inspect": wish.get("timeout_tcp_inspect", 0),
            "allowed_cidrs": wish.get("allowed_cidrs"),
            "admin_state_up": wish.get("admin_state_up", True),
            "tags": texts(wish.get("tags")),
            "loadbalancers": [{"id": balancer["id"]}],
        }
        self.listeners[id_] = listener
        if wish.get("default_pool_id"):
            pool = self.pools.get(str(wish["default_pool_id"]))
            if pool is None:
                raise Refused(404, "Pool not found.")
            listener["default_pool_id"] = pool["id"]
            pool["listeners"] = [*objects(pool, "listeners"), {"id": id_}]
        if wish.get("default_pool"):
            self._new_pool(balancer, listener, part(wish, "default_pool"))
        return listener

    def _new_pool(self, balancer: Json, listener: Json, wish: Json) -> Json:
        _check(wish, _POOL)
        if wish["protocol"] not in _FITTING[str(listener["protocol"])]:
            raise Refused(
                400,
                f"Validation failure: The pool protocol '{wish['protocol']}' is invalid"
                f" while the listener protocol is '{listener['protocol']}'.",
            )
        id_ = self.new_id("pool")
        pool: Json = {
            "id": id_,
            "name": wish.get("name", ""),
            "protocol": wish["protocol"],
            "lb_algorithm": wish["lb_algorithm"],
            "session_persistence": wish.get("session_persistence"),
            "admin_state_up": wish.get("admin_state_up", True),
            "listeners": [{"id": listener["id"]}],
            "loadbalancers": [{"id": balancer["id"]}],
            "healthmonitor_id": None,
        }
        self.pools[id_] = pool
        self.members[id_] = {}
        listener["default_pool_id"] = id_
        for member in objects(wish, "members"):
            self._new_member(id_, member)
        if wish.get("healthmonitor"):
            self._new_monitor(pool, part(wish, "healthmonitor"))
        return pool

    def _new_monitor(self, pool: Json, wish: Json) -> Json:
        _check(wish, _MONITOR)
        if wish["type"] == "UDP-CONNECT" and int(str(wish["delay"])) < 3:
            raise Refused(400, "The request delay value should be larger than 3")
        bare = {k: v for k, v in wish.items() if k != "pool_id"}
        bare = {"admin_state_up": True, **bare}
        monitor = {"id": self.new_id("monitor"), "pools": [{"id": pool["id"]}], **bare}
        self.monitors[str(monitor["id"])] = monitor
        pool["healthmonitor_id"] = monitor["id"]
        return monitor

    def _new_member(self, pool_id: str, wish: Json) -> None:
        _check(wish, _MEMBER)
        port = wish["protocol_port"]
        if not isinstance(port, int) or not 1 <= port <= 65535:
            raise Refused(
                400, f"Invalid input for field/attribute protocol_port: {port}"
            )
        subnet_id = wish.get("subnet_id")
        if subnet_id and subnet_id not in self.neutron.subnets:
            raise Refused(404, f"Subnet {subnet_id} not found.")
        member = {
            "id": self.new_id("member"),
            "name": wish.get("name", ""),
            "address": wish["address"],
            "protocol_port": port,
            "subnet_id": subnet_id,
            "weight": wish.get("weight", 1),
            "monitor_port": wish.get("monitor_port"),
            "admin_state_up": wish.get("admin_state_up", True),
        }
        self.members[pool_id][str(member["id"])] = member

    def _put_members(self, pool_id: str, call: Call) -> Answer:
        """Set members: known by address and port; a subnet is set once, then stays."""
        pool = self.pools.get(pool_id)
        if pool is None:
            raise Refused(404, f"Pool {pool_id} not found.")
        self._begin(self._parent(pool))
        additive = call.one("additive_only") == "true" and self.version >= (2, 11)
        there = self.members[pool_id]
        known = {(m["address"], m["protocol_port"]): m for m in there.values()}
        wishes = objects(call.body, "members")
        wanted = {(m["address"], m["protocol_port"]) for m in wishes}
        if len(wanted) != len(wishes):
            raise Refused(400, "Member must be updated only once in the same request.")
        for wish in wishes:
            member = known.get((wish["address"], wish["protocol_port"]))
            if member is None:
                self._new_member(pool_id, wish)
            else:
                _check(wish, _MEMBER)
                member |= {"weight": 1, "admin_state_up": True}
                fixed = {"address", "protocol_port"}
                fixed |= {"subnet_id"} if member.get("subnet_id") else set()
                member |= {k: v for k, v in wish.items() if k not in fixed}
        if not additive:
            for key in known.keys() - wanted:
                del there[str(known[key]["id"])]
        return Answer(202)

    def _put(self, found: Json, wish: Json, allowed: Iterable[str]) -> None:
        _check(wish, frozenset(allowed) - _FIXED)
        if "tags" in wish:
            wish = {**wish, "tags": [tag for tag in texts(wish["tags"]) if tag]}
        found |= wish

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
        """Give the time as Octavia writes it, which has a resolution of 1 s."""
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
        return self._balancer(_ids(child)[0])

    def _created(self, key: str, made: Json) -> Answer:
        return Answer(201, {key: made})


_NESTED = frozenset({"members", "healthmonitor"})
"""A pool that is made by itself does not take them."""


def _check(wish: Json, allowed: frozenset[str]) -> None:
    if unknown := sorted(wish.keys() - allowed):
        raise Refused(400, f"Unknown attribute {unknown[0]}")
    if len(str(wish.get("name") or "").encode()) > 255:
        raise Refused(400, "Invalid input for field/attribute name")


def _transport(protocol: object) -> str:
    return str(protocol) if protocol in ("UDP", "SCTP") else "TCP"


def _linked(item: Json, key: str) -> list[str]:
    found = item.get(key)
    return [str(one["id"]) for one in found] if isinstance(found, list) else []


def _ids(item: Json) -> list[str]:
    return _linked(item, "loadbalancers")


def _unlink(item: Json, key: str, id_: object) -> None:
    item[key] = [{"id": one} for one in _linked(item, key) if one != id_]


def _immutable(id_: str) -> Refused:
    return Refused(409, f"Load Balancer {id_} is immutable and cannot be updated.")
