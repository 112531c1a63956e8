"""Protocols of listeners and pools: proxy protocol, X-Forwarded-For, TLS, UDP. Pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go.
"""

from lib.cloud.load_balancers import PortProtocol
from lib.cloud.openstack.load_balancers.spec.desired import Desired, DesiredPort


def of_listener(desired: Desired, port: DesiredPort) -> str:
    """Choose a listener's protocol; TLS beats HTTP, and both are only for TCP."""
    if port.protocol is PortProtocol.TCP and desired.tls_ref:
        return "TERMINATED_HTTPS"
    if port.protocol is PortProtocol.TCP and desired.forwards_for:
        return "HTTP"
    return str(port.protocol)


def of_pool(desired: Desired, port: DesiredPort) -> str:
    """Choose a pool's protocol."""
    if port.protocol is not PortProtocol.TCP:
        return str(port.protocol)
    if desired.proxy:
        return str(desired.proxy)
    return "HTTP" if desired.forwards_for or desired.tls_ref else "TCP"


def transport(protocol: str) -> str:
    """Return the transport of a port: ports of one transport exclude each other."""
    return protocol if protocol in ("UDP", "SCTP") else "TCP"
