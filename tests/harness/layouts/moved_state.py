"""States as the reference's layouts have them: their addresses, from ours. Pure.

Floating IPs are omitted: provider 3.0 has dropped their types.

Source: Deckhouse, cloud-provider-openstack, layouts; the addresses only.
"""

from collections.abc import Mapping
from typing import Any

from tests.harness.layouts import inputs

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
