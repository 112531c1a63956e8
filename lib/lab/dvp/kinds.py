"""The kinds of objects that a parent cluster serves, and how the simulator reads them.

Source: API of the platform's virtualization module: scope and names.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lib.kube import objects, resources
from lib.kube.resources import Resource

Json = dict[str, Any]

GROUP = "virtualization.deckhouse.io"
VERSION = "v1alpha2"
NETWORK_GROUP = "network.deckhouse.io"


def _kind(plural: str, kind: str, *, is_namespaced: bool = True) -> Resource:
    return Resource(GROUP, VERSION, plural, kind, is_namespaced)


MACHINES = _kind("virtualmachines", "VirtualMachine")
DISKS = _kind("virtualdisks", "VirtualDisk")
ATTACHMENTS = _kind(
    "virtualmachineblockdeviceattachments", "VirtualMachineBlockDeviceAttachment"
)
IMAGES = _kind("virtualimages", "VirtualImage")
CLUSTER_IMAGES = _kind(
    "clustervirtualimages", "ClusterVirtualImage", is_namespaced=False
)
CLASSES = _kind("virtualmachineclasses", "VirtualMachineClass", is_namespaced=False)
ADDRESSES = _kind("virtualmachineipaddresses", "VirtualMachineIPAddress")
ADDRESS_LEASES = _kind(
    "virtualmachineipaddressleases", "VirtualMachineIPAddressLease", is_namespaced=False
)
OPERATIONS = _kind("virtualmachineoperations", "VirtualMachineOperation")
CHECKED_SERVICES = Resource(
    NETWORK_GROUP,
    "v1alpha1",
    "servicewithhealthchecks",
    "ServiceWithHealthchecks",
    True,
)

NODES = resources.NODES
VOLUMES = resources.PERSISTENT_VOLUMES

SIMULATED = (
    MACHINES,
    DISKS,
    ATTACHMENTS,
    IMAGES,
    CLUSTER_IMAGES,
    CLASSES,
    ADDRESSES,
    OPERATIONS,
)
"""Kinds of virtualization whose objects the simulator moves."""

WATCHED = (
    *SIMULATED,
    resources.SERVICES,
    resources.ENDPOINT_SLICES,
    resources.PODS,
    resources.CLAIMS,
    resources.STORAGE_CLASSES,
    resources.SECRETS,
    resources.CONFIG_MAPS,
    NODES,
    VOLUMES,
)
"""All kinds that the simulator reads; CHECKED_SERVICES besides, where served."""


class Item(msgspec.Struct, frozen=True):
    """One object of any kind; parts that its kind does not have are empty."""

    metadata: objects.ObjectMeta
    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)
    type: str = ""
    data: Json | None = None
    endpoints: tuple[Json, ...] | None = None
    provisioner: str = ""
    binding: str = msgspec.field(default="", name="volumeBindingMode")
    is_expandable: bool = msgspec.field(default=False, name="allowVolumeExpansion")

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for a kind without one."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The object's UID."""
        return self.metadata.uid

    @property
    def phase(self) -> str:
        """The object's phase; empty before the first transition."""
        return str(self.status.get("phase", ""))

    @property
    def is_ending(self) -> bool:
        """Whether the object is being deleted."""
        return self.metadata.deletion_timestamp is not None


Items = Mapping[str, Item]
"""Objects of a kind by "namespace/name", or by name."""


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """All that the simulator has read: objects of each kind."""

    by_kind: Mapping[Resource, Items]

    def of(self, kind: Resource) -> Items:
        """Return the objects of a kind."""
        return self.by_kind.get(kind, {})

    def get(self, kind: Resource, namespace: str, name: str) -> Item | None:
        """Return an object; None when there is none."""
        return self.of(kind).get(f"{namespace}/{name}" if kind.namespaced else name)

    def within(self, kind: Resource, namespace: str) -> Sequence[Item]:
        """Return the objects of a kind in a namespace."""
        items = self.of(kind).values()
        return [item for item in items if item.namespace == namespace]
