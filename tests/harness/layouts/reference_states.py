"""States of the reference with the resources that moved.tf cannot cover. Pure.

Source: Deckhouse, cloud-provider-openstack, layouts; the addresses only. Provider
1.54.1, the attributes of each type. OpenTofu, "JSON Output Format".
"""

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
_PROVIDER = 'provider["registry.opentofu.org/terraform-provider-openstack/openstack"]'
ADDRESS = "198.51.100.7"


def resource(
    module: str, kind: str, name: str, *instances: Json, is_counted: bool = False
) -> Json:
    """Return a managed resource of a state file. instances: their attributes."""
    items = [
        {
            **({"index_key": index} if is_counted else {}),
            "schema_version": 0,
            "attributes": attributes,
            "sensitive_attributes": [],
        }
        for index, attributes in enumerate(instances)
    ]
    whole: Json = {
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider": _PROVIDER,
        "instances": items,
    }
    return {"module": module, **whole} if module else whole


def state(*resources: Json) -> Json:
    """Return a state file."""
    return {
        "version": 4,
        "terraform_version": "1.9.4",
        "serial": 1,
        "lineage": "5f1e7d2c-3b44-4c9a-9d11-8f6a2b7c0e56",
        "outputs": {},
        "resources": list(resources),
    }


def addresses(
    module: str, name: str, id_: str = "f", address: str = ADDRESS, server: str = "s"
) -> Sequence[Json]:
    """Return a floating IP of a server and its association, of types that are gone."""
    floating_ip = {
        "address": address,
        "fixed_ip": "",
        "id": id_,
        "instance_id": "",
        "pool": "public",
        "region": "RegionOne",
    }
    association = {
        "fixed_ip": "",
        "floating_ip": address,
        "id": f"{address}/{server}/",
        "instance_id": server,
        "region": "RegionOne",
        "timeouts": None,
        "wait_until_associated": None,
    }
    return (
        resource(
            module,
            "openstack_compute_floatingip_v2",
            name,
            floating_ip,
            is_counted=True,
        ),
        resource(
            module,
            "openstack_compute_floatingip_associate_v2",
            name,
            association,
            is_counted=True,
        ),
    )


def master() -> Json:
    """Return the state of a master with a floating IP."""
    return state(*addresses("module.master", "master"))


def bastion() -> Json:
    """Return the state of a base with a bastion."""
    return state(*addresses("", "bastion"))


def static(kind: str) -> Json:
    """Return the state of a node with three networks and two pools.

    kind: type of its floating IPs.
    """
    module, networks, pools = (
        "module.static-node",
        ("lab-net", "dmz", "store"),
        ("public", "second"),
    )
    ports = [{"id": f"p{number}"} for number in range(3)]
    ips = [
        {"id": f"f{number}", "address": f"192.0.2.{number}", "pool": pool}
        for number, pool in enumerate(pools)
    ]
    associations = [
        {"id": f"192.0.2.{number}/s/", "floating_ip": f"192.0.2.{number}"}
        for number in range(2)
    ]
    network = [
        {"name": name, "port": f"p{number}", "uuid": f"n{number}"}
        for number, name in enumerate(networks)
    ]
    return state(
        resource(
            module, "openstack_networking_port_v2", "port", *ports, is_counted=True
        ),
        resource(
            module,
            "openstack_compute_instance_v2",
            "node",
            {"id": "s", "network": network},
        ),
        resource(module, kind, "floating_ip", *ips, is_counted=True),
        resource(
            module,
            "openstack_compute_floatingip_associate_v2",
            "node",
            *associations,
            is_counted=True,
        ),
    )


def shown(document: Mapping[str, Any]) -> Json:
    """Return a state as `terraform show -json` prints it."""
    modules: dict[str, list[Json]] = {}
    for each in document["resources"]:
        for item in each["instances"]:
            values = {
                "mode": each["mode"],
                "type": each["type"],
                "name": each["name"],
                "values": item["attributes"],
            }
            if "index_key" in item:
                values["index"] = item["index_key"]
            modules.setdefault(each.get("module", ""), []).append(values)
    children = [
        {"address": address, "resources": items}
        for address, items in modules.items()
        if address
    ]
    root = {"resources": modules.get("", []), "child_modules": children}
    return {
        "format_version": "1.0",
        "terraform_version": "1.5.7",
        "values": {"outputs": {}, "root_module": root},
    }
