"""Tables of permissions in OpenStack: each call with its policy rule and its role.

Source of rules and roles: the policies in the code of Nova 34.0.0, Neutron 29.0.0,
Cinder 29.0.0, Glance 33.0.0 and Octavia 19.0.0; Barbican barbican/common/policies.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.reference import cloud_calls, sheets
from tests.reference.cloud_calls import Call

HEADS = ("call", "operation", "policy rule", "role", "purpose", "components")
ROLES = ("any", "reader", "member", "manager", "admin")
MANAGER, CSI = "openstack-ccm", "csi-controller"
DISCOVERER, TOOL = "cloud-data-discoverer", "mooring"
COMPONENTS = (MANAGER, CSI, DISCOVERER, TOOL)
TITLES: Mapping[str, str] = {
    "compute": "Nova",
    "network": "Neutron",
    "load-balancer": "Octavia",
    "block-storage": "Cinder",
    "image": "Glance",
    "key-manager": "Barbican",
}
"""Table of each service, by its type in the catalog."""
PLACES: Mapping[str, tuple[str, ...]] = {
    "catalog/": (DISCOVERER, TOOL),
    "checkup.py": (TOOL,),
    "instances/": (MANAGER, TOOL),
    "layouts/": (TOOL,),
    "load_balancers/checkup.py": (TOOL,),
    "load_balancers/": (MANAGER, TOOL),
    "routes/": (MANAGER, TOOL),
    "volumes/": (CSI, TOOL),
}
"""Components that make the calls of a folder or file; the first that fits counts."""
OF_ORPHANS = frozenset(
    {
        "delete load balancer",
        "delete listeners",
        "delete pools",
        "update loadbalancers",
        "delete floatingips",
        "delete security-groups",
        "update ports",
        "update port",
        "update router",
        "remove routes",
        "delete volume",
    }
)
"""Writes of `mooring orphans --delete`."""
OF_ADOPTION = frozenset(
    {"update listeners", "update floatingips", "update loadbalancers"}
)
"""Writes of `mooring adopt load-balancer`; mooring has no other."""
OF_TOOL = OF_ORPHANS | OF_ADOPTION
READ_BY_ORPHANS = frozenset({"list volumes", "get volume"})
"""What mooring reads of Cinder, apart from the doctor's quotas."""
READ_BY_LAYOUTS = frozenset(
    {"list flavors", "list zones", "list images", "list volume types"}
)
"""What mooring reads of the catalog of discovery, for layouts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Permission:
    """What the policy of a service requires for one call.

    rules: empty: the service enforces no rule. role: the weakest that suffices by
    default, in the project of the cluster. purpose: of the call, and what happens
    where it is denied.
    """

    rules: Sequence[str]
    role: str
    purpose: str


Key = tuple[str, str, str]
"""Service, method with path, and operation."""


def _rows(
    service: str, prefix: str, rows: Mapping[str, Mapping[str, tuple[str, str, str]]]
) -> dict[Key, Permission]:
    """Return rows by key. rows: by call and operation: rules, role, purpose."""
    return {
        (service, call, operation): Permission(
            [f"{prefix}{rule}" for rule in rules.split()], role, purpose
        )
        for call, operations in rows.items()
        for operation, (rules, role, purpose) in operations.items()
    }


_LIMITS = "`mooring doctor` shows the quotas and their use."
NOVA = _rows(
    "compute",
    "os_compute_api:",
    {
        "GET servers/detail": {
            "list servers": ("servers:detail", "reader", "Servers of all Nodes.")
        },
        "GET os-keypairs": {
            "list key pairs": (
                "os-keypairs:index",
                "reader",
                "Key pairs of the user, for `mooring layouts`.",
            )
        },
        "GET servers": {
            "find servers": (
                "servers:index",
                "reader",
                "Search by name, before a Node without provider ID is deleted.",
            )
        },
        "GET servers/{}": {
            "get server": (
                "servers:show",
                "reader",
                "Single servers; the confirmation before a Node is deleted, or what is"
                " reserved for a server is released.",
            )
        },
        "GET flavors/detail": {
            "list flavors": (
                "",
                "any",
                "Instance types of Nodes, and flavors for discovery. Private flavors"
                " are listed for projects with access to them.",
            )
        },
        "GET limits": {
            "read the quotas of the compute service": ("limits", "any", _LIMITS)
        },
        "GET os-availability-zone": {
            "list zones": (
                "os-availability-zone:list",
                "any",
                "Zones for discovery, where the cluster configuration lists none.",
            )
        },
        "GET os-server-groups": {
            "list server groups": (
                "os-server-groups:index",
                "reader",
                "Server groups for discovery.",
            )
        },
        "POST servers/{}/os-volume_attachments": {
            "attach volume": (
                "os-volumes-attachments:create",
                "member",
                "Attach a volume to the server of a Node.",
            )
        },
        "DELETE servers/{}/os-volume_attachments/{}": {
            "detach volume": (
                "os-volumes-attachments:delete",
                "member",
                "Detach a volume.",
            )
        },
    },
)
NEUTRON = _rows(
    "network",
    "",
    {
        "GET ports": {
            "list ports": (
                "get_port",
                "reader",
                "Addresses of Nodes, VIP ports, ports of security groups, next hops"
                " of routes. Ports of another project are omitted without an error.",
            )
        },
        "GET routers": {
            "list routers": ("get_router", "reader", "Routers, for `mooring layouts`.")
        },
        "GET security-group-rules": {
            "list rules": (
                "get_security_group_rule",
                "reader",
                "Rules of security groups, for `mooring layouts`.",
            )
        },
        "GET networks": {
            "list networks": (
                "get_network",
                "reader",
                "Names of the networks of trunk ports; networks for discovery; `mooring"
                " doctor` searches for those that cloud.conf names.",
            ),
            "list external networks": (
                "get_network",
                "reader",
                "The network of floating IPs. A network is visible if it is shared,"
                " external or of the project.",
            ),
        },
        "GET subnets": {
            "list subnets": (
                "get_subnet",
                "reader",
                "Subnets of load balancers, members, floating IPs and routers.",
            )
        },
        "GET routers/{}": {
            "get router": (
                "get_router",
                "reader",
                "With `router-id`: the router. One of another project is rejected.",
            )
        },
        "GET floatingips": {
            "list floating IPs": (
                "get_floatingip",
                "reader",
                "Floating IPs of Services.",
            )
        },
        "GET security-groups": {
            "list security groups": (
                "get_security_group",
                "reader",
                "Security groups of Services, and for discovery.",
            )
        },
        "GET quotas/{}/details": {
            "read the quotas of the network service": (
                "",
                "any",
                f"{_LIMITS} Of its own project, any user may read them.",
            )
        },
        "POST floatingips": {
            "create floatingips": (
                "create_floatingip create_floatingip:floating_ip_address",
                "member",
                "The address of an external Service. The second rule applies only to a"
                " Service that requests an address for which no floating IP exists:"
                " role manager, before it existed admin. Without it, an administrator"
                " creates the floating IP in the project.",
            )
        },
        "PUT floatingips/{}": {
            "update floatingips": (
                "update_floatingip",
                "member",
                "Attach a floating IP to a VIP port, or detach it.",
            )
        },
        "DELETE floatingips/{}": {
            "delete floatingips": (
                "delete_floatingip",
                "member",
                "Delete a floating IP that was created for a Service.",
            )
        },
        "POST security-groups": {
            "create security-groups": (
                "create_security_group",
                "member",
                "With `manage-security-groups`: the group of a Service.",
            )
        },
        "DELETE security-groups/{}": {
            "delete security-groups": (
                "delete_security_group",
                "member",
                "Delete the group of a Service.",
            )
        },
        "POST security-group-rules": {
            "create security-group-rules": (
                "create_security_group_rule",
                "member",
                "Rules of that group.",
            )
        },
        "DELETE security-group-rules/{}": {
            "delete security-group-rules": (
                "delete_security_group_rule",
                "member",
                "Delete rules that are no longer required.",
            )
        },
        "PUT ports/{}": {
            "update ports": (
                "update_port",
                "member",
                "Add the group of a Service to the ports of Nodes, or remove it.",
            ),
            "update port": (
                "update_port update_port:allowed_address_pairs"
                " update_port:allowed_address_pairs:ip_address"
                " update_port:allowed_address_pairs:mac_address",
                "member",
                "With routes: address pairs of the ports of Nodes. The network must be"
                " of the project. On a shared network of another project only an admin"
                " may write them: without it, Pods there are not reachable.",
            ),
        },
        "PUT routers/{}/add_extraroutes": {
            "add routes": ("add_extraroutes", "member", "With `router-id`: add routes.")
        },
        "PUT routers/{}/remove_extraroutes": {
            "remove routes": (
                "remove_extraroutes",
                "member",
                "With `router-id`: remove routes.",
            )
        },
        "PUT routers/{}": {
            "update router": (
                "update_router",
                "member",
                "Write all routes, where Neutron lacks extraroute-atomic.",
            )
        },
    },
)
_READ, _WRITE = "reader", "member"
OCTAVIA = _rows(
    "load-balancer",
    "os_load-balancer_api:",
    {
        "GET lbaas/loadbalancers": {
            "list load balancers": (
                "loadbalancer:get_all",
                _READ,
                "Load balancers of all Services.",
            ),
            "list states": (
                "loadbalancer:get_all",
                _READ,
                "Provisioning status of load balancers with changes in progress.",
            ),
            "read the quotas of the load-balancer service": (
                "loadbalancer:get_all",
                _READ,
                "`mooring doctor` counts the load balancers.",
            ),
        },
        "GET lbaas/loadbalancers/{}": {
            "get load balancer": (
                "loadbalancer:get_one",
                _READ,
                "A load balancer that a Service names, or that the list lacks.",
            )
        },
        "GET lbaas/loadbalancers/{}/status": {
            "get status tree": (
                "loadbalancer:get_status",
                _READ,
                "Members of all pools of a load balancer.",
            )
        },
        "GET lbaas/listeners": {
            "list listeners": ("listener:get_all", _READ, "Listeners.")
        },
        "GET lbaas/pools": {"list pools": ("pool:get_all", _READ, "Pools.")},
        "GET lbaas/pools/{}/members": {
            "list members": ("member:get_all", _READ, "Members with all settings.")
        },
        "GET lbaas/healthmonitors": {
            "list monitors": ("healthmonitor:get_all", _READ, "Health monitors.")
        },
        "GET lbaas/healthmonitors/{}": {
            "get monitor": ("healthmonitor:get_one", _READ, "One health monitor.")
        },
        "GET lbaas/providers": {
            "list providers": (
                "provider:get_all",
                _READ,
                "`mooring doctor` searches for `lb-provider`.",
            )
        },
        "GET lbaas/flavors/{}": {
            "get flavors": (
                "flavor:get_one",
                _READ,
                "`mooring doctor` searches for `flavor-id`.",
            )
        },
        "GET lbaas/availabilityzones/{}": {
            "get availabilityzones": (
                "availability-zone:get_one",
                _READ,
                "`mooring doctor` searches for `availability-zone`.",
            )
        },
        "GET lbaas/quotas/{}": {
            "read the quotas of the load-balancer service": (
                "quota:get_one",
                _READ,
                "`mooring doctor` shows the limit of load balancers.",
            )
        },
        "POST lbaas/loadbalancers": {
            "create load balancer": (
                "loadbalancer:post",
                _WRITE,
                "A new load balancer, with all below it.",
            )
        },
        "PUT lbaas/loadbalancers/{}": {
            "update loadbalancers": (
                "loadbalancer:put",
                _WRITE,
                "Ownership tags, description, and `admin_state_up`.",
            )
        },
        "PUT lbaas/loadbalancers/{}/failover": {
            "fail over load balancer": (
                "loadbalancer:put_failover",
                "admin",
                "Only for a Service with the annotation"
                " `loadbalancer.openstack.org/on-error: failover`. Without it, the load"
                " balancer stays in ERROR and the Service has an Event.",
            )
        },
        "DELETE lbaas/loadbalancers/{}": {
            "delete load balancer": (
                "loadbalancer:delete",
                _WRITE,
                "Delete the load balancer of a Service.",
            )
        },
        **{
            f"{method} lbaas/{path}": {
                f"{verb} {path.partition('/')[0]}": (
                    f"{rule}:{method.lower()}",
                    _WRITE,
                    purpose,
                )
            }
            for rule, path, method, verb, purpose in (
                ("listener", "listeners", "POST", "create", "A new port of a Service."),
                ("listener", "listeners/{}", "PUT", "update", "Settings."),
                ("listener", "listeners/{}", "DELETE", "delete", "A removed port."),
                ("pool", "pools", "POST", "create", "The pool of a listener."),
                ("pool", "pools/{}", "PUT", "update", "Settings."),
                ("pool", "pools/{}", "DELETE", "delete", "A pool without listener."),
                ("healthmonitor", "healthmonitors", "POST", "create", "A new monitor."),
                ("healthmonitor", "healthmonitors/{}", "PUT", "update", "Settings."),
                (
                    "healthmonitor",
                    "healthmonitors/{}",
                    "DELETE",
                    "delete",
                    "A monitor that is not desired, or of another type.",
                ),
            )
        },
        "PUT lbaas/pools/{}/members": {
            "update members": (
                "member:post member:put member:delete",
                _WRITE,
                "All members of a pool; Octavia enforces the three rules.",
            )
        },
    },
)
CINDER = _rows(
    "block-storage",
    "",
    {
        "GET volumes/detail": {
            "list volumes": (
                "volume:get_all",
                "reader",
                "Volumes of the cluster, and their states.",
            ),
            "find volumes": (
                "volume:get_all",
                "reader",
                "A volume by its name: a repeated request creates no second one.",
            ),
        },
        "GET volumes/{}": {"get volume": ("volume:get", "reader", "One volume.")},
        "GET attachments": {
            "list attachments": (
                "",
                "any",
                "Attachments of a volume, unfinished ones too.",
            )
        },
        "GET messages": {
            "list messages": (
                "message:get_all",
                "reader",
                "The reason why a volume is in an error status.",
            )
        },
        "GET types": {
            "list volume types": (
                "volume_extension:type_get_all"
                " volume_extension:access_types_extra_specs",
                "reader",
                "Volume types of StorageClasses; whether they support multiattach.",
            )
        },
        "GET types/{}": {
            "get volume type": (
                "volume_extension:type_get",
                "reader",
                "The confirmation before a StorageClass is deleted.",
            )
        },
        "GET types/default": {
            "get default volume type": (
                "volume_extension:type_get",
                "reader",
                "The type of volumes without one. Where it is denied, discovery reports"
                " no default type.",
            )
        },
        "GET os-availability-zone": {
            "list zones": ("", "any", "The message about an unknown zone.")
        },
        "GET os-quota-sets/{}": {
            "get quotas": (
                "volume_extension:quotas:show",
                "reader",
                "GetCapacity: what the quota of the project permits.",
            )
        },
        "GET limits": {
            "read the quotas of the block-storage service": (
                "limits_extension:used_limits",
                "reader",
                _LIMITS,
            )
        },
        "POST volumes": {
            "create volume": (
                "volume:create volume:multiattach",
                "member",
                "New volumes and clones. The second rule applies to volume types with"
                " multiattach.",
            )
        },
        "POST volumes/{}/action": {
            "extend volume": (
                "volume:extend volume:extend_attached_volume",
                "member",
                "Expansion; the second rule applies to attached volumes.",
            ),
            "retype volume": (
                "volume:retype",
                "member",
                "A VolumeAttributesClass with another type.",
            ),
            "roll detaching back": (
                "volume_extension:volume_actions:roll_detaching",
                "member",
                "A volume whose detachment has failed becomes in-use again.",
            ),
        },
        "DELETE attachments/{}": {
            "delete attachment": (
                "volume:attachment_delete",
                "member",
                "An attachment that Nova does not have, of the server asked about or of"
                " one that does not exist. Cinder rejects any other.",
            )
        },
        "DELETE volumes/{}": {
            "delete volume": ("volume:delete", "member", "Delete a volume.")
        },
    },
)
OTHERS = {
    **_rows(
        "image",
        "",
        {
            "GET images": {
                "list images": ("get_images", "reader", "Images for discovery.")
            }
        },
    ),
    **_rows(
        "key-manager",
        "",
        {
            "GET {}/{}": {
                "get TLS container": (
                    "container:get secret:get",
                    "member",
                    "A Service with `loadbalancer.openstack.org/default-tls-container"
                    "-ref`: whether the container or secret exists. A private one"
                    " requires its creator, or an ACL. Octavia reads it with its own"
                    " user, which requires an ACL, too.",
                )
            }
        },
    ),
}
PERMISSIONS = NOVA | NEUTRON | OCTAVIA | CINDER | OTHERS


def tables() -> sheets.Tables:
    """Return the roles of each component, and a table per service."""
    users = components(cloud_calls.calls())
    by_service = {
        title: sheets.table(HEADS, list(_table(service, users)))
        for service, title in TITLES.items()
    }
    heads = ("component", *TITLES.values())
    summary = [(name, *_roles(name, users)) for name in COMPONENTS]
    return {"roles": sheets.table(heads, summary), **by_service}


def _roles(component: str, users: Mapping[Key, Sequence[str]]) -> Iterator[str]:
    """Yield the role that suffices in each service, but for calls of an admin."""
    for service in TITLES:
        roles = {
            permission.role
            for row, permission in PERMISSIONS.items()
            if row[0] == service and component in users.get(row, ())
        }
        ordered = [role for role in ROLES if role in roles - {"admin"}]
        yield ordered[-1] if ordered else ""


def key(call: Call) -> Key:
    """Return the key of a call in PERMISSIONS."""
    return call.service, f"{call.method} {call.path}", call.operation


def components(calls: Iterable[Call]) -> Mapping[Key, Sequence[str]]:
    """Return the components that make each call, in the order of COMPONENTS."""
    users: dict[Key, set[str]] = collections.defaultdict(set)
    for call in calls:
        names = next(v for start, v in PLACES.items() if call.place.startswith(start))
        users[key(call)] |= {name for name in names if _makes(name, call)}
    return {k: [n for n in COMPONENTS if n in names] for k, names in users.items()}


def _makes(component: str, call: Call) -> bool:
    if component != TOOL or call.place in ("checkup.py", "load_balancers/checkup.py"):
        return True
    if call.place.startswith("catalog/"):
        return call.operation in READ_BY_LAYOUTS
    if call.place.startswith("volumes/"):
        return call.operation in READ_BY_ORPHANS | OF_ORPHANS
    return call.method == "GET" or call.operation in OF_TOOL


def _table(
    service: str, users: Mapping[Key, Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    for row, permission in PERMISSIONS.items():
        if row[0] == service:
            yield (
                sheets.code(row[1].replace("{}", "{id}")),
                sheets.code(row[2]),
                ", ".join(map(sheets.code, permission.rules)) or "none",
                permission.role,
                permission.purpose,
                ", ".join(users.get(row, ())),
            )
