"""A second external network with a way to the project's own, for two floating IPs."""

import contextlib
import secrets
from collections.abc import Iterator

from lib.lab import places
from lib.lab.openstack import accounts, cloud, tenant


@contextlib.contextmanager
def of(where: places.Places, user: tenant.Tenant) -> Iterator[str]:
    """Yield its name; it is deleted at the end, when nothing uses it any longer."""
    name = f"second-{secrets.token_hex(3)}"
    admin = cloud.connect(where, accounts.ADMIN)
    outside = admin.network.create_network(
        name=name, is_router_external=True, is_shared=True
    )
    admin.network.create_subnet(
        name=name,
        network_id=outside.id,
        ip_version=4,
        cidr="203.0.113.0/24",
        is_dhcp_enabled=False,
    )
    network = user.connection.network
    inside = network.find_network(tenant.NETWORK, ignore_missing=False)
    router = network.create_router(
        name=name, external_gateway_info={"network_id": outside.id}
    )
    port = network.create_port(name=name, network_id=inside.id)
    network.add_interface_to_router(router, port=port.id)
    try:
        yield name
    finally:
        with cloud.sentences():
            network.remove_interface_from_router(router, port=port.id)
            network.delete_router(router)
            admin.network.delete_network(outside)
            admin.close()
