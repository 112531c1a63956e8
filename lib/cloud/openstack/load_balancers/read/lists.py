"""The reads of load balancers and of what surrounds them: one call each."""

import urllib.parse
from collections.abc import Collection

from lib.cloud import errors
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.read import native

PAGE = 1000
"""Source: Octavia configuration, [api_settings] pagination_max_limit, usual."""
NEUTRON_PAGE = 5000
FILTERED = 100
"""So many ids fit in one URL of 8 KiB."""
NAMED = 25
"""So many names of security groups fit in one URL of 8 KiB."""
_PORT_FIELDS = (
    "id",
    "device_id",
    "fixed_ips",
    "security_groups",
    "port_security_enabled",
    "revision_number",
)
_GROUP_FIELDS = ("id", "name", "description", "security_group_rules")
_GATE_FIELDS = ("id", "provisioning_status")

BALANCER = client.Service.LOAD_BALANCER
NETWORK = client.Service.NETWORK
KEYS = client.Service.KEY_MANAGER


def quoted(text: str) -> str:
    """Make an id fit to be a part of a path."""
    return urllib.parse.quote(text, safe="")


def load_balancers(
    api: client.Client, deadline: float
) -> tuple[native.LoadBalancer, ...]:
    """List all load balancers of our project."""
    query = api.project_filter()
    call = client.Get(
        BALANCER, "lbaas/loadbalancers", "list load balancers", tuple(query)
    )
    return api.items(call, PAGE, native.LoadBalancersPage, deadline)


def states(api: client.Client, deadline: float) -> tuple[native.LoadBalancer, ...]:
    """List only ids and provisioning statuses of all load balancers."""
    query = (*(("fields", name) for name in _GATE_FIELDS), *api.project_filter())
    call = client.Get(BALANCER, "lbaas/loadbalancers", "list states", query)
    return api.items(call, PAGE, native.LoadBalancersPage, deadline)


def state(api: client.Client, id_: str, deadline: float) -> native.LoadBalancer | None:
    """Read one load balancer; None when Octavia says that it is not there."""
    path = f"lbaas/loadbalancers/{quoted(id_)}"
    call = client.Get(BALANCER, path, "get load balancer", resource=id_)
    try:
        return api.read(call, native.LoadBalancerAnswer, deadline).loadbalancer
    except errors.NotFound:
        return None


def own(api: client.Client, id_: str, deadline: float) -> native.LoadBalancer | None:
    """Read one load balancer; None when our project has none of this ID."""
    found = state(api, id_, deadline)
    if found is None or not api.project_filter():
        return found
    return found if found.project_id in ("", None, api.project_id()) else None


def listeners(
    api: client.Client, only: str, deadline: float
) -> tuple[native.Listener, ...]:
    """List listeners; only: of this load balancer, empty: of the whole project."""
    query = (("load_balancer_id", only),) if only else tuple(api.project_filter())
    call = client.Get(BALANCER, "lbaas/listeners", "list listeners", query, only)
    return api.items(call, PAGE, native.ListenersPage, deadline)


def pools(api: client.Client, only: str, deadline: float) -> tuple[native.Pool, ...]:
    """List pools; only: of this load balancer, empty: of the whole project."""
    query = (("loadbalancer_id", only),) if only else tuple(api.project_filter())
    call = client.Get(BALANCER, "lbaas/pools", "list pools", query, only)
    return api.items(call, PAGE, native.PoolsPage, deadline)


def monitors(api: client.Client, deadline: float) -> tuple[native.Monitor, ...]:
    """List the monitors of the project; they can't be asked for by load balancer."""
    query = tuple(api.project_filter())
    call = client.Get(BALANCER, "lbaas/healthmonitors", "list monitors", query)
    return api.items(call, PAGE, native.MonitorsPage, deadline)


def monitor(api: client.Client, id_: str, deadline: float) -> native.Monitor | None:
    """Read one monitor; None when it does not exist."""
    path = f"lbaas/healthmonitors/{quoted(id_)}"
    call = client.Get(BALANCER, path, "get monitor", resource=id_)
    try:
        return api.read(call, native.MonitorAnswer, deadline).healthmonitor
    except errors.NotFound:
        return None


