"""Networks, addresses and offers that tables of load balancers need beside the usual.

names: filled with the ids of what was made, for rows to name.
"""

import openstack.connection

from lib.lab.openstack import cloud, seed_cloud, tenant
from tests.harness.openstack import offers

_SECOND = (("a", "198.20.0.0/16"), ("b", "198.21.0.0/16"))
_NAME = "prerequisites"


def offer(admin: openstack.connection.Connection, names: dict[str, str]) -> None:
    """Offer what only an admin can: a flavor, a zone, one more external network.

    flavor, zone; external, second_external (networks); subnet_a, subnet_b (of the
    second, with the tag "blue" on the latter).

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    network = admin.network
    with cloud.sentences():
        flavor, zone = offers.balancers(admin, _NAME, f"{_NAME}-zone")
        public = network.find_network(seed_cloud.PUBLIC_NETWORK, ignore_missing=False)
        names |= {
            "flavor": flavor,
            "zone": zone,
            "external": str(public.id),
            "second_external": _second(admin, names),
        }


def _second(admin: openstack.connection.Connection, names: dict[str, str]) -> str:
    network = admin.network
    outside = network.create_network(
        name=f"{_NAME}-outside",
        is_router_external=True,
        is_shared=True,
        provider_network_type="flat",
        provider_physical_network=f"physnet-{_NAME}",
    )
    for letter, cidr in _SECOND:
        subnet = network.create_subnet(
            name=f"second-{letter}",
            network_id=outside.id,
            ip_version=4,
            cidr=cidr,
            is_dhcp_enabled=False,
        )
        names[f"subnet_{letter}"] = str(subnet.id)
    network.set_tags(network.get_subnet(names["subnet_b"]), ["blue"])
    return str(outside.id)


def withdraw(admin: openstack.connection.Connection, names: dict[str, str]) -> None:
    """Delete what was created, once it is not in use.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    octavia = admin.load_balancer
    with cloud.sentences():
        octavia.delete_availability_zone(names["zone"])
        octavia.delete_flavor(names["flavor"])
        for profile in octavia.flavor_profiles(name=_NAME):
            octavia.delete_flavor_profile(profile)
        for each in octavia.availability_zone_profiles(name=_NAME):
            octavia.delete_availability_zone_profile(each)
        admin.network.delete_network(names["second_external"])


def furnish(connection: openstack.connection.Connection, names: dict[str, str]) -> None:
    """Make what a project's user brings along, beside the lab's usual network.

    network, subnet (the usual ones); other_network, other_subnet; port, port_2; free_1
    to free_4 (floating IPs); u1, u2 (load balancers with floating IPs).

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    network = connection.network
    with cloud.sentences():
        inside = network.find_network(tenant.NETWORK, ignore_missing=False)
        names |= {"network": str(inside.id), "subnet": str(inside.subnet_ids[0])}
        network.create_subnet(
            name="inside-v6", network_id=inside.id, ip_version=6, cidr="fd00:42::/64"
        )
        other = network.create_network(name="other")
        subnet = network.create_subnet(
            name="other", network_id=other.id, ip_version=4, cidr="10.43.0.0/20"
        )
        names |= {"other_network": str(other.id), "other_subnet": str(subnet.id)}
        router = network.create_router(
            name="second",
            external_gateway_info={"network_id": names["second_external"]},
        )
        fixed = [{"subnet_id": names["subnet"]}]
        gateway = network.create_port(network_id=inside.id, fixed_ips=fixed)
        network.add_interface_to_router(router, port=gateway.id)
        for name in ("port", "port_2"):
            port = network.create_port(network_id=inside.id, fixed_ips=fixed)
            names[name] = str(port.id)
        for number in range(1, 5):
            ip = network.create_ip(floating_network_id=names["external"])
            names[f"free_{number}"] = str(ip.floating_ip_address)
    add_shared(connection, names)


def add_shared(
    connection: openstack.connection.Connection, names: dict[str, str]
) -> None:
    """Create two load balancers that Services may share: u1, u2, with floating IPs.

    names: has external and subnet.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    with cloud.sentences():
        for name in ("u1", "u2"):
            load_balancer = connection.load_balancer.create_load_balancer(
                name=name, vip_subnet_id=names["subnet"]
            )
            names[name] = str(load_balancer.id)
            connection.network.create_ip(
                floating_network_id=names["external"],
                port_id=load_balancer.vip_port_id,
            )
