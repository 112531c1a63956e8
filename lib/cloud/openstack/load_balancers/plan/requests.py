"""The requests of this room: what a step sends, and what refusals mean. Pure.

Source: Octavia API v2 reference; Networking API v2 reference.
"""

from collections.abc import Mapping

from lib.cloud import errors
from lib.cloud.openstack.http import client
from lib.cloud.openstack.http.listings import quoted
from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Action, Body, Kind
from lib.cloud.openstack.load_balancers.read.lists import BALANCER, NETWORK
from lib.cloud.steps import Step, Verb

NO_ADDRESS_LEFT = "no more ip addresses"
_NAMES = {
    Kind.LOAD_BALANCER: "loadbalancer",
    Kind.LISTENER: "listener",
    Kind.POOL: "pool",
    Kind.MEMBERS: "members",
    Kind.MONITOR: "healthmonitor",
    Kind.FLOATING_IP: "floatingip",
    Kind.SECURITY_GROUP: "security_group",
    Kind.RULE: "security_group_rules",
    Kind.PORT: "port",
}
"""How the body of a request calls what it describes."""
_NETWORK_KINDS = frozenset(
    {Kind.FLOATING_IP, Kind.SECURITY_GROUP, Kind.RULE, Kind.PORT}
)
_METHODS: Mapping[Verb, client.Method] = {
    Verb.CREATE: "POST",
    Verb.CHANGE: "PUT",
    Verb.DELETE: "DELETE",
}
_OPERATIONS = {Verb.CREATE: "create", Verb.CHANGE: "update", Verb.DELETE: "delete"}


def _missing(word: str, id_: str = "") -> tuple[client.Refusal, ...]:
    """Report that an object named by a request does not exist: in several wordings."""
    message = f"a requested {word} does not exist, or may not be used"
    kind = errors.InvalidRequest
    texts = (
        (400, f"{word} {id_}"),
        (404, f"{word} {id_}"),
        (400, f"invalid {word.replace(' ', '_')}"),
        (400, f"invalid {word}"),
    )
    return tuple(
        client.Refusal(status, text, kind, message, shows_text=True)
        for status, text in texts
    )