def status_tree(api: client.Client, id_: str, deadline: float) -> native.Tree:
    """Read a load balancer's status tree, which names the members of all pools."""
    path = f"lbaas/loadbalancers/{quoted(id_)}/status"
    call = client.Get(BALANCER, path, "get status tree", resource=id_)
    return api.read(call, native.StatusAnswer, deadline).statuses.loadbalancer


def members(
    api: client.Client, pool_id: str, deadline: float
) -> tuple[native.Member, ...]:
    """List a pool's members with all that they have."""
    path = f"lbaas/pools/{quoted(pool_id)}/members"
    call = client.Get(BALANCER, path, "list members", resource=pool_id)
    return api.items(call, PAGE, native.MembersPage, deadline)


def floating_ips(api: client.Client, deadline: float) -> tuple[native.FloatingIp, ...]:
    """List the floating IPs of our project."""
    query = tuple(api.project_filter())
    call = client.Get(NETWORK, "floatingips", "list floating IPs", query)
    return api.items(call, NEUTRON_PAGE, native.FloatingIpsPage, deadline)


def security_groups(
    api: client.Client, named: Collection[str], deadline: float
) -> tuple[native.SecurityGroup, ...]:
    """List the security groups of these names; of all names when they are many."""
    fields = tuple(("fields", field) for field in _GROUP_FIELDS)
    filters = tuple(("name", name) for name in sorted(named))
    if len(filters) > NAMED:
        filters = ()
    query = (*fields, *filters, *api.project_filter())
    call = client.Get(NETWORK, "security-groups", "list security groups", query)
    return api.items(call, NEUTRON_PAGE, native.SecurityGroupsPage, deadline)


def ports(
    api: client.Client, filters: client.Query, deadline: float
) -> tuple[native.Port, ...]:
    """List ports; filters: empty: all of the project."""
    fields = tuple(("fields", field) for field in _PORT_FIELDS)
    query = (*fields, *filters, *api.project_filter())
    call = client.Get(NETWORK, "ports", "list ports", query)
    return api.items(call, NEUTRON_PAGE, native.PortsPage, deadline)


def ports_there(
    api: client.Client, ids: Collection[str], deadline: float
) -> frozenset[str]:
    """Say which of these ports there are."""
    ordered = sorted(ids)
    found: set[str] = set()
    for at in range(0, len(ordered), FILTERED):
        filters = tuple(("id", one) for one in ordered[at : at + FILTERED])
        found |= {port.id for port in ports(api, filters, deadline)}
    return frozenset(found)


def subnets(
    api: client.Client, filters: client.Query, deadline: float
) -> tuple[native.Subnet, ...]:
    """List subnets, those of other projects that we may see included."""
    call = client.Get(NETWORK, "subnets", "list subnets", filters)
    return api.items(call, NEUTRON_PAGE, native.SubnetsPage, deadline)


def external_networks(
    api: client.Client, deadline: float
) -> tuple[native.Network, ...]:
    """List the networks that floating IPs can come from."""
    query = (("router:external", "True"),)
    call = client.Get(NETWORK, "networks", "list external networks", query)
    return api.items(call, NEUTRON_PAGE, native.NetworksPage, deadline)


def networks(
    api: client.Client, id_: str, deadline: float
) -> tuple[native.Network, ...]:
    """List the network of this id, if there is one that we may see."""
    call = client.Get(NETWORK, "networks", "list networks", (("id", id_),))
    return api.items(call, NEUTRON_PAGE, native.NetworksPage, deadline)


def is_readable(api: client.Client, tls_ref: str, deadline: float) -> bool:
    """Say whether we may read a TLS container or secret of Barbican, if there is one.

    Raises:
        CloudError: it could not be told.
    """
    if not api.has(KEYS):
        return False
    kind, uuid = tls_ref.rstrip("/").split("/")[-2:]
    path = f"{quoted(kind)}/{quoted(uuid)}"
    call = client.Get(KEYS, path, "get TLS container", resource=uuid)
    try:
        api.get(call, deadline)
    except (errors.NotFound, errors.Forbidden, errors.InvalidRequest):
        return False
    return True
