"""Writes cloud.conf, which openstack-ccm and the CSI driver share."""

from collections.abc import Iterator

from lib.discovery.openstack import model

CA_FILE = "/etc/config/ca.crt"
"""Mount path of the Secret; its key ca.crt exists only with a certificate."""


def render(
    provider: model.ProviderSettings, *, ignore_volume_microversion: bool
) -> str:
    """Return the text, byte for byte as the reference's chart renders it.

    It begins with an empty line and ends without one. The only addition is the line
    for disabled load balancers, which the reference ignores.

    Source: Deckhouse, cloud-provider-openstack, Secret cloud-controller-manager.
    """
    lines = [
        "",
        "[Global]",
        *_global(provider.connection),
        "[Networking]",
        *(_pair("public-network-name", n) for n in provider.external_network_names),
        *(_pair("internal-network-name", n) for n in provider.internal_network_names),
        "ipv6-support-disabled = true",
        "[LoadBalancer]",
        *_load_balancer(provider.load_balancer),
        "[BlockStorage]",
        f"ignore-volume-microversion = {str(ignore_volume_microversion).lower()}",
        "rescan-on-resize = true",
    ]
    return "\n".join(lines)


def _global(connection: model.Connection) -> Iterator[str]:
    yield _pair("auth-url", connection.auth_url)
    yield _pair("domain-name", connection.domain_name)
    if connection.tenant_name:
        yield _pair("tenant-name", connection.tenant_name)
    if connection.tenant_id:
        yield _pair("tenant-id", connection.tenant_id)
    yield _pair("username", connection.username)
    yield _pair("password", connection.password)
    yield _pair("region", connection.region)
    if connection.ca_cert:
        yield f"ca-file = {CA_FILE}"


def _load_balancer(settings: model.LoadBalancerPlace) -> Iterator[str]:
    if settings.disabled:
        yield "enabled = false"
    yield _pair("create-monitor", "true")
    yield _pair("monitor-delay", "2s")
    yield _pair("monitor-timeout", "1s")
    if settings.subnet_id:
        yield _pair("subnet-id", settings.subnet_id)
    if settings.floating_network_id:
        yield _pair("floating-network-id", settings.floating_network_id)
    yield "enable-ingress-hostname = true"


def _pair(key: str, value: str) -> str:
    r"""Quote as git's configuration syntax has it: only \, " and line ends differ."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    quoted = quoted.replace("\n", "\\n").replace("\t", "\\t")
    return f'{key} = "{quoted}"'
