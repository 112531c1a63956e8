"""Schemas of the features of Neutron, Octavia and Ironic."""

from lib.osdpl.api.schema_types import (
    ANY,
    ANY_OBJECT,
    BOOLEAN,
    INTEGER,
    SECRET,
    STRING,
    Schema,
    closed,
    enabled,
    enum,
    fields,
    list_of,
    nullable,
)

_SUBNET = ("range", "pool_start", "pool_end", "gateway")


def neutron() -> Schema:
    """Return the schema of spec.features.neutron."""
    extensions = ("vpnaas", "dynamic_routing", "portprober", "trunk")
    return closed(
        {
            "tunnel_interface": STRING,
            "backend": enum("ml2", "tungstenfabric", "ml2/ovn"),
            "dns_servers": list_of(STRING),
            "dvr": enabled(),
            "tenant_network_types": list_of(enum("flat", "vlan", "vxlan", "geneve")),
            "external_networks": list_of(_external_network()),
            "floating_network": _floating_network(),
            "extensions": closed(fields(closed({"enabled": BOOLEAN}), *extensions)),
            "baremetal": closed({"ngs": _switches()}),
            "bgpvpn": _bgpvpn(),
            "ipsec": enabled(),
        },
        required=("tunnel_interface",),
    )


def octavia() -> Schema:
    """Return the schema of spec.features.octavia."""
    names = _SUBNET[:3]
    network = {
        "name": STRING,
        "subnets": list_of(closed(fields(STRING, *names), names)),
    }
    return closed(
        {
            "default_provider": enum("amphorav2", "ovn", "tungstenfabric"),
            "lb_network": closed(network, ("subnets",)),
        }
    )


def ironic() -> Schema:
    """Return the schema of spec.features.ironic."""
    subnet = closed(fields(STRING, "name", *_SUBNET), ("name", *_SUBNET))
    network = {
        **fields(STRING, "name", "physnet"),
        "bind_deployment_services": BOOLEAN,
        "network_type": enum("flat", "vlan", "vxlan", "geneve"),
        **fields(INTEGER, "segmentation_id", "mtu"),
        **fields(BOOLEAN, "external", "shared"),
        "subnets": list_of(subnet),
    }
    images = closed(fields(STRING, "base_url", "initramfs", "kernel"))
    required = ("provisioning_interface", "baremetal_network_name")
    return closed(
        {
            **fields(STRING, *required),
            "networks": closed({"baremetal": closed(network)}),
            "agent_images": images,
            "console": closed({"serial": closed({"enabled": BOOLEAN})}),
        },
        required=required,
    )


def node_neutron() -> Schema:
    """Return the schema of the features of Neutron that nodes may override."""
    nic = {
        **fields(STRING, "device", "physnet"),
        **fields(INTEGER, "num_vfs", "mtu"),
        "trusted": BOOLEAN,
        "hooks": ANY,
    }
    sriov = enabled(nics=list_of(closed(nic, ("device", "num_vfs", "physnet"))))
    sriov["required"] = ["enabled", "nics"]
    dpdk = enabled(
        driver=STRING,
        socket_memory=ANY,
        bridges=ANY,
        nics=ANY,
        bonds=ANY,
        hugepages=closed({"size": enum("1Gi", "2Mi"), "amount": INTEGER}),
    )
    dpdk["required"] = ["enabled", "driver"]
    return closed(
        {
            "tunnel_interface": STRING,
            "sriov": sriov,
            "dpdk": dpdk,
            "bgpvpn": enabled(),
        }
    )


def _external_network() -> Schema:
    return closed(
        {
            **fields(STRING, "physnet", "bridge", "interface"),
            "network_types": list_of(enum("flat", "vlan", "vxlan", "gre", "local")),
            "vlan_ranges": nullable(STRING),
            "mtu": nullable(INTEGER),
        },
        required=("physnet", "bridge", "network_types"),
    )


def _floating_network() -> Schema:
    return closed(
        {
            "enabled": BOOLEAN,
            **fields(STRING, "name", "physnet"),
            "network_type": enum("flat", "vlan"),
            "segmentation_id": INTEGER,
            "subnet": closed(fields(STRING, "name", *_SUBNET), _SUBNET),
            "router": closed({"name": STRING}),
        }
    )


def _switches() -> Schema:
    required = ("name", "device_type", "ip", "username")
    device = {
        **fields(STRING, "name", "device_type", "ip"),
        **fields(SECRET, "username", "password", "ssh_private_key", "secret"),
        "raw": ANY_OBJECT,
    }
    return closed({"hardware": ANY, "devices": list_of(closed(device, required))})


def _bgpvpn() -> Schema:
    reflector = {"enabled": BOOLEAN, "neighbor_subnets": list_of(STRING)}
    schema = enabled(
        as_number=INTEGER,
        control_interface=STRING,
        dataplane_interface=STRING,
        peers=list_of(STRING),
        evpn_vxlan_port=INTEGER,
        route_reflector=closed(reflector),
    )
    schema["required"] = ["enabled", "as_number"]
    return schema
