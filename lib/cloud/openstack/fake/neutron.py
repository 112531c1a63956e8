"""Networks, subnets, ports, routers, floating IPs and security groups in memory.

Source: Networking API v2 reference; neutron/db/l3_db.py for floating IPs.
"""

import dataclasses
import ipaddress
from collections.abc import Callable

from lib.cloud.openstack.fake.routers import FakeRouters, bump, check_revision
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
class FakeNeutron:
    """What Neutron holds, by id; tests change it at will.

    full_subnets: ids of those that have no address left.
    """

    new_id: Callable[[str], str]
    networks: dict[str, Json] = dataclasses.field(default_factory=dict)
    subnets: dict[str, Json] = dataclasses.field(default_factory=dict)
    ports: dict[str, Json] = dataclasses.field(default_factory=dict)
    floating_ips: dict[str, Json] = dataclasses.field(default_factory=dict)
    groups: dict[str, Json] = dataclasses.field(default_factory=dict)
    full_subnets: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        """Have routers that see the ports and subnets."""
        self.l3 = FakeRouters(self.ports, self.subnets)

    def add_network(self, name: str, *, external: bool = False) -> str:
        """Create a network; return its ID."""
        id_ = self.new_id("network")
        self.networks[id_] = {
            "id": id_,
            "name": name,
            "router:external": external,
            "subnets": [],
        }
        return id_

    def add_subnet(
        self, network_id: str, cidr: str, name: str = "", tags: tuple[str, ...] = ()
    ) -> str:
        """Create a subnet; return its ID."""
        id_ = self.new_id("subnet")
        self.subnets[id_] = {
            "id": id_,
            "name": name,
            "network_id": network_id,
            "cidr": cidr,
            "ip_version": ipaddress.ip_network(cidr).version,
            "tags": list(tags),
        }
        network = self.networks[network_id]
        network["subnets"] = [*texts(network["subnets"]), id_]
        return id_

    def add_router(self, *subnet_ids: str) -> str:
        """Create a router with an interface in each subnet; return its ID."""
        id_ = self.new_id("router")
        self.l3.put(id_, tuple(self.add_port(subnet) for subnet in subnet_ids))
        return id_

    def add_port(self, subnet_id: str, address: str = "", device_id: str = "") -> str:
        """Create a port with an address of a subnet; return its ID."""
        id_ = self.new_id("port")
        self.ports[id_] = {
            "id": id_,
            "device_id": device_id,
            "network_id": self.subnets[subnet_id]["network_id"],
            "fixed_ips": [
                {
                    "subnet_id": subnet_id,
                    "ip_address": address or self.free_address(subnet_id),
                }
            ],
            "security_groups": [],
            "port_security_enabled": True,
            "mac_address": f"fa:16:3e:{id_[-6:-4]}:{id_[-4:-2]}:{id_[-2:]}",
            "allowed_address_pairs": [],
            "revision_number": 1,
        }
        return id_

    def free_address(self, subnet_id: str) -> str:
        """Find an address of a subnet that nothing has."""
        if subnet_id in self.full_subnets:
            raise Refused(409, f"No more IP addresses available on subnet {subnet_id}.")
        taken = {str(ip["floating_ip_address"]) for ip in self.floating_ips.values()}
        for port in self.ports.values():
            taken |= {str(ip["ip_address"]) for ip in objects(port, "fixed_ips")}
        network = ipaddress.ip_network(str(self.subnets[subnet_id]["cidr"]))
        for number in range(100, min(network.num_addresses, 65000)):
            address = str(network[number])
            if address not in taken:
                return address
        raise Refused(409, f"No more IP addresses available on subnet {subnet_id}.")

    def delete_port(self, port_id: str) -> None:
        """Delete a port; a floating IP on it becomes free."""
        self.ports.pop(port_id, None)
        for ip in self.floating_ips.values():
            if ip["port_id"] == port_id:
                ip["port_id"] = None

    def answer(self, call: Call) -> Answer:
        """Answer one request."""
        kind, *rest = call.parts
        if kind == "routers":
            return self.l3.answer(call)
        if call.method == "GET":
            return self._list(kind, call)
        if rest:
            return self._change(kind, rest[0], call)
        match kind:
            case "floatingips":
                return Answer(201, {"floatingip": self._new_floating_ip(call)})
            case "security-groups":
                return Answer(201, {"security_group": self._new_group(call)})
            case "security-group-rules":
                return self._new_rules(call)
        raise Refused(404, "The resource could not be found.")

    def _change(self, kind: str, id_: str, call: Call) -> Answer:
        match call.method, kind:
            case "PUT", "floatingips":
                return Answer(200, {"floatingip": self._attach(id_, call)})
            case "DELETE", "security-group-rules":
                return self._delete_rule(id_)
            case "PUT", "ports":
                return self._update_port(id_, call)
            case "DELETE", "floatingips" | "security-groups":
                return self._delete(kind, id_, call)
        raise Refused(404, "The resource could not be found.")

    def _list(self, kind: str, call: Call) -> Answer:
        collections_ = {
            "networks": self.networks,
            "subnets": self.subnets,
            "ports": self.ports,
            "floatingips": self.floating_ips,
            "security-groups": self.groups,
        }[kind]
        items = [item for item in collections_.values() if _fits(item, call)]
        return shown(items, call, kind.replace("-", "_"))

    def _new_floating_ip(self, call: Call) -> Json:
        request = part(call.body, "floatingip")
        network_id = str(request["floating_network_id"])
        if network_id not in self.networks:
            raise Refused(404, f"Network {network_id} could not be found.")
        subnets = [
            id_
            for id_, subnet in self.subnets.items()
            if subnet["network_id"] == network_id and subnet["ip_version"] == 4
        ]
        subnet_id = str(request.get("subnet_id") or next(iter(subnets), ""))
        if subnet_id not in subnets:
            raise Refused(400, f"Subnet {subnet_id} not found in network {network_id}")
        address = str(request.get("floating_ip_address") or "")
        if any(
            ip["floating_ip_address"] == address for ip in self.floating_ips.values()
        ):
            raise Refused(409, f"IP address {address} already allocated")
        port_id = request.get("port_id")
        self._check_free_port(port_id)
        floating_ip: Json = {
            "id": self.new_id("floatingip"),
            "floating_ip_address": address or self.free_address(subnet_id),
            "floating_network_id": network_id,
            "port_id": port_id,
            "description": request.get("description", ""),
            "tags": [],
            "revision_number": 0,
        }
        self.floating_ips[str(floating_ip["id"])] = floating_ip
        return floating_ip

    def _attach(self, id_: str, call: Call) -> Json:
        floating_ip = self.floating_ips.get(id_)
        if floating_ip is None:
            raise Refused(404, f"Floating IP {id_} could not be found")
        check_revision(floating_ip, call)
        request = part(call.body, "floatingip")
        port_id = request.get("port_id")
        if port_id != floating_ip["port_id"]:
            self._check_free_port(port_id)
        floating_ip["port_id"] = port_id
        if "description" in request:
            floating_ip["description"] = request["description"]
        bump(floating_ip)
        return floating_ip

    def _check_free_port(self, port_id: object) -> None:
        if port_id is None:
            return
        if port_id not in self.ports:
            raise Refused(404, f"Port {port_id} could not be found.")
        if any(ip["port_id"] == port_id for ip in self.floating_ips.values()):
            text = "as that fixed IP already has a floating IP on external network"
            raise Refused(409, f"Cannot associate floating IP, {text}")

    def _new_group(self, call: Call) -> Json:
        request = part(call.body, "security_group")
        group: Json = {
            "id": self.new_id("group"),
            "name": request["name"],
            "description": request.get("description", ""),
            "security_group_rules": [],
        }
        self.groups[str(group["id"])] = group
        for ethertype in ("IPv4", "IPv6"):
            _add_rule(
                group,
                {
                    "id": self.new_id("rule"),
                    "direction": "egress",
                    "ethertype": ethertype,
                    "protocol": None,
                    "remote_ip_prefix": None,
                    "port_range_min": None,
                    "port_range_max": None,
                },
            )
        return group

    def _new_rules(self, call: Call) -> Answer:
        requests = objects(call.body, "security_group_rules")
        rules: list[Json] = []
        for request in requests:
            group = self.groups.get(str(request["security_group_id"]))
            if group is None:
                raise Refused(404, "Security group could not be found")
            bare = {k: v for k, v in request.items() if k != "security_group_id"}
            if any(
                {**r, "id": 0} == {**bare, "id": 0}
                for r in objects(group, "security_group_rules")
            ):
                raise Refused(409, "Security group rule already exists.")
            rules.append({**bare, "id": self.new_id("rule")})
            _add_rule(group, rules[-1])
        return Answer(201, {"security_group_rules": rules})

    def _delete_rule(self, id_: str) -> Answer:
        for group in self.groups.values():
            kept = [
                rule
                for rule in objects(group, "security_group_rules")
                if rule["id"] != id_
            ]
            if len(kept) != len(objects(group, "security_group_rules")):
                group["security_group_rules"] = kept
                return Answer(204)
        raise Refused(404, f"Security group rule {id_} does not exist")

    def _update_port(self, id_: str, call: Call) -> Answer:
        port = self.ports.get(id_)
        if port is None:
            raise Refused(404, f"Port {id_} could not be found.")
        request = part(call.body, "port")
        if missing := set(texts(request.get("security_groups"))) - self.groups.keys():
            raise Refused(404, f"Security group {missing.pop()} does not exist.")
        check_revision(port, call)
        self.l3.check_pairs(port, request)
        port |= request
        bump(port)
        return Answer(200, {"port": port})

    def _delete(self, kind: str, id_: str, call: Call) -> Answer:
        objects_ = self.floating_ips if kind == "floatingips" else self.groups
        if id_ not in objects_:
            raise Refused(404, f"{kind} {id_} could not be found")
        check_revision(objects_[id_], call)
        if kind == "security-groups" and any(
            id_ in texts(port["security_groups"]) for port in self.ports.values()
        ):
            raise Refused(409, f"Security Group {id_} in use.")
        del objects_[id_]
        return Answer(204)


def _fixed(port: Json) -> list[tuple[str, str]]:
    fixed = objects(port, "fixed_ips")
    return [
        (str(fixed_ip["ip_address"]), str(fixed_ip["subnet_id"])) for fixed_ip in fixed
    ]


def _add_rule(group: Json, rule: Json) -> None:
    rules = objects(group, "security_group_rules")
    group["security_group_rules"] = [*rules, rule]


def _fits(item: Json, call: Call) -> bool:
    """Apply a list's filters."""
    return all(_fits_one(item, key, values) for key, values in call.query.items())


def _fits_one(item: Json, key: str, values: list[str]) -> bool:
    if key in ("fields", "limit", "marker"):
        return True
    if "tags" in key:
        tags = set(texts(item.get("tags")))
        asked = {tag for value in values for tag in value.split(",")}
        is_match = bool(asked & tags) if key.endswith("any") else asked <= tags
        return is_match != key.startswith("not-")
    if key == "fixed_ips":
        return any(f"ip_address={ip}" in values for ip, _ in _fixed(item))
    if key == "security_groups":
        return bool(set(texts(item.get(key))) & set(values))
    return str(item.get(key)) in values
