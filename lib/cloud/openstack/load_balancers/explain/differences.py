"""Fields as they are beside fields as a request sets them, as texts: pure."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lib.cloud.explained import FieldChange
from lib.cloud.openstack.load_balancers.plan.actions import Action, Body
from lib.cloud.openstack.load_balancers.read.native import Member
from lib.cloud.openstack.load_balancers.spec import annotations as keys

_NOT_SHOWN = frozenset(
    "name listeners default_pool members healthmonitor loadbalancer_id listener_id"
    " pool_id".split()
)
"""What the path says, or things of their own."""
NAMELESS = "a member without a name"
_ANNOTATIONS = {
    "vip_port_id": keys.PORT_ID,
    "vip_subnet_id": keys.SUBNET_ID,
    "vip_network_id": keys.NETWORK_ID,
    "flavor_id": keys.FLAVOR_ID,
    "availability_zone": keys.AVAILABILITY_ZONE,
    "connection_limit": keys.CONNECTION_LIMIT,
    "insert_headers": keys.FORWARDED_FOR,
    "default_tls_container_ref": keys.TLS_REF,
    "timeout_client_data": keys.TIMEOUT_CLIENT_DATA,
    "timeout_member_connect": keys.TIMEOUT_MEMBER_CONNECT,
    "timeout_member_data": keys.TIMEOUT_MEMBER_DATA,
    "timeout_tcp_inspect": keys.TIMEOUT_TCP_INSPECT,
    "lb_algorithm": keys.METHOD,
    "delay": keys.MONITOR_DELAY,
    "timeout": keys.MONITOR_TIMEOUT,
    "max_retries": keys.MONITOR_RETRIES,
    "max_retries_down": keys.MONITOR_RETRIES_DOWN,
}
_FIELDS = {
    "allowed_cidrs": "spec.loadBalancerSourceRanges",
    "session_persistence": "spec.sessionAffinity",
    "vip_address": "spec.loadBalancerIP",
    "additional_vips": "spec.ipFamilies",
    "url_path": "spec.externalTrafficPolicy",
    "http_method": "spec.externalTrafficPolicy",
    "expected_codes": "spec.externalTrafficPolicy",
    "tags": "ownership",
    "description": "ownership",
}


def asked_by(field: str) -> str:
    """Return what asks for a field of Octavia's."""
    if annotation := _ANNOTATIONS.get(field):
        return f"annotation {annotation}, or its default"
    return _FIELDS.get(field, "")


def new(body: Body) -> tuple[FieldChange, ...]:
    """Return the fields of a thing that is to be made; those without value are left."""
    return tuple(
        FieldChange(key, "", text, asked_by(key))
        for key, value in body.items()
        if key not in _NOT_SHOWN and (text := plain(value))
    )


def changed(action: Action) -> tuple[FieldChange, ...]:
    """Compare an object with the fields that a step sets on it."""
    return tuple(
        FieldChange(key, old, text, asked_by(key))
        for key, value in action.fields.items()
        if (text := plain(value)) != (old := plain(getattr(action.observed, key, None)))
    )


def plain(value: object) -> str:
    """Write a value of a request, or of an answer, for people."""
    match value:
        case None:
            return ""
        case msgspec.Struct():
            return plain(msgspec.structs.asdict(value))
        case {"type": kind, **rest} if not rest:
            return str(kind)
        case Mapping():
            return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
        case list() | tuple():
            return ", ".join(filter(None, map(plain, value)))
    return str(value)


def members(
    bodies: Sequence[Body],
    observed: Sequence[Member],
    *,
    is_full: bool = True,
    is_additive: bool = False,
) -> Iterator[FieldChange]:
    """Compare a pool's members with a batch that sets them.

    is_full: of those found everything is known. is_additive: those not named stay.
    """
    existing = {(member.address, member.protocol_port): member for member in observed}
    named = {(str(body["address"]), body["protocol_port"]): body for body in bodies}
    for key, body in named.items():
        old = existing.get((key[0], int(str(key[1]))))
        text = _member(body)
        was = "" if old is None else _known(old, body, is_full=is_full)
        if was != text:
            yield FieldChange(_at(*key), was, text)
    if is_additive:
        return
    for address, port in sorted(existing.keys() - named.keys()):
        member = existing[address, port]
        yield FieldChange(_at(address, port), member.name or NAMELESS, "")


def _at(address: str, port: object) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _member(body: Body) -> str:
    """Return the name of a member, and what is unusual about it."""
    parts = [str(body["name"])]
    if body.get("monitor_port") is not None:
        parts.append(f"monitor port {body['monitor_port']}")
    if body.get("weight", 1) != 1:
        parts.append(f"weight {body['weight']}")
    if not body.get("admin_state_up", True):
        parts.append("switched off")
    return ", ".join(parts)


def _known(old: Member, body: Body, *, is_full: bool) -> str:
    if is_full:
        shown = msgspec.structs.asdict(old)
        return _member({**shown, "name": old.name or NAMELESS})
    # What a status tree does not show is taken to be as it should.
    return _member({**body, "name": old.name or NAMELESS})
