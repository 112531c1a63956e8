"""The names that cloud-provider-openstack gives calls of the cloud in its metrics."""

from collections.abc import Collection

from lib.cloud.openstack import reference_metrics

BY_OPERATION = {
    "attach volume": "volume_attach",
    "create floatingips": "floating_ip_create",
    "create healthmonitors": "loadbalancer_healthmonitor_create",
    "create listeners": "loadbalancer_listener_create",
    "create load balancer": "loadbalancer_create",
    "create pools": "loadbalancer_pool_create",
    "create security-group-rules": "security_group_rule_create",
    "create security-groups": "security_group_create",
    "create volume": "volume_create",
    "delete floatingips": "floating_ip_delete",
    "delete healthmonitors": "loadbalancer_healthmonitor_delete",
    "delete listeners": "loadbalancer_listener_delete",
    "delete load balancer": "loadbalancer_delete",
    "delete pools": "loadbalancer_pool_delete",
    "delete security-group-rules": "security_group_rule_delete",
    "delete security-groups": "security_group_delete",
    "delete volume": "volume_delete",
    "detach volume": "volume_detach",
    "extend volume": "volume_expand",
    "find servers": "server_list",
    "find volumes": "volume_list",
    "get load balancer": "loadbalancer_get",
    "get monitor": "loadbalancer_healthmonitor_get",
    "get server": "server_get",
    "get volume": "volume_get",
    "list external networks": "network_list",
    "list floating IPs": "floating_ip_list",
    "list listeners": "loadbalancer_listener_list",
    "list load balancers": "loadbalancer_list",
    "list members": "loadbalancer_member_list",
    "list networks": "network_list",
    "list pools": "loadbalancer_pool_list",
    "list ports": "port_list",
    "list servers": "server_list",
    "list states": "loadbalancer_list",
    "list subnets": "subnet_list",
    "list volumes": "volume_list",
    "update floatingips": "floating_ip_update",
    "update healthmonitors": "loadbalancer_healthmonitor_update",
    "update listeners": "loadbalancer_listener_update",
    "update loadbalancers": "loadbalancer_update",
    "update members": "loadbalancer_members_update",
    "update pools": "loadbalancer_pool_update",
    "update ports": "port_update",
}
"""Each call that the reference makes as well, and the label it gives it.

Source: kubernetes/cloud-provider-openstack v1.36.0, NewMetricContext."""
OF_OUR_OWN = {
    "decode volume": "decode_volume",
    "delete attachment": "attachment_delete",
    "get default volume type": "default_volume_type_get",
    "get quotas": "quota_get",
    "get status tree": "status_tree_get",
    "get TLS container": "TLS_container_get",
    "list attachments": "attachment_list",
    "list flavors": "flavor_list",
    "list messages": "message_list",
    "list monitors": "loadbalancer_healthmonitor_list",
    "list security groups": "security_group_list",
    "list volume types": "volume_type_list",
    "list zones": "zone_list",
    "authenticate": "authenticate",
    "retype volume": "retype_volume",
    "roll detaching back": "roll_detaching_back",
}
"""Calls that the reference does not make."""


def table(operations: Collection[str]) -> list[str]:
    """Return a line for each call, with its label; a call without a row is MISSING."""
    known = BY_OPERATION | OF_OUR_OWN
    return [f"{name:32} {known.get(name, 'MISSING')}" for name in sorted(operations)]


def missing(operations: Collection[str]) -> set[str]:
    """Return the calls that have no row, or whose label is not that of their row."""
    known = BY_OPERATION | OF_OUR_OWN
    return {
        name
        for name in operations
        if known.get(name) != reference_metrics.request(name)
    }


def of_the_reference(*resources: str) -> frozenset[str]:
    """Return the calls whose label begins with one of these resources."""
    return frozenset(
        operation
        for operation, label in BY_OPERATION.items()
        if label.startswith(resources)
    )
