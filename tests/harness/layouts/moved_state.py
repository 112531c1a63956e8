"""States as the reference's layouts have them: their addresses, from ours. Pure.

Floating IPs are omitted: provider 3.0 has dropped their types.

Source: Deckhouse, cloud-provider-openstack, layouts; the addresses only.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.harness.layouts import inputs

_PROVIDER = 'provider["registry.opentofu.org/terraform-provider-openstack/openstack"]'
_SECURITY = "module.network_security"
_STATIC = "module.static_node.module"
# Module and name here; module, name and whether there is an index in the reference.
_Addresses = Mapping[tuple[str, str], tuple[str, str, bool]]
_ADDRESSES: Mapping[str, _Addresses] = {
    inputs.BASE: {
        (f"{_SECURITY}[0]", "kube"): (_SECURITY, "kube", True),
        (f"{_SECURITY}[0]", "allow_icmp"): (_SECURITY, "allow_icmp", True),
        (f"{_SECURITY}[0]", "allow_node_ports"): (_SECURITY, "allow_node_ports", True),
        (f"{_SECURITY}[0]", "allow_internal_communication"): (
            _SECURITY,
            "allow_internal_communication",
            True,
        ),
        (f"{_SECURITY}[0]", "allow_ssh"): (_SECURITY, "allow_ssh", False),
        ("module.network", "internal"): ("", "internal", False),
        ("module.router", "router"): ("", "router", False),
        ("module.keypair", "ssh"): ("module.keypair", "ssh", False),
    },
    inputs.MASTER: {
        ("module.port", "port"): ("", "master_internal_with_security", True),
        ("module.master", "root"): ("module.master", "master", True),
        ("module.master", "server"): ("module.master", "master", False),
        ("module.kubernetes_data", "kubernetes_data"): (
            "module.kubernetes_data",
            "kubernetes_data",
            False,
        ),
    },
    inputs.STATIC: {
        (f"{_STATIC}.main_port", "port"): ("module.static-node", "port", True),
        (f"{_STATIC}.server", "root"): ("module.static-node", "volume", True),
        (f"{_STATIC}.server", "server"): ("module.static-node", "node", False),
    },
}


def of(step: str, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state of a step with the reference's addresses."""
    resources = [
        moved
        for resource in state["resources"]
        if (moved := _moved(_ADDRESSES[step], resource)) is not None
    ]
    return {**state, "resources": resources, "outputs": {}}


def node_additions(state: Mapping[str, Any]) -> Iterator[inputs.Json]:
    """Yield what a node's state has that depends on its group, as the reference has it.

    Ports of additional networks and floating IPs by number; associations of a type
    that is gone. state: ours.
    """
    kinds = {
        "openstack_networking_port_v2": ("module.additional_port", "port", 1),
        "openstack_networking_floatingip_v2": ("module.floating_ip", "floating_ip", 0),
    }
    by_kind: dict[str, list[inputs.Json]] = {}
    for resource in state["resources"]:
        module = resource.get("module", "")
        prefix = kinds.get(resource["type"], ("no", "", 0))[0]
        if f".{prefix}[" in module and resource["mode"] == "managed":
            by_kind.setdefault(resource["type"], []).extend(resource["instances"])
    for kind, items in by_kind.items():
        _, name, first = kinds[kind]
        instances = [
            {**item, "index_key": first + number} for number, item in enumerate(items)
        ]
        place = {"module": "module.static-node", "mode": "managed", "type": kind}
        yield {
            **place,
            "name": name,
            "provider": _PROVIDER,
            "instances": instances,
        }
    addresses = [
        item["attributes"]["address"]
        for item in by_kind["openstack_networking_floatingip_v2"]
    ]
    yield {
        "module": "module.static-node",
        "mode": "managed",
        "type": "openstack_compute_floatingip_associate_v2",
        "name": "node",
        "provider": _PROVIDER,
        "instances": [
            {
                "index_key": number,
                "schema_version": 0,
                "attributes": {"id": f"{address}/s/", "floating_ip": address},
            }
            for number, address in enumerate(addresses)
        ],
    }


def _moved(addresses: _Addresses, resource: inputs.Json) -> inputs.Json | None:
    key = (resource.get("module", ""), resource["name"])
    if resource["mode"] != "managed" or key not in addresses:
        return None
    module, name, is_counted = addresses[key]
    instances = [
        {
            # Rules of SSH have the network as their key in both.
            **item,
            **({"index_key": 0} if is_counted else {}),
        }
        for item in resource["instances"]
    ]
    for item in instances:
        for device in item["attributes"].get("block_device") or ():
            # The reference has Nova delete the volume.
            device["delete_on_termination"] = True
    moved = {**resource, "module": module, "name": name, "instances": instances}
    if not module:
        del moved["module"]
    return moved
