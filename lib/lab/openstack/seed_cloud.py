"""Seeds what an operator would set up: types, flavors, images, zones, networks.

Rules: what is there by name is left as it is, so that an interrupted seed goes on.
"""

import openstack.connection

from lib.lab.openstack import cloud, layout

PUBLIC_NETWORK = "public"
_PUBLIC_RANGE = ("198.18.0.0/16", "198.18.0.1")
"""Source: RFC 2544, addresses for tests between networks."""
_FLAVORS = (
    # Name, id, memory in MiB, vCPUs, disk in GiB.
    ("m1.tiny", "1", 128, 1, 1),
    ("m1.small", "2", 2048, 2, 20),
    ("m1.medium", "3", 4096, 2, 40),
)
_IMAGE = "tiny"


def run(admin: openstack.connection.Connection) -> None:
    """Make whatever is missing."""
    for name in ("fast", "slow"):
        if not admin.block_storage.find_type(name):
            admin.block_storage.create_type(
                name=name, is_public=True, extra_specs={"volume_backend_name": name}
            )
    for name, key, ram, cpus, disk in _FLAVORS:
        if not admin.compute.find_flavor(name):
            admin.compute.create_flavor(
                name=name,
                id=key,
                ram=ram,
                vcpus=cpus,
                disk=disk,
            )
    # The first one is what who asks for the smallest image should get.
    _image(admin, _IMAGE, 16 * 1024)
    _zones(admin)
    _public(admin)


def _image(admin: openstack.connection.Connection, name: str, size_bytes: int) -> None:
    images = cloud.images_of(admin)
    image = images.find_image(name)
    if image and image.status == "active":
        return
    if image:
        # Its upload was interrupted.
        images.delete_image(image)
    images.create_image(
        name,
        data=b"x" * size_bytes,
        disk_format="raw",
        container_format="bare",
        visibility="public",
        tags=[name],
        wait=True,
    )


def _zones(admin: openstack.connection.Connection) -> None:
    """Make an availability zone of every fake hypervisor."""
    for number, host in enumerate(layout.COMPUTE_HOSTS, start=1):
        name = f"az{number}"
        aggregate = admin.compute.find_aggregate(name, ignore_missing=True)
        if aggregate is None:
            aggregate = admin.compute.create_aggregate(
                name=name, availability_zone=name
            )
        if host not in (aggregate.hosts or ()):
            admin.compute.add_host_to_aggregate(aggregate, host)


def _public(admin: openstack.connection.Connection) -> None:
    network = admin.network.find_network(
        PUBLIC_NETWORK
    ) or admin.network.create_network(
        name=PUBLIC_NETWORK,
        is_router_external=True,
        is_shared=True,
        provider_network_type="flat",
        provider_physical_network="physnet1",
    )
    if not admin.network.find_subnet("public-v4"):
        cidr, gateway = _PUBLIC_RANGE
        admin.network.create_subnet(
            name="public-v4",
            network_id=network.id,
            ip_version=4,
            cidr=cidr,
            is_dhcp_enabled=False,
            gateway_ip=gateway,
        )
