"""Routers with extra routes, and the address pairs of ports, in memory.

Source: Networking API v2; neutron/db/extraroute_db.py, l3_db.py and
allowedaddresspairs_db.py; the real Neutron answers alike (tests/contract/routes.py).
"""

import dataclasses
import ipaddress

from lib.cloud.openstack.fake.wire import (
    Answer,
    Call,
    Json,
    Refused,
    objects,
    part,
)

PROJECT = "project-of-the-fake"


@dataclasses.dataclass
class FakeRouters:
    """Routers by id.

    ports, subnets: of the Neutron that has them. max_routes, max_pairs: most of one
    router, of one port. has_routes, is_atomic: the extensions extraroute and
    extraroute-atomic.
    """

    ports: dict[str, Json]
    subnets: dict[str, Json]
    routers: dict[str, Json] = dataclasses.field(default_factory=dict)
    max_routes: int = 30
    max_pairs: int = 10
    has_routes: bool = True
    is_atomic: bool = True

    def put(self, id_: str, port_ids: tuple[str, ...]) -> None:
        """Create a router with interfaces."""
        self.routers[id_] = {
            "id": id_,
            "name": id_,
            "project_id": "",
            "routes": [],
            "revision_number": 1,
        }
        for port_id in port_ids:
            self.ports[port_id]["device_id"] = id_
            self.ports[port_id]["device_owner"] = "network:router_interface"

    def answer(self, call: Call) -> Answer:
        """Answer a request for one router."""
        id_, *action = call.parts[1:]
        router = self.routers.get(id_)
        if router is None:
            raise Refused(404, f"Router {id_} could not be found")
        if call.method == "PUT":
            self._change(router, action, call)
        elif action:
            raise Refused(404, "The resource could not be found.")
        shown = {k: v for k, v in router.items() if self.has_routes or k != "routes"}
        return Answer(200, {"router": shown})

    def _change(self, router: Json, action: list[str], call: Call) -> None:
        asked = [_route(r) for r in objects(part(call.body, "router"), "routes")]
        old = [_route(r) for r in objects(router, "routes")]
        match action if self.is_atomic or not action else ["unknown"]:
            case ["add_extraroutes"]:
                new = [*old, *(r for r in asked if r not in old)]
            case ["remove_extraroutes"]:
                new = [r for r in old if r not in asked]
            case []:
                check_revision(router, call)
                new = asked
            case _:
                raise Refused(404, "The resource could not be found.")
        self._check(str(router["id"]), new)
        if sorted(new) != sorted(old):
            router["routes"] = [{"destination": d, "nexthop": h} for d, h in new]
            bump(router)

    def _check(self, router_id: str, routes: list[tuple[str, str]]) -> None:
        own = [
            fixed
            for port in self.ports.values()
            if port["device_id"] == router_id
            for fixed in objects(port, "fixed_ips")
        ]
        subnets = [
            ipaddress.ip_network(str(self.subnets[str(f["subnet_id"])]["cidr"]))
            for f in own
        ]
        for _, hop in routes:
            why = ""
            if not any(ipaddress.ip_address(hop) in subnet for subnet in subnets):
                why = "the nexthop is not connected with router"
            elif hop in {str(f["ip_address"]) for f in own}:
                why = "the nexthop is used by router"
            if why:
                raise Refused(400, f"Invalid format for routes: {routes}, {why}")
        if len(routes) > self.max_routes:
            raise Refused(409, "Quota exceeded for resources: ['router_route'].")

    def check_pairs(self, port: Json, request: Json) -> None:
        """Complete the address pairs of a change of a port, or refuse it."""
        if "allowed_address_pairs" not in request:
            return
        pairs = objects(request, "allowed_address_pairs")
        if not port["port_security_enabled"] and pairs:
            text = "Port Security must be enabled in order to have allowed"
            raise Refused(409, f"{text} address pairs on a port.")
        if len(pairs) > self.max_pairs:
            text = "The number of allowed address pair exceeds the maximum"
            raise Refused(400, f"{text} {self.max_pairs}.")
        request["allowed_address_pairs"] = [
            {
                "ip_address": pair["ip_address"],
                "mac_address": pair.get("mac_address", port["mac_address"]),
            }
            for pair in pairs
        ]


def _route(route: Json) -> tuple[str, str]:
    return str(route["destination"]), str(route["nexthop"])


def bump(resource: Json) -> None:
    """Count a change."""
    resource["revision_number"] = int(str(resource.get("revision_number", 0))) + 1


def check_revision(stored: Json, call: Call) -> None:
    """Refuse a change of what is not as the caller saw it."""
    revision = call.headers.get("If-Match", "").removeprefix("revision_number=")
    if revision and revision != str(stored.get("revision_number")):
        raise Refused(412, "Constrained to a revision_number that does not match.")
