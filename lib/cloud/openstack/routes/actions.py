"""The writes of this package, and how Neutron is asked for them. Pure.

Source: Networking API v2, "Extra routes", "Extra routes: atomic", "Allowed address
pairs", "If-Match for revisions".
"""

import dataclasses
import urllib.parse
from collections.abc import Mapping

from lib.cloud import errors
from lib.cloud.openstack.http import client
from lib.cloud.openstack.routes.native import Pair
from lib.cloud.routes import AddressPair, Route
from lib.cloud.steps import Step

NETWORK = client.Service.NETWORK


@dataclasses.dataclass(frozen=True, slots=True)
class AddRoutes:
    """Add routes to a router. total: how many it has afterwards."""

    router_id: str
    routes: tuple[Route, ...]
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveRoutes:
    """Remove routes from a router; those that are absent are no error."""

    router_id: str
    routes: tuple[Route, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class WriteRoutes:
    """Write all routes of a router, where single ones cannot be added.

    added: those that it did not have. revision: what it must still have.
    """

    router_id: str
    routes: tuple[Route, ...]
    added: tuple[Route, ...]
    revision: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class WritePairs:
    """Write the allowed address pairs of a port. added: those it did not have."""

    port_id: str
    pairs: tuple[Pair, ...]
    added: tuple[AddressPair, ...]
    revision: int | None


Action = AddRoutes | RemoveRoutes | WriteRoutes | WritePairs

_CHANGED = client.Refusal(
    412, "", errors.Busy, "it was changed by others since it was read"
)
_LIMITS = (
    client.Refusal(
        409, "quota exceeded", errors.LimitReached, "the limit of routes is reached"
    ),
    client.Refusal(
        400, "exceeds the maximum", errors.LimitReached, "the limit is reached"
    ),
)
"""Source: neutron_lib/exceptions, RoutesExhausted of extraroute.py,
AllowedAddressPairExhausted of allowedaddresspairs.py, OverQuota of router_route."""
_NO_NEXT_HOP = (
    client.Refusal(
        400,
        "not connected with router",
        errors.InvalidRequest,
        "the next hop is not connected with the router",
    ),
    client.Refusal(
        400,
        "used by router",
        errors.InvalidRequest,
        "the next hop is an address of the router itself",
    ),
)
"""Source: neutron/db/extraroute_db.py."""
_REFUSALS = (_CHANGED, *_LIMITS, *_NO_NEXT_HOP)


def of(step: Step) -> Action:
    """Return what a step of this package does."""
    if not isinstance(step.native, Action):
        raise TypeError("a step of another package")
    return step.native


def write(action: Action) -> client.Write:
    """Return the request that carries an action out."""
    match action:
        case AddRoutes(router_id, routes):
            path = f"routers/{_quoted(router_id)}/add_extraroutes"
            return _put(path, "add routes", router_id, _routes(routes))
        case RemoveRoutes(router_id, routes):
            path = f"routers/{_quoted(router_id)}/remove_extraroutes"
            return _put(path, "remove routes", router_id, _routes(routes))
        case WriteRoutes(router_id, routes):
            path = f"routers/{_quoted(router_id)}"
            body = _routes(routes)
            return _put(path, "update router", router_id, body, action.revision)
        case WritePairs(port_id, pairs):
            rows = [_pair(pair) for pair in pairs]
            body = {"port": {"allowed_address_pairs": rows}}
            path = f"ports/{_quoted(port_id)}"
            return _put(path, "update port", port_id, body, action.revision)


def _put(
    path: str,
    operation: str,
    resource: str,
    body: Mapping[str, object],
    revision: int | None = None,
) -> client.Write:
    return client.Write(
        NETWORK,
        "PUT",
        path,
        operation,
        body,
        resource,
        _REFUSALS,
        revision=revision,
    )


def _routes(routes: tuple[Route, ...]) -> Mapping[str, object]:
    rows = [{"destination": r.destination, "nexthop": r.next_hop} for r in routes]
    return {"router": {"routes": rows}}


def _pair(pair: Pair) -> Mapping[str, str]:
    """Return a pair as Neutron takes it: its own MAC address where none is given."""
    both = {"ip_address": pair.ip_address, "mac_address": pair.mac_address}
    return {key: value for key, value in both.items() if value}


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
