"""The documents of Octavia: which attributes its things have, and how they begin.

Source: octavia/api/v2/types; octavia/common/constants.py (which protocols fit).
"""

from collections.abc import Mapping, Sequence

from lib.cloud.openstack.fake.vips import Vip
from lib.cloud.openstack.fake.wire import Json, Refused, objects, part, texts

BALANCER = frozenset(
    "name description provider tags flavor_id availability_zone vip_port_id"
    " vip_subnet_id vip_network_id vip_address additional_vips listeners"
    " admin_state_up".split()
)
LISTENER = frozenset(
    "name protocol protocol_port connection_limit tags timeout_client_data"
    " timeout_member_connect timeout_member_data timeout_tcp_inspect insert_headers"
    " default_tls_container_ref allowed_cidrs default_pool default_pool_id"
    " loadbalancer_id admin_state_up".split()
)
POOL = frozenset(
    "name protocol lb_algorithm session_persistence members healthmonitor"
    " listener_id admin_state_up tags".split()
)
MONITOR = frozenset(
    "name type delay timeout max_retries max_retries_down url_path http_method"
    " expected_codes pool_id admin_state_up".split()
)
MEMBER = frozenset(
    "name address protocol_port subnet_id weight monitor_port admin_state_up".split()
)
FIXED = frozenset(
    "provider flavor_id availability_zone vip_port_id vip_subnet_id vip_network_id"
    " vip_address additional_vips protocol protocol_port loadbalancer_id listener_id"
    " type pool_id default_pool listeners members healthmonitor".split()
)
"""Attributes that a PUT does not take."""
FITTING = {
    "TCP": ("HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"),
    "HTTP": ("HTTP", "PROXY", "PROXYV2"),
    "TERMINATED_HTTPS": ("HTTP", "PROXY", "PROXYV2"),
    "UDP": ("UDP",),
    "SCTP": ("SCTP",),
}
NESTED = frozenset({"members", "healthmonitor"})
"""A pool that is made by itself does not take them."""


def balancer(id_: str, request: Json, vip: Vip, now: str) -> Json:
    """Return a load balancer that has just been asked for."""
    return {
        "id": id_,
        "name": request.get("name", ""),
        "description": request.get("description", ""),
        "admin_state_up": request.get("admin_state_up", True),
        "provider": request["provider"],
        "tags": texts(request.get("tags")),
        "flavor_id": request.get("flavor_id"),
        "availability_zone": request.get("availability_zone"),
        "vip_address": objects(vip.port, "fixed_ips")[0]["ip_address"],
        "vip_port_id": vip.port["id"],
        "vip_subnet_id": vip.subnet_id,
        "vip_network_id": vip.port["network_id"],
        "additional_vips": list(vip.extra),
        "created_at": now,
        "updated_at": None,
        "provisioning_status": "PENDING_CREATE",
    }


def listener(id_: str, balancer: Json, request: Json) -> Json:
    """Return a listener without a pool."""
    return {
        "id": id_,
        "name": request.get("name", ""),
        "protocol": str(request["protocol"]),
        "protocol_port": request["protocol_port"],
        "connection_limit": request.get("connection_limit", -1),
        "default_pool_id": None,
        "insert_headers": request.get("insert_headers") or {},
        "default_tls_container_ref": request.get("default_tls_container_ref"),
        "timeout_client_data": request.get("timeout_client_data", 50000),
        "timeout_member_connect": request.get("timeout_member_connect", 5000),
        "timeout_member_data": request.get("timeout_member_data", 50000),
        "timeout_tcp_inspect": request.get("timeout_tcp_inspect", 0),
        "allowed_cidrs": request.get("allowed_cidrs"),
        "admin_state_up": request.get("admin_state_up", True),
        "tags": texts(request.get("tags")),
        "loadbalancers": [{"id": balancer["id"]}],
    }


