"""The requests of this room, as steps: what is sent, and what refusals mean. Pure.

Source: Octavia API v2 reference; Networking API v2 reference.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from lib.cloud import errors
from lib.cloud.load_balancers import Step, Verb
from lib.cloud.openstack import client
from lib.cloud.openstack.load_balancers.lists import BALANCER, NETWORK, quoted

DELETE_BALANCER = "delete load balancer"
NO_ADDRESS_LEFT = "no more ip addresses"
Body = Mapping[str, object]
Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What a step sends.

    writes: tried in this order until one is not refused as impossible; all but the
    last may be, for alternatives. is_gone_fine: "not found" means done.
    balancer_id: of the load balancer that is busy afterwards; empty: none is. forgets:
    the Service is to lead to no load balancer afterwards. changes_members: listeners,
    pools and monitors stay as they are.
    """

    writes: tuple[client.Write, ...]
    is_gone_fine: bool = False
    balancer_id: str = ""
    forgets: bool = False
    changes_members: bool = False


def _missing(word: str, id_: str = "") -> tuple[client.Refusal, ...]:
    """Say that something a request names is not there: Octavia has several ways."""
    article = "an" if word.startswith("a") else "a"
    message = f"{article} {word} that is asked for does not exist, or may not be used"
    kind = errors.InvalidRequest
    return (
        client.Refusal(400, f"{word} {id_}", kind, message),
        client.Refusal(404, f"{word} {id_}", kind, message),
        client.Refusal(400, f"invalid {word.replace(' ', '_')}", kind, message),
        client.Refusal(400, f"invalid {word}", kind, message),
    )


_CONFLICT = client.Refusal(
    409, "", errors.InvalidRequest, "it is in conflict with something that is in use"
)
"""Any other conflict: as long as nothing changes, it is refused again."""
_NO_PORTS_LEFT = client.Refusal(
    409, "quota", errors.QuotaExceeded, "the project's network quota is used up"
)
_NO_ADDRESSES_LEFT = client.Refusal(
    409, NO_ADDRESS_LEFT, errors.LimitReached, "the subnet has no address left"
)
_BALANCER_REFUSALS = (
    client.Refusal(
        403,
        "quota",
        errors.QuotaExceeded,
        "the project's load balancer quota is used up",
    ),
    client.Refusal(
        409, "immutable", errors.Busy, "the load balancer is at another change"
    ),
    client.Refusal(
        409, "invalid state", errors.Busy, "the load balancer is at another change"
    ),
    *(
        client.Refusal(409, text, errors.Busy, "there is one already, made meanwhile")
        for text in ("already has a", "another listener", "another member")
    ),
    client.Refusal(
        400, "provider", errors.InvalidRequest, "lb-provider is not enabled there"
    ),
    *_missing("subnet"),
    *_missing("network"),
    *_missing("flavor"),
    *_missing("availability zone"),
    _CONFLICT,
)
"""Source: octavia/common/exceptions.py. Busy is only what ends by itself. A missing
load balancer, listener or pool is left to the status."""
_NETWORK_REFUSALS = (
    _NO_PORTS_LEFT,
    _NO_ADDRESSES_LEFT,
    client.Refusal(
        409, "already exists", errors.Busy, "there is one already, made meanwhile"
    ),
    *(
        client.Refusal(
            409, text, errors.InvalidRequest, "the address is in use already"
        )
        for text in ("already allocated", "already has a floating ip")
    ),
    client.Refusal(412, "", errors.Busy, "it was changed meanwhile"),
    client.Refusal(
        404,
        "not reachable",
        errors.InvalidRequest,
        "no router connects the floating network and the load balancer's subnet",
    ),
    client.Refusal(
        400,
        "not a valid external network",
        errors.InvalidRequest,
        "the floating network is not an external one",
    ),
    _CONFLICT,
)
"""Source: neutron_lib/exceptions; neutron/extensions/l3.py, securitygroup.py."""


_GROUP_GONE = client.Refusal(
    404, "security group", errors.Busy, "a group of the port was deleted meanwhile"
)
"""Several Services' groups are on one port; whoever deletes one takes it off first."""
_GROUP_USED = client.Refusal(
    409,
    "in use",
    errors.InvalidRequest,
    "the security group is in use on ports that can't be seen",
)
"""Source: neutron/extensions/securitygroup.py, SecurityGroupInUse."""


def create(path: Path, why: str, url: str, body: Body, balancer_id: str) -> Step:
    """Make a child of a load balancer; Octavia refuses to make it twice."""
    write = _balancer("POST", url, f"create {url}", body, path[-1])
    request = Request((write,), balancer_id=balancer_id)
    return Step(Verb.CREATE, path, why, request)


def create_balancer(path: Path, why: str, body: Body) -> Step:
    """Make a load balancer; nothing keeps Octavia from making two."""
    url = "lbaas/loadbalancers"
    write = _balancer("POST", url, "create load balancer", body, path[-1])
    inside = body.get("loadbalancer")
    port_id = inside.get("vip_port_id") if isinstance(inside, Mapping) else None
    address = inside.get("vip_address") if isinstance(inside, Mapping) else None
    # Neutron's conflicts come as "The VIP IP address is already in use: ...".
    more: tuple[client.Refusal, ...] = (_NO_PORTS_LEFT, _NO_ADDRESSES_LEFT)
    if port_id:
        more += _missing("port", str(port_id))
    which = f"the address {address}" if address else "the address or port"
    message = f"{which} is in use already, or not available"
    more += tuple(
        client.Refusal(409, text, errors.InvalidRequest, message)
        for text in ("already allocated", "already in use")
    )
    write = dataclasses.replace(write, refusals=(*more, *_BALANCER_REFUSALS))
    return Step(
        Verb.CREATE, path, why, Request((write,)), is_gated=False, is_repeatable=False
    )


