"""The names that cloud-provider-openstack has for its metrics.

Source: cloud-provider-openstack docs/metrics.md: the counters
openstack_api_requests_total and _errors_total and the histogram
openstack_api_request_duration_seconds, each with the label `request`;
pkg/metrics/metrics.go: cloudprovider_openstack_reconcile_duration_seconds, _total,
_errors_total.
"""

CALLS = "openstack"
RECONCILIATIONS = "cloudprovider_openstack"

_VERBS = ("attach", "create", "delete", "detach", "get", "list", "update")
_OTHERWISE = {
    "extend volume": "volume_expand",
    "find volumes": "volume_list",
    "find servers": "server_list",
    "list states": "loadbalancer_list",
    "update members": "loadbalancer_members_update",
}
"""Calls whose verb differs from the reference's, too."""
_NOUNS = {
    "load balancer": "loadbalancer",
    "listener": "loadbalancer_listener",
    "pool": "loadbalancer_pool",
    "monitor": "loadbalancer_healthmonitor",
    "healthmonitor": "loadbalancer_healthmonitor",
    "member": "loadbalancer_member",
    "floating IP": "floating_ip",
    "floatingip": "floating_ip",
    "external network": "network",
}
"""Our nouns, in the singular, and the reference's.

Source: kubernetes/cloud-provider-openstack v1.36.0, the arguments of NewMetricContext
in pkg/openstack, pkg/util/openstack and pkg/csi/cinder/openstack.
"""


def request(operation: str) -> str:
    """Return the reference's name of a call: "list servers" is server_list."""
    if operation in _OTHERWISE:
        return _OTHERWISE[operation]
    verb, _, noun = operation.partition(" ")
    if verb not in _VERBS:
        return operation.replace(" ", "_")
    noun = noun.removesuffix("s")
    return f"{_NOUNS.get(noun, noun).replace(' ', '_').replace('-', '_')}_{verb}"