def pool(id_: str, balancer: Json, listener: Json, request: Json) -> Json:
    """Return a pool of a listener, without a monitor."""
    return {
        "id": id_,
        "name": request.get("name", ""),
        "protocol": request["protocol"],
        "lb_algorithm": request["lb_algorithm"],
        "session_persistence": request.get("session_persistence"),
        "admin_state_up": request.get("admin_state_up", True),
        "tags": texts(request.get("tags")),
        "created_at": balancer["updated_at"] or balancer["created_at"],
        "listeners": [{"id": listener["id"]}],
        "loadbalancers": [{"id": balancer["id"]}],
        "healthmonitor_id": None,
    }


def member(id_: str, request: Json) -> Json:
    """Return a member."""
    return {
        "id": id_,
        "name": request.get("name", ""),
        "address": request["address"],
        "protocol_port": request["protocol_port"],
        "subnet_id": request.get("subnet_id"),
        "weight": request.get("weight", 1),
        "monitor_port": request.get("monitor_port"),
        "admin_state_up": request.get("admin_state_up", True),
    }


def tree(
    balancer: Json,
    listeners: Sequence[Json],
    pools: Mapping[str, Json],
    members: Mapping[str, Mapping[str, Json]],
) -> Json:
    """Return a load balancer with all below it. listeners: its own; the rest: all."""
    shown = ("id", "name", "address", "protocol_port")

    def below(listener: Json) -> list[Json]:
        pool = pools.get(str(listener["default_pool_id"]))
        if pool is None:
            return []
        members_ = members[str(pool["id"])].values()
        listed = [{key: member[key] for key in shown} for member in members_]
        return [{"id": pool["id"], "members": listed}]

    return {
        "id": balancer["id"],
        "listeners": [
            {"id": listener["id"], "pools": below(listener)} for listener in listeners
        ],
    }


def check(request: Json, allowed: frozenset[str]) -> None:
    """Refuse attributes that a thing has not, and names that are too long.

    Raises:
        Refused: there is one.
    """
    if unknown := sorted(request.keys() - allowed):
        raise Refused(400, f"Unknown attribute {unknown[0]}")
    if len(str(request.get("name") or "").encode()) > 255:
        raise Refused(400, "Invalid input for field/attribute name")


def check_algorithm(balancer: Json, request: Json) -> None:
    """Refuse an algorithm that the provider does not have.

    Source: octavia/api/drivers/amphora_driver/v2/driver.py,
    _validate_pool_algorithm; ovn-octavia-provider, _check_for_supported_algorithms.

    Raises:
        Refused: the request has one.
    """
    provider, algorithm = str(balancer["provider"]), request.get("lb_algorithm")
    if algorithm is None or provider == "f5":
        return
    if (provider == "ovn") == (algorithm == "SOURCE_IP_PORT"):
        return
    text = f"Provider '{provider}' does not support a requested option: {algorithm}"
    raise Refused(501, text)


def check_cidrs(balancer: Json, request: Json) -> None:
    """Refuse a CIDR of an IP version that no VIP has.

    Source: octavia/api/v2/controllers/listener.py, _validate_cidr_compatible_with_vip.

    Raises:
        Refused: the request has one.
    """
    vips = [str(balancer["vip_address"])]
    vips += [str(v["ip_address"]) for v in objects(balancer, "additional_vips")]
    for cidr in texts(request.get("allowed_cidrs") or ()):
        if (":" in cidr) not in [":" in vip for vip in vips]:
            text = f"CIDR {cidr} IP version incompatible with all VIPs {vips}"
            raise Refused(400, f"Validation failure: {text}.")


def check_children(balancer: Json, request: Json) -> None:
    """Refuse a new load balancer whose nested listeners and pools would be.

    Raises:
        Refused: one would be.
    """
    for listener in objects(request, "listeners"):
        check_cidrs(balancer, listener)
        if listener.get("default_pool"):
            check_algorithm(balancer, part(listener, "default_pool"))


def transport(protocol: object) -> str:
    """Return on what a listener's protocol runs."""
    return str(protocol) if protocol in ("UDP", "SCTP") else "TCP"