_CONFLICT = client.Refusal(
    409,
    "",
    errors.InvalidRequest,
    "it conflicts with an object that is in use",
    remedy="change that object, or the annotation or setting that asks for it",
    shows_text=True,
)
"""Any other conflict: as long as nothing changes, it is refused again."""
_NO_PORTS_LEFT = client.Refusal(
    409, "quota", errors.QuotaExceeded, "the project's network quota is used up"
)
_NO_ADDRESSES_LEFT = client.Refusal(
    409,
    NO_ADDRESS_LEFT,
    errors.LimitReached,
    "the subnet has no address left",
    remedy="name another subnet, or delete ports and floating IPs that are not used",
)
_BALANCER_REFUSALS = (
    client.Refusal(
        403,
        "quota",
        errors.QuotaExceeded,
        "the project's load balancer quota is used up",
    ),
    client.Refusal(
        409,
        "immutable",
        errors.Busy,
        "the load balancer is immutable: another operation is in progress",
    ),
    client.Refusal(
        409,
        "invalid state",
        errors.Busy,
        "the load balancer is immutable: another operation is in progress",
    ),
    *(
        client.Refusal(
            409, text, errors.Busy, "it exists already: another client created it"
        )
        for text in ("already has a", "another listener", "another member")
    ),
    client.Refusal(
        400,
        "provider",
        errors.InvalidRequest,
        "lb-provider is not enabled there",
        shows_text=True,
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
        409,
        "already exists",
        errors.Busy,
        "it exists already: another client created it",
    ),
    *(
        client.Refusal(
            409,
            text,
            errors.InvalidRequest,
            "the address is already in use",
            remedy="choose another address, or release it",
        )
        for text in ("already allocated", "already has a floating ip")
    ),
    client.Refusal(412, "", errors.Busy, "another client has changed it"),
    client.Refusal(
        404,
        "not reachable",
        errors.InvalidRequest,
        "no router connects the floating network and the load balancer's subnet",
        remedy="add a router, or correct floating-network-id or subnet-id",
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
    404, "security group", errors.Busy, "another client has deleted a group of the port"
)
"""Several Services' groups are on one port; each is removed before its deletion."""
_GROUP_USED = client.Refusal(
    409,
    "in use",
    errors.InvalidRequest,
    "the security group is in use on ports that can't be seen",
    remedy="an administrator must remove it from those ports",
)
"""Source: neutron/extensions/securitygroup.py, SecurityGroupInUse."""
_ADDRESS_OF_ADMINS = client.Refusal(
    403,
    "",
    errors.Forbidden,
    "only administrators may choose the address of a new floating IP",
    remedy="remove loadBalancerIP, or have an administrator create the floating IP",
    shows_text=True,
)
"""Source: neutron/conf/policies/floatingip.py, floating_ip_address."""
_NO_ADMIN = client.Refusal(
    403,
    "",
    errors.Forbidden,
    "only Octavia's admins may do that, with the role load-balancer_admin",
    remedy="give the credentials that role, or remove the annotation on-error",
)


def writes(step: Step) -> tuple[client.Write, ...]:
    """Return what a step sends.

    They are alternatives: tried in this order until one is not refused as impossible.
    """
    action = actions.of(step)
    if step.verb is Verb.DELETE or action.fails_over:
        return (_write(step, action, None),)
    if action.kind in (Kind.MEMBERS, Kind.RULE):
        return (_write(step, action, {_NAMES[action.kind]: list(action.batch)}),)
    choices = (action.fields, *action.alternatives)
    bodies = ({_NAMES[action.kind]: fields} for fields in choices)
    return tuple(_write(step, action, body) for body in bodies)


def _write(step: Step, action: Action, body: Body | None) -> client.Write:
    return client.Write(
        NETWORK if action.kind in _NETWORK_KINDS else BALANCER,
        _METHODS[step.verb],
        _url(action),
        _operation(step, action),
        body,
        _resource(step, action),
        _refusals(step, action),
        query=_query(action),
        revision=action.revision,
    )


def _url(action: Action) -> str:
    if action.kind is Kind.MEMBERS:
        return f"lbaas/pools/{quoted(action.id)}/members"
    url = str(action.kind)
    if action.kind not in _NETWORK_KINDS:
        url = f"lbaas/{url}"
    if action.id:
        url += f"/{quoted(action.id)}"
    return f"{url}/failover" if action.fails_over else url


def _operation(step: Step, action: Action) -> str:
    """Return the name of a request in metrics and logs."""
    if action.fails_over:
        return "fail over load balancer"
    if action.kind is Kind.LOAD_BALANCER and step.verb is not Verb.CHANGE:
        return f"{step.verb} load balancer"
    return f"{_OPERATIONS[step.verb]} {action.kind}"


def _resource(step: Step, action: Action) -> str:
    is_whole = action.kind is Kind.LOAD_BALANCER and step.verb is Verb.DELETE
    if is_whole or action.fails_over or action.kind is Kind.MEMBERS:
        return action.id
    # The operation names the kind: "create load balancer", "create floatingips".
    kinds = ("load balancer", "listener", "pool", "floating IP", "security group")
    name = step.path[-1]
    return next((name[len(k) :].strip() for k in kinds if name.startswith(k)), name)


def _query(action: Action) -> client.Query:
    if action.cascades:
        return (("cascade", "true"),)
    return (("additive_only", "true"),) if action.is_additive else ()


def _refusals(step: Step, action: Action) -> tuple[client.Refusal, ...]:
    match action.kind, step.verb:
        case Kind.LOAD_BALANCER, Verb.CREATE:
            return (*_of_creation(action.fields), *_BALANCER_REFUSALS)
        case Kind.FLOATING_IP, Verb.CREATE if "floating_ip_address" in action.fields:
            return (_ADDRESS_OF_ADMINS, *_NETWORK_REFUSALS)
        case Kind.PORT, Verb.CHANGE:
            return (_GROUP_GONE, *_NETWORK_REFUSALS)
        case Kind.SECURITY_GROUP, Verb.DELETE:
            return (_GROUP_USED, *_NETWORK_REFUSALS)
    if action.fails_over:
        return (_NO_ADMIN, *_BALANCER_REFUSALS)
    is_network = action.kind in _NETWORK_KINDS
    return _NETWORK_REFUSALS if is_network else _BALANCER_REFUSALS


def _of_creation(fields: Body) -> tuple[client.Refusal, ...]:
    """Return what refusals of a new load balancer mean.

    Neutron's conflicts come as "The VIP IP address is already in use: ...".
    """
    port_id, address = fields.get("vip_port_id"), fields.get("vip_address")
    more: tuple[client.Refusal, ...] = (_NO_PORTS_LEFT, _NO_ADDRESSES_LEFT)
    if port_id:
        more += _missing("port", str(port_id))
    which = f"the address {address}" if address else "the address or port"
    message = f"{which} is already in use or not available"
    return more + tuple(
        client.Refusal(
            409,
            text,
            errors.InvalidRequest,
            message,
            remedy="choose another address or port, or release it",
        )
        for text in ("already allocated", "already in use")
    )
