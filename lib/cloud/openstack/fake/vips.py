"""Where Octavia in memory puts load balancers: on ports of Neutron in memory."""

import dataclasses
from collections.abc import Sequence

from lib.cloud.openstack.fake.neutron import FakeNeutron
from lib.cloud.openstack.fake.wire import Json, Refused, objects


@dataclasses.dataclass(frozen=True, slots=True)
class Vip:
    """Where a load balancer is reached. extra: its additional VIPs."""

    port: Json
    subnet_id: str
    extra: Sequence[Json]


def have(neutron: FakeNeutron, request: Json) -> Vip:
    """Find or create what a load balancer is to be reached at.

    Raises:
        Refused: it is not available; a conflict of Neutron in the words of Octavia.

    Source: octavia/api/drivers/utils.py, call_provider.
    """
    try:
        port_id, subnet_id = _port(neutron, request)
    except Refused as refused:
        if refused.status != 409:
            raise
        text = f"The VIP IP address is already in use: {refused.message}"
        raise Refused(409, text) from refused
    extra = [
        {
            "subnet_id": vip["subnet_id"],
            "ip_address": neutron.free_address(str(vip["subnet_id"])),
        }
        for vip in objects(request, "additional_vips")
    ]
    return Vip(neutron.ports[port_id], subnet_id, extra)


def _port(neutron: FakeNeutron, request: Json) -> tuple[str, str]:
    """Find or create the VIP's port; return its ID and subnet."""
    if request.get("vip_port_id"):
        port = neutron.ports.get(str(request["vip_port_id"]))
        if port is None:
            raise Refused(400, f"Port {request['vip_port_id']} not found.")
        fixed = objects(port, "fixed_ips")
        return str(port["id"]), str(fixed[0]["subnet_id"])
    subnet_id = str(request.get("vip_subnet_id") or "")
    network_id = request.get("vip_network_id")
    if network_id and not subnet_id and network_id not in neutron.networks:
        raise Refused(400, f"Network {network_id} not found.")
    if not subnet_id:
        fitting = [
            key
            for key, subnet in neutron.subnets.items()
            if subnet["network_id"] == network_id
        ]
        if not fitting:
            raise Refused(400, "VIP must contain one of: port, subnet, network")
        subnet_id = fitting[0]
    if subnet_id not in neutron.subnets:
        raise Refused(400, f"Subnet {subnet_id} not found.")
    address = str(request.get("vip_address") or "")
    if address and any(
        address == fixed_ip["ip_address"]
        for port in neutron.ports.values()
        for fixed_ip in objects(port, "fixed_ips")
    ):
        text = f"IP address {address} already allocated in subnet {subnet_id}"
        raise Refused(409, text)
    return neutron.add_port(subnet_id, address), subnet_id
