"""Blocks for a state that the reference has written, with provider 1.54. Pure.

moved.tf of each root has the addresses that are the same for each cluster. Here are
those that depend on it: types that provider 3.0 has dropped, and addresses that have a
number there and a name here.

Source: Deckhouse, cloud-provider-openstack, layouts; the addresses only. OpenTofu,
state file format 4; "JSON Output Format", values representation.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lib.layouts.openstack import blocks

Json = Mapping[str, Any]

_STATIC = "module.static-node"
_NODE = "module.static_node"
_PORT = "openstack_networking_port_v2"
_SERVER = "openstack_compute_instance_v2"
_ADDRESS = "openstack_networking_floatingip_v2"
_OLD_ADDRESS = "openstack_compute_floatingip_v2"
_ASSOCIATION = "openstack_networking_floatingip_associate_v2"
_OLD_ASSOCIATION = "openstack_compute_floatingip_associate_v2"
_MODULES = {
    ("", "bastion"): "module.bastion_floating_ip[0]",
    ("module.master", "master"): "module.floating_ip[0]",
}
"""Modules of floating IPs here, by module and name in the reference."""


@dataclasses.dataclass(frozen=True, slots=True)
class StateResource:
    """An instance of a resource in a state. index: None: it is the only one."""

    module: str
    type: str
    name: str
    index: int | str | None
    values: Json

    @property
    def address(self) -> str:
        """Without the index."""
        return ".".join(filter(None, (self.module, self.type, self.name)))

    @property
    def full_address(self) -> str:
        """With the index."""
        index = "" if self.index is None else f"[{json.dumps(self.index)}]"
        return f"{self.address}{index}"


def is_state(document: Json) -> bool:
    """Report whether a document is a state: a state file, or `tofu show -json`."""
    return _is_file(document) or "values" in document


def of_state(state: Json) -> blocks.Recovery:
    """Return the blocks for a state of the reference; without any: it needs none."""
    raw = _of_file(state) if _is_file(state) else _shown(state["values"]["root_module"])
    resources = tuple(raw)
    moves = [*_ports(resources), *_addresses(resources)]
    gone = [each for each in resources if each.type in (_OLD_ADDRESS, _OLD_ASSOCIATION)]
    forgotten = dict.fromkeys(each.address for each in gone)
    return blocks.Recovery(tuple(_imports(resources)), tuple(moves), tuple(forgotten))


def _is_file(document: Json) -> bool:
    return document.get("version") == 4 and "resources" in document


def _of_file(state: Json) -> Iterator[StateResource]:
    for resource in state["resources"]:
        if resource["mode"] != "managed":
            continue
        place = resource.get("module", ""), resource["type"], resource["name"]
        for item in resource["instances"]:
            yield StateResource(*place, item.get("index_key"), item["attributes"])


def _shown(module: Json) -> Iterator[StateResource]:
    """Yield the resources of a module and of those in it."""
    for resource in module.get("resources", ()):
        if resource["mode"] == "managed":
            yield StateResource(
                module.get("address", ""),
                resource["type"],
                resource["name"],
                resource.get("index"),
                resource["values"],
            )
    for child in module.get("child_modules", ()):
        yield from _shown(child)


def _ports(resources: tuple[StateResource, ...]) -> Iterator[blocks.MovedBlock]:
    """Yield the moves of a node's ports but the first, whose block is in moved.tf."""
    networks = {
        network["port"]: network["name"]
        for each in resources
        if each.type == _SERVER
        for network in each.values.get("network") or ()
    }
    for each in resources:
        if (each.module, each.type, each.name) != (_STATIC, _PORT, "port"):
            continue
        name = networks.get(each.values["id"])
        if each.index and name:
            module = f"{_NODE}.module.additional_port[{json.dumps(name)}]"
            yield blocks.MovedBlock(each.full_address, f"{module}.{_PORT}.port")


def _addresses(resources: tuple[StateResource, ...]) -> Iterator[blocks.MovedBlock]:
    """Yield the moves of a node's floating IPs whose type exists."""
    by_address = {}
    for each in resources:
        if (each.module, each.type) == (_STATIC, _ADDRESS):
            target = _node_module(each)
            by_address[each.values["address"]] = target
            yield blocks.MovedBlock(
                each.full_address, f"{target}.{_ADDRESS}.floating_ip[0]"
            )
    for each in resources:
        is_association = (each.module, each.type) == (_STATIC, _ASSOCIATION)
        module = by_address.get(each.values.get("floating_ip", ""))
        if is_association and module:
            yield blocks.MovedBlock(
                each.full_address, f"{module}.{_ASSOCIATION}.floating_ip"
            )


def _imports(resources: tuple[StateResource, ...]) -> Iterator[blocks.ImportBlock]:
    """Yield the imports of what has a type that is gone: the IDs are the same."""
    old = [each for each in resources if each.type == _OLD_ADDRESS]
    kept = [each for each in resources if each.type == _ADDRESS]
    associated = {
        each.values["floating_ip"]
        for each in resources
        if each.type == _OLD_ASSOCIATION
    }
    for each in (*old, *kept):
        module, id_ = _module(each), each.values["id"]
        if module and each.type == _OLD_ADDRESS:
            yield blocks.ImportBlock(f"{module}.{_ADDRESS}.floating_ip[0]", id_)
        if module and each.values["address"] in associated:
            yield blocks.ImportBlock(f"{module}.{_ASSOCIATION}.floating_ip", id_)


def _module(address: StateResource) -> str:
    if address.module == _STATIC:
        return _node_module(address)
    return _MODULES.get((address.module, address.name), "")


def _node_module(address: StateResource) -> str:
    """Return the module of a node's floating IP: its key is the pool's name."""
    pool = json.dumps(address.values["pool"])
    return f"{_NODE}.module.floating_ip[{pool}]"
