"""Blocks that add to a state what it lacks of the cloud, after a killed apply. Pure.

An object is matched with a planned one by its kind, its name and the tag; two
kinds cannot have a tag: key pairs are compared by their key, server groups by policy.

Source: OpenTofu, "JSON Output Format", plan representation; IDs of imports:
terraform-provider-openstack 3.4, documentation of each type, "Import".
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lib.cloud import layouts
from lib.layouts.openstack import blocks

Json = Mapping[str, Any]
Objects = Sequence[layouts.ProjectObject]

_KINDS: Mapping[str, str] = {
    "openstack_compute_keypair_v2": "key pair",
    "openstack_compute_servergroup_v2": "server group",
    "openstack_networking_network_v2": "network",
    "openstack_networking_subnet_v2": "subnet",
    "openstack_networking_router_v2": "router",
    "openstack_networking_secgroup_v2": "security group",
    "openstack_networking_port_v2": "port",
    "openstack_networking_floatingip_v2": "floating IP",
    "openstack_blockstorage_volume_v3": "volume",
    "openstack_compute_instance_v2": "server",
}
"""Kinds by type; those of other types are parts of these."""
_INTERFACES = "network:router_interface"
_RULE_FIELDS = (
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
)
_FAILED = ("error", "deleted")


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource of a plan. values: planned. id: in the state; empty: not there."""

    address: str
    module: str
    type: str
    values: Json
    id: str = ""


def of_plan(plan: Json, objects: Objects) -> blocks.Recovery:
    """Return the blocks that import what a plan would create although it exists.

    plan: as `tofu show -json PLAN` prints it. objects: of the project.

    Raises:
        ValueError: the document is no plan of a root of a layout.
    """
    variables = plan.get("variables") or {}
    owner = (variables.get("clusterUUID") or {}).get("value")
    if not owner:
        raise ValueError("the plan has no variable clusterUUID: it is of no layout")
    resources = list(_resources(plan.get("resource_changes") or ()))
    return _Matching(resources, objects, str(owner)).recovery()


def _resources(changes: Iterable[Json]) -> Iterator[PlannedResource]:
    for each in changes:
        actions = each["change"]["actions"]
        if each.get("mode") != "managed" or "delete" in actions or "forget" in actions:
            continue
        values = each["change"].get("after") or {}
        id_ = "" if "create" in actions else str(values.get("id") or "")
        module = each.get("module_address", "")
        yield PlannedResource(each["address"], module, each["type"], values, id_)


