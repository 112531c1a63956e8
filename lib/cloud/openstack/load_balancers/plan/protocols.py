"""Protocols of listeners and pools: proxy protocol, X-Forwarded-For, TLS, UDP. Pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go.
"""

from lib.cloud.load_balancers import PortProtocol
from lib.cloud.openstack.load_balancers.spec.wanted import Wanted, WantedPort


def of_listener(wanted: Wanted, port: WantedPort) -> str:
    """Choose a listener's protocol; TLS beats HTTP, and both are only for TCP."""
    if port.protocol is PortProtocol.TCP and wanted.tls_ref:
        return "TERMINATED_HTTPS"
    if port.protocol is PortProtocol.TCP and wanted.forwards_for:
        return "HTTP"
    return str(port.protocol)


def of_pool(wanted: Wanted, port: WantedPort) -> str:
    """Choose a pool's protocol."""
    if port.protocol is not PortProtocol.TCP:
        return str(port.protocol)
    if wanted.proxy:
        return str(wanted.proxy)
    return "HTTP" if wanted.forwards_for or wanted.tls_ref else "TCP"


def transport(protocol: str) -> str:
    """Return the transport of a port: ports of one transport exclude each other."""
    return protocol if protocol in ("UDP", "SCTP") else "TCP"
