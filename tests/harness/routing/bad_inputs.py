"""Mistakes of Nodes, routers and records, each with what is observed of it."""

import dataclasses
from collections.abc import Callable

from lib.cloud.openstack.fake import session
from tests.harness.routing import memory

SERVED = ("False", "RouteCreated")
UNSERVED = ("True", "NoRouteCreated")
PODS = (memory.PODS[0].supernet(new_prefix=8), *memory.PODS[1:])
"""The CIDR of the cluster includes the subnets."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One mistake. subject: of the Event. condition: of Node "bad". good: whether
    Node "good" is served beside it."""

    what: str
    arrange: Callable[[memory.Ground], None]
    reason: str
    says: str
    subject: str = "bad"
    condition: tuple[str, str] | None = UNSERVED
    is_good_served: bool = True


def node(*pod_cidrs: str, **fields: object) -> Callable[[memory.Ground], None]:
    def arrange(ground: memory.Ground) -> None:
        ground.node("bad", *pod_cidrs, **fields)  # type: ignore[arg-type]

    return arrange


def no_router(ground: memory.Ground) -> None:
    ground.node("bad", "10.100.2.0/24")
    del ground.neutron.l3.routers[ground.router_id]


def others_router(ground: memory.Ground) -> None:
    ground.node("bad", "10.100.2.0/24")
    ground.fault = lambda call: (
        session.Fault(403, message="not yours") if call.parts[0] == "routers" else None
    )


def unreadable_router(ground: memory.Ground) -> None:
    ground.node("bad", "10.100.2.0/24")
    ground.fault = lambda call: (
        session.Fault(503) if call.parts[0] == "routers" else None
    )


def without_interface(ground: memory.Ground) -> None:
    network = ground.neutron.add_network("elsewhere")
    subnet = ground.neutron.add_subnet(network, "10.77.0.0/24")
    ground.neutron.add_port(subnet, "10.77.0.9", "server-bad")
    ground.node("bad", "10.100.2.0/24", addresses=["10.77.0.9"])


def conflict(ground: memory.Ground) -> None:
    (hop, _) = ground.port("server-other")
    ground.put_route("10.100.2.0/24", hop)
    ground.node("bad", "10.100.2.0/24")


def few_routes(ground: memory.Ground) -> None:
    ground.neutron.l3.max_routes = 2
    ground.node("bad", "10.100.2.0/24")


def few_pairs(ground: memory.Ground) -> None:
    ground.node("bad", "10.100.2.0/24")
    for number in range(ground.neutron.l3.max_pairs):
        ground.put_pair("bad", f"192.0.2.{number}/32")


def edited_record(ground: memory.Ground) -> None:
    key = f"{ground.router_id}.{memory.CLUSTER}"
    ground.edit_record({key: '{"entries": "mine"}'})
    ground.node("bad", "10.100.2.0/24")


ROWS = (
    Row("router not found", no_router, "RouteTableUnavailable", "not found", "ccm",
        None, False),
    Row("router of another project", others_router, "RouteTableUnavailable",
        "403", "ccm", None, False),
    Row("router not readable", unreadable_router, "RouteTableUnavailable",
        "the cloud does not answer", "ccm", None, False),
    Row("no interface in the Node's subnet", without_interface, "NoNextHop",
        "no InternalIP of IPv4 in a subnet of router"),
    Row("no address of the family", node("fd00:100:2::/64", addresses=["10.42.9.9"]),
        "NoNextHop", "no InternalIP of IPv6"),
    Row("podCIDR is none", node("10.100.2.0"), "InvalidPodCIDR", "must be a CIDR"),
    Row("podCIDR has host bits", node("10.100.2.1/24"), "InvalidPodCIDR",
        "without host bits"),
    Row("podCIDR outside of the cluster CIDR", node("10.9.2.0/24"),
        "PodCIDROutsideClusterCIDR", "must be within --cluster-cidr 10.100.0.0/14"),
    Row("podCIDR used twice", node("10.100.1.0/24"), "PodCIDRNotUnique",
        "Node good, which is older"),
    Row("podCIDR within that of another Node", node("10.100.1.128/25"),
        "PodCIDRNotUnique", "Node good, which is older"),
    Row("podCIDR contains that of another Node", node("10.100.0.0/23"),
        "PodCIDRNotUnique", "Node good, which is older"),
    Row("podCIDR overlaps a subnet", node("10.42.4.0/24"), "PodCIDROverlapsSubnet",
        "overlaps subnet 10.42.0.0/16"),
    Row("next hop without a port", node("10.100.2.0/24", addresses=["10.42.7.7"]),
        "NextHopWithoutPort", "no port has this address"),
    Row("a route of others", conflict, "RouteConflict", "does not own"),
    Row("max_routes reached", few_routes, "RouteLimitReached", "takes no more routes"),
    Row("max_allowed_address_pair reached", few_pairs, "EntryRefused",
        "the limit is reached"),
    Row("record edited by hand", edited_record, "RouteRecordUnreadable",
        "not as it was written", "ccm", SERVED),
    Row("no podCIDR for 60 s", node(), "NoPodCIDR", "kube-controller-manager", "bad",
        None),
)  # fmt: skip