class _Matching:
    """The resources of one plan, and the objects that they are."""

    def __init__(
        self, resources: Sequence[PlannedResource], objects: Objects, owner: str
    ) -> None:
        self._resources = resources
        used = {resource.id for resource in resources} - {""}
        self._objects = [each for each in objects if each.id not in used]
        self._by_id = {each.id: each for each in objects}
        self._owner = owner
        # By module and type: each module has one resource of a type that has parts.
        self._ids = {(each.module, each.type): each.id for each in resources if each.id}
        self._problems: list[str] = []

    def recovery(self) -> blocks.Recovery:
        """Match objects first, then parts, which are found by them."""
        whole = [each for each in self._resources if each.type in _KINDS]
        parts = [each for each in self._resources if each.type in _PARTS]
        imports = [*self._imports(whole), *self._imports(parts)]
        return blocks.Recovery(imports=tuple(imports), problems=tuple(self._problems))

    def _imports(
        self, resources: Iterable[PlannedResource]
    ) -> Iterator[blocks.ImportBlock]:
        for resource in resources:
            if resource.id:
                continue
            is_whole = resource.type in _KINDS
            id_ = self._whole(resource) if is_whole else self._part(resource)
            if id_:
                self._ids[resource.module, resource.type] = id_
                note = _NOTES.get(resource.type, "")
                yield blocks.ImportBlock(resource.address, id_, note)

    def _part(self, resource: PlannedResource) -> str:
        return _PARTS[resource.type](self, resource)

    def _whole(self, resource: PlannedResource) -> str:
        """Return the ID of the object that a resource is; empty: none exists."""
        kind = _KINDS[resource.type]
        some = [
            each
            for each in self._objects
            if each.kind == kind and self._is_same(resource, each)
        ]
        if len(some) > 1:
            ids = ", ".join(sorted(each.id for each in some))
            self._problems.append(
                f"{resource.address}: {kind}s {ids} are all this cluster's: delete all"
                " but one"
            )
        if len(some) != 1 or self._is_failed(resource, some[0]):
            return ""
        return some[0].id

    def _is_failed(
        self, resource: PlannedResource, item: layouts.ProjectObject
    ) -> bool:
        status = item.fields.get("status", "").lower()
        if not status.startswith(_FAILED):
            return False
        self._problems.append(
            f"{resource.address}: {item.kind} {item.id} is in status {status}: delete"
            " it; the next apply creates it"
        )
        return True

    def _is_same(self, resource: PlannedResource, item: layouts.ProjectObject) -> bool:
        values, fields = resource.values, item.fields
        if item.kind == "floating IP":
            is_named = values.get("description") == fields["description"]
            return is_named and item.owner == self._owner
        if item.name != values.get("name"):
            return False
        if item.kind == "key pair":
            return self._is_same_key(resource, item)
        if item.kind == "server group":
            return fields["policy"] in (values.get("policies") or ())
        network_id = values.get("network_id")
        if item.kind == "port" and network_id not in (None, fields["network_id"]):
            return False
        return item.owner == self._owner

    def _is_same_key(
        self, resource: PlannedResource, item: layouts.ProjectObject
    ) -> bool:
        planned, present = (
            text.split()[:2]
            for text in (resource.values["public_key"], item.fields["public_key"])
        )
        if planned != present:
            self._problems.append(
                f"{resource.address}: key pair {item.name} exists with another key:"
                " delete it, or choose another prefix"
            )
        return planned == present

    def sibling(self, resource: PlannedResource, kind: str) -> str:
        """Return the ID of the resource of a type in the same module; empty: none."""
        return self._ids.get((resource.module, kind), "")

    def interface(self, resource: PlannedResource) -> str:
        """Return the port of a router's interface."""
        router = self.sibling(resource, "openstack_networking_router_v2")
        subnet = resource.values.get("subnet_id")
        for each in self._objects:
            is_interface = each.fields.get("device_owner", "").startswith(_INTERFACES)
            if not (router and is_interface and each.fields["device_id"] == router):
                continue
            if subnet in (None, *each.fields["subnet_ids"].split()):
                return each.id
        return ""

    def rule(self, resource: PlannedResource) -> str:
        """Return the rule of a group that permits the same."""
        group = self.sibling(resource, "openstack_networking_secgroup_v2")
        expected = {
            field: str(value)
            for field in _RULE_FIELDS
            if (value := resource.values.get(field))
        }
        # Unknown before the group is known: the only rule that names no network.
        is_internal = "remote_ip_prefix" not in expected
        for each in self._objects:
            if each.kind != "rule" or each.fields["security_group_id"] != group:
                continue
            present = {
                field: each.fields[field]
                for field in _RULE_FIELDS
                if each.fields.get(field)
            }
            is_of_group = each.fields.get("remote_group_id") == group
            if present == expected and is_of_group == is_internal:
                return each.id
        return ""

    def association(self, resource: PlannedResource) -> str:
        """Return the floating IP, if it is a port's already."""
        id_ = self.sibling(resource, "openstack_networking_floatingip_v2")
        address = resource.values.get("floating_ip")
        for each in self._by_id.values():
            if each.kind == "floating IP" and (
                each.id == id_ or address and each.fields["address"] == address
            ):
                port = resource.values.get("port_id")
                is_ours = bool(each.fields["port_id"]) and port in (
                    None,
                    each.fields["port_id"],
                )
                return each.id if is_ours else ""
        return ""

    def attachment(self, resource: PlannedResource) -> str:
        """Return server and volume, if the volume is attached to that server.

        Not to a server that is imported, too: it is replaced, which ends the
        attachment. OpenTofu would detach at the same time, and stop.
        """
        volume = self.sibling(resource, "openstack_blockstorage_volume_v3")
        servers = {
            each.id
            for each in self._resources
            if each.type == "openstack_compute_instance_v2"
        }
        item = self._by_id.get(volume)
        attached = item.fields["server_ids"].split() if item else ()
        return "".join(f"{id_}/{volume}" for id_ in attached if id_ in servers)


_PARTS = {
    "openstack_networking_router_interface_v2": _Matching.interface,
    "openstack_networking_secgroup_rule_v2": _Matching.rule,
    "openstack_networking_floatingip_associate_v2": _Matching.association,
    "openstack_compute_volume_attach_v2": _Matching.attachment,
}
"""Finds a part by the objects that it belongs to."""
_NOTES: Mapping[str, str] = {
    "openstack_compute_keypair_v2": "Found by name and key: it has no tag.",
    "openstack_compute_servergroup_v2": "Found by name and policy: it has no tag.",
    # Source: provider 3.4, resource_openstack_compute_instance_v2.go, import: the ports
    # of a server are not read, and no field of a port can be changed.
    "openstack_compute_instance_v2": "The next apply replaces it: its ports cannot be"
    " imported. Its volumes stay.",
}
