"""Octavia load balancers with their floating IPs and security groups.

`cloud.OctaviaLoadBalancers` is the entry point. Only `observe` reads and only
`cloud` writes; the rest is pure: `parse` builds the desired state from facts, `plan`
compares it with the observed tree and returns the next requests.
"""
