"""Lists and single reads of load balancers and related objects: one call each."""

from lib.cloud.openstack.http.client import Service
from lib.cloud.openstack.http.listings import Listing, Single
from lib.cloud.openstack.load_balancers.read import native

PAGE = 1000
"""Source: Octavia configuration, [api_settings] pagination_max_limit, usual."""
NEUTRON_PAGE = 5000
FILTERED = 100
"""IDs that fit in one URL of 8 KiB."""
NAMED = 25
"""Names of security groups that fit in one URL of 8 KiB."""

BALANCER = Service.LOAD_BALANCER
NETWORK = Service.NETWORK
KEYS = Service.KEY_MANAGER

LOAD_BALANCERS = Listing(
    BALANCER,
    "lbaas/loadbalancers",
    "list load balancers",
    native.LoadBalancersPage,
    PAGE,
)
STATES = Listing(
    BALANCER,
    "lbaas/loadbalancers",
    "list states",
    native.LoadBalancersPage,
    PAGE,
    ("id", "provisioning_status"),
)
LOAD_BALANCER = Single(
    BALANCER, "lbaas/loadbalancers/{}", "get load balancer", native.LoadBalancerAnswer
)
STATUS_TREE = Single(
    BALANCER, "lbaas/loadbalancers/{}/status", "get status tree", native.StatusAnswer
)
LISTENERS = Listing(
    BALANCER, "lbaas/listeners", "list listeners", native.ListenersPage, PAGE
)
POOLS = Listing(BALANCER, "lbaas/pools", "list pools", native.PoolsPage, PAGE)
MONITORS = Listing(
    BALANCER, "lbaas/healthmonitors", "list monitors", native.MonitorsPage, PAGE
)
"""They can't be asked for by load balancer."""
MONITOR = Single(
    BALANCER, "lbaas/healthmonitors/{}", "get monitor", native.MonitorAnswer
)
MEMBERS = Listing(
    BALANCER, "lbaas/pools/{}/members", "list members", native.MembersPage, PAGE
)
"""Of one pool, with all that they have."""

FLOATING_IPS = Listing(
    NETWORK,
    "floatingips",
    "list floating IPs",
    native.FloatingIpsPage,
    NEUTRON_PAGE,
)
SECURITY_GROUPS = Listing(
    NETWORK,
    "security-groups",
    "list security groups",
    native.SecurityGroupsPage,
    NEUTRON_PAGE,
    ("id", "name", "description", "security_group_rules", "created_at"),
)
PORTS = Listing(
    NETWORK,
    "ports",
    "list ports",
    native.PortsPage,
    NEUTRON_PAGE,
    (
        "id",
        "device_id",
        "fixed_ips",
        "security_groups",
        "port_security_enabled",
        "revision_number",
    ),
)
SUBNETS = Listing(NETWORK, "subnets", "list subnets", native.SubnetsPage, NEUTRON_PAGE)
NETWORKS = Listing(
    NETWORK, "networks", "list networks", native.NetworksPage, NEUTRON_PAGE
)
EXTERNAL_NETWORKS = Listing(
    NETWORK, "networks", "list external networks", native.NetworksPage, NEUTRON_PAGE
)
"""The networks that floating IPs can come from."""
