"""What a change of each field does to a cluster of layout Standard. Pure.

docs/layout-changes.md is built from this table, and a lab test plans each row.
"""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from tests.harness.layouts import inputs


class Effect(enum.StrEnum):
    """What the next apply does."""

    NONE = "none"
    IN_PLACE = "in place"
    NEW = "new nodes only"
    REPLACES = "replaces"


@dataclasses.dataclass(frozen=True, slots=True)
class FieldChange:
    """A field and its new value. step: the root whose plan it affects.

    change: of the document, by path. extra: of the root's other inputs.
    """

    effect: Effect
    step: str
    text: str
    change: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


BASE, MASTER, STATIC = inputs.STEPS
_CLASS, _GROUP = "masterNodeGroup.instanceClass", "nodeGroups.0.instanceClass"
CHANGES: Mapping[str, FieldChange] = {
    "sshPublicKey": FieldChange(
        Effect.REPLACES,
        BASE,
        "the key pair; nodes keep the key that they have",
        {"sshPublicKey": inputs.KEY.replace("B", "C")},
    ),
    "sshAllowList": FieldChange(
        Effect.IN_PLACE,
        BASE,
        "a rule for each network",
        {"sshAllowList": ["192.0.2.0/24"]},
    ),
    "tags": FieldChange(
        Effect.IN_PLACE, MASTER, "tags and metadata", {"tags": {"team": "b"}}
    ),
    "zones": FieldChange(
        Effect.NEW, MASTER, "another zone in turn", {"zones": ["az2", "az3"]}
    ),
    "masterNodeGroup.replicas": FieldChange(
        Effect.NONE,
        MASTER,
        "the installer applies or destroys a root for each",
        {"masterNodeGroup.replicas": 3},
    ),
    f"{_CLASS}.flavorName": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "a resize: the server restarts",
        {f"{_CLASS}.flavorName": "m1.small"},
    ),
    f"{_CLASS}.imageName": FieldChange(
        Effect.NEW,
        MASTER,
        "an image of another name or content",
        {f"{_CLASS}.imageName": "other"},
    ),
    f"{_CLASS}.rootDiskSize": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "the volume is expanded while attached",
        {f"{_CLASS}.rootDiskSize": 2},
    ),
    f"{_CLASS}.rootDiskSize (added or removed)": FieldChange(
        Effect.REPLACES,
        MASTER,
        "the server, which boots from another disk",
        {f"{_CLASS}.rootDiskSize": None},
    ),
    f"{_CLASS}.etcdDiskSizeGb": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "the volume is expanded while attached",
        {f"{_CLASS}.etcdDiskSizeGb": 2},
    ),
    f"{_CLASS}.additionalSecurityGroups": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "groups of the port",
        {f"{_CLASS}.additionalSecurityGroups": ["more"]},
    ),
    f"{_CLASS}.additionalTags": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "metadata of server and volumes",
        {f"{_CLASS}.additionalTags": {"a": "b"}},
    ),
    "masterNodeGroup.volumeTypeMap (another type)": FieldChange(
        Effect.NEW,
        MASTER,
        "volumes keep their type",
        {"masterNodeGroup.volumeTypeMap": {"az1": "slow", "az2": "slow"}},
    ),
    "masterNodeGroup.volumeTypeMap (a zone before the others)": FieldChange(
        Effect.NEW,
        MASTER,
        "nodes keep their zone",
        {"masterNodeGroup.volumeTypeMap": {"az2": "slow", "az3": "fast"}},
    ),
    "masterNodeGroup.serverGroup (base)": FieldChange(
        Effect.IN_PLACE,
        BASE,
        "the group is created",
        {"masterNodeGroup.serverGroup": {"policy": "AntiAffinity"}},
    ),
    "masterNodeGroup.serverGroup": FieldChange(
        Effect.NEW,
        MASTER,
        "servers keep the group that they were created in",
        {
            "masterNodeGroup.serverGroup": {
                "policy": "ManuallyManaged",
                "manuallyManaged": {"id": inputs.UUID},
            }
        },
    ),
    "nodeGroups (a group is added)": FieldChange(
        Effect.NONE,
        STATIC,
        "a root for each node; other groups stay",
        {"nodeGroups.1": {**inputs.group(), "name": "back"}},
    ),
    f"{_GROUP}.flavorName": FieldChange(
        Effect.IN_PLACE,
        STATIC,
        "a resize: the server restarts",
        {f"{_GROUP}.flavorName": "m1.small"},
    ),
    f"{_GROUP}.imageName": FieldChange(
        Effect.NEW, STATIC, "as for masters", {f"{_GROUP}.imageName": "other"}
    ),
    f"{_GROUP}.mainNetwork": FieldChange(
        Effect.REPLACES,
        STATIC,
        "the port, and the server with it",
        {f"{_GROUP}.mainNetwork": "prod"},
    ),
    f"{_GROUP}.additionalNetworks": FieldChange(
        Effect.REPLACES,
        STATIC,
        "the server: its ports are fixed",
        {f"{_GROUP}.additionalNetworks": ["prod"]},
    ),
    f"{_GROUP}.networksWithSecurityDisabled": FieldChange(
        Effect.IN_PLACE,
        STATIC,
        "groups of the port",
        {f"{_GROUP}.networksWithSecurityDisabled": ["lab-net"]},
    ),
    f"{_GROUP}.floatingIPPools": FieldChange(
        Effect.IN_PLACE,
        STATIC,
        "an address of each pool",
        {f"{_GROUP}.floatingIPPools": []},
    ),
    f"{_GROUP}.configDrive": FieldChange(
        Effect.NEW,
        STATIC,
        "servers keep what they have",
        {f"{_GROUP}.configDrive": True},
    ),
    f"{_GROUP}.additionalSecurityGroups": FieldChange(
        Effect.IN_PLACE,
        STATIC,
        "groups of the port",
        {f"{_GROUP}.additionalSecurityGroups": ["more"]},
    ),
    "nodeGroups.0.zones": FieldChange(
        Effect.NEW, STATIC, "nodes keep their zone", {"nodeGroups.0.zones": ["az3"]}
    ),
    "standard.internalNetworkCIDR": FieldChange(
        Effect.REPLACES,
        BASE,
        "the subnet; refused by Neutron while it has ports",
        {"standard.internalNetworkCIDR": "10.9.0.0/24"},
    ),
    "standard.internalNetworkDNSServers": FieldChange(
        Effect.IN_PLACE,
        BASE,
        "name servers of the subnet",
        {"standard.internalNetworkDNSServers": ["192.0.2.54"]},
    ),
    "standard.internalNetworkSecurity": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "groups and pairs of the port; apply the nodes before the base",
        {"standard.internalNetworkSecurity": False},
    ),
    "standard.bastion": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "masters lose their floating IP",
        {"standard.bastion": inputs.BASTION},
    ),
    "podSubnetCIDR": FieldChange(
        Effect.IN_PLACE,
        MASTER,
        "the address pair of the port",
        extra={
            "clusterConfiguration": {
                **inputs.cluster("prod"),
                "podSubnetCIDR": "10.112.0.0/16",
            }
        },
    ),
    "cloudConfig": FieldChange(
        Effect.NEW,
        MASTER,
        "user data is read at the first start",
        extra={"cloudConfig": "I2Nsb3Vk"},
    ),
    "resourceManagementTimeout": FieldChange(
        Effect.NONE,
        MASTER,
        "a limit of the next apply",
        extra={"resourceManagementTimeout": "20m"},
    ),
}


def changed(document: inputs.Json, change: Mapping[str, Any]) -> inputs.Json:
    """Return a copy of a document with other values; None removes a field."""
    copy: inputs.Json = _copied(document)
    for path, value in change.items():
        *parents, last = path.split(".")
        place: Any = copy
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if isinstance(place, list):
            place[int(last) :] = [value]
        elif value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return copy


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {name: _copied(item) for name, item in value.items()}
        case list():
            return [_copied(item) for item in value]
    return value
