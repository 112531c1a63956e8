"""Cloud calls are counted under the reference's names, too."""

import prometheus_client
import pytest

from lib.cloud.openstack import reference_metrics
from lib.daemon import counting

REFERENCE = {
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
    "get status tree": "status_tree_get",
    "list flavors": "flavor_list",
    "list monitors": "loadbalancer_healthmonitor_list",
    "list security groups": "security_group_list",
    "list volume types": "volume_type_list",
    "log in": "log_in",
}
"""Some calls that the reference does not make."""


@pytest.mark.parametrize(
    ("operation", "request_name"), [*REFERENCE.items(), *OF_OUR_OWN.items()]
)
def test_a_call_has_the_references_name(operation: str, request_name: str) -> None:
    registry = prometheus_client.CollectorRegistry()
    names = counting.Reference(reference_metrics.CALLS, reference_metrics.request)
    calls = counting.CloudMetrics("openstack", registry, names)
    calls.observe(operation, "ok", 0.1)
    name = "openstack_api_requests_total"
    assert registry.get_sample_value(name, {"request": request_name}) == 1