def change(path: Path, why: str, url: str, body: Body, balancer_id: str) -> Step:
    """Change a load balancer or a child of it."""
    operation = f"update {url.split('/')[1]}"
    write = _balancer("PUT", url, operation, body, path[-1])
    return Step(Verb.CHANGE, path, why, Request((write,), balancer_id=balancer_id))


def change_members(
    path: Path,
    why: str,
    pool_id: str,
    members: Sequence[Body],
    balancer_id: str,
    *,
    additive: bool,
) -> Step:
    """Set a pool's members in one batch. additive: those not named stay as they are."""
    write = client.Write(
        BALANCER,
        "PUT",
        f"lbaas/pools/{quoted(pool_id)}/members",
        "update members",
        {"members": list(members)},
        pool_id,
        _BALANCER_REFUSALS,
        query=(("additive_only", "true"),) if additive else (),
    )
    request = Request((write,), balancer_id=balancer_id, changes_members=True)
    return Step(Verb.CHANGE, path, why, request)


def delete(path: Path, why: str, url: str, balancer_id: str) -> Step:
    """Delete a child of a load balancer."""
    operation = f"delete {url.split('/')[1]}"
    write = _balancer("DELETE", url, operation, None, path[-1])
    request = Request((write,), is_gone_fine=True, balancer_id=balancer_id)
    return Step(Verb.DELETE, path, why, request)


def delete_balancer(
    path: Path, why: str, id_: str, *, cascades: bool, is_gated: bool = True
) -> Step:
    """Delete a load balancer. cascades: with all that is under it."""
    write = client.Write(
        BALANCER,
        "DELETE",
        f"lbaas/loadbalancers/{quoted(id_)}",
        DELETE_BALANCER,
        None,
        id_,
        _BALANCER_REFUSALS,
        query=(("cascade", "true"),) if cascades else (),
    )
    request = Request((write,), is_gone_fine=True, balancer_id=id_)
    return Step(Verb.DELETE, path, why, request, is_gated=is_gated)


def replace_balancer(path: Path, why: str, id_: str) -> Step:
    """Delete one in ERROR, with all that is under it, to make another."""
    step = delete_balancer(path, why, id_, cascades=True, is_gated=False)
    request = step.native
    if not isinstance(request, Request):
        raise TypeError("the step is of another room")
    return dataclasses.replace(step, native=dataclasses.replace(request, forgets=True))


def fail_over(path: Path, why: str, id_: str) -> Step:
    """Let Octavia build a load balancer's machines anew."""
    url = f"lbaas/loadbalancers/{quoted(id_)}/failover"
    write = _balancer("PUT", url, "fail over load balancer", None, id_)
    message = "only Octavia's admins may do that, with the role load-balancer_admin"
    refused = client.Refusal(403, "", errors.Forbidden, message)
    write = dataclasses.replace(write, refusals=(refused, *write.refusals))
    request = Request((write,), balancer_id=id_)
    return Step(Verb.CHANGE, path, why, request, is_gated=False)


def create_network_thing(
    path: Path, why: str, url: str, bodies: Sequence[Body], *, is_repeatable: bool
) -> Step:
    """Make something of Neutron's. bodies: alternatives, best first."""
    operation = f"create {url}"
    writes = tuple(_network("POST", url, operation, body, path[-1]) for body in bodies)
    return Step(
        Verb.CREATE,
        path,
        why,
        Request(writes),
        is_gated=False,
        is_repeatable=is_repeatable,
    )


def change_network_thing(
    path: Path, why: str, url: str, body: Body, revision: int | None = None
) -> Step:
    """Change something of Neutron's. revision: only if it still has this number."""
    kind = url.split("/")[0]
    write = _network("PUT", url, f"update {kind}", body, path[-1])
    write = dataclasses.replace(write, revision=revision)
    if kind == "ports":
        write = dataclasses.replace(write, refusals=(_GROUP_GONE, *write.refusals))
    return Step(Verb.CHANGE, path, why, Request((write,)), is_gated=False)


def delete_network_thing(
    path: Path, why: str, url: str, revision: int | None = None
) -> Step:
    """Delete something of Neutron's. revision: only if it still has this number."""
    kind = url.split("/")[0]
    write = _network("DELETE", url, f"delete {kind}", None, path[-1])
    write = dataclasses.replace(write, revision=revision)
    if kind == "security-groups":
        write = dataclasses.replace(write, refusals=(_GROUP_USED, *write.refusals))
    request = Request((write,), is_gone_fine=True)
    return Step(Verb.DELETE, path, why, request, is_gated=False)


def _balancer(
    method: client.Method, url: str, operation: str, body: Body | None, resource: str
) -> client.Write:
    said = operation.replace("lbaas/", "")
    return client.Write(BALANCER, method, url, said, body, resource, _BALANCER_REFUSALS)


def _network(
    method: client.Method, url: str, operation: str, body: Body | None, resource: str
) -> client.Write:
    return client.Write(
        NETWORK, method, url, operation, body, resource, _NETWORK_REFUSALS
    )
