"""Kinds of the parent's objects, with only the fields that are read.

A field that an object lacks is empty: the parent may be older or newer than this.

Source: deckhouse/virtualization api/core/v1alpha2; deckhouse
modules/030-cloud-provider-dvp, images/dvp-common/api (ServiceWithHealthchecks).
"""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from lib.kube import objects, resources
from lib.kube.resources import Resource

_GROUP = "virtualization.deckhouse.io"

T = TypeVar("T", bound=objects.HasMetadata)


@dataclasses.dataclass(frozen=True, slots=True)
class ParentKind(Generic[T]):
    """A kind as this program reads it.

    is_of_cluster: only objects with the label of the cluster are watched.
    """

    resource: Resource
    decode_type: type[T]
    is_of_cluster: bool = False

    @property
    def singular(self) -> str:
        """The kind in errors and in names of operations, such as "virtualdisk"."""
        return self.resource.kind.lower()


class DeviceRef(msgspec.Struct, frozen=True):
    """A reference to a disk or image."""

    kind: str = ""
    name: str = ""


class ParentCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition (metav1.Condition)."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class VmCpu(msgspec.Struct, frozen=True, rename="camel"):
    """Cores of a VM; core_fraction is empty where the class decides."""

    cores: int = 0
    core_fraction: str = ""


class VmMemory(msgspec.Struct, frozen=True):
    """Memory of a VM: a quantity, or a number of bytes."""

    size: str | int | None = None


class VmSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a VM's spec that is read."""

    virtual_machine_class_name: str = ""
    node_selector: Mapping[str, str] | None = None
    block_device_refs: tuple[DeviceRef, ...] | None = None
    cpu: VmCpu = VmCpu()
    memory: VmMemory = VmMemory()
    bootloader: str = ""
    run_policy: str = ""
    live_migration_policy: str = ""
    priority_class_name: str = ""
    tolerations: tuple[Mapping[str, object], ...] | None = None


class VmDevice(msgspec.Struct, frozen=True, rename="camel"):
    """A block device that a VM has now."""

    kind: str = ""
    name: str = ""
    attached: bool = False
    hotplugged: bool = False


class VmStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a VM's status that is read."""

    phase: str = ""
    ip_address: str = ""
    node_name: str = ""
    block_device_refs: tuple[VmDevice, ...] | None = None
    conditions: tuple[ParentCondition, ...] | None = None


class VirtualMachine(msgspec.Struct, frozen=True):
    """A VM. Texts of labels are shared: each load balancer labels all VMs."""

    metadata: objects.ObjectMeta
    spec: VmSpec = VmSpec()
    status: VmStatus = VmStatus()

    def __post_init__(self) -> None:
        labels = self.metadata.labels.items()
        shared = {sys.intern(key): sys.intern(value) for key, value in labels}
        msgspec.structs.force_setattr(self.metadata, "labels", shared)


class DiskClaim(msgspec.Struct, frozen=True, rename="camel"):
    """Size (a quantity, or a number of bytes) and storage class of a disk."""

    storage_class_name: str | None = None
    size: str | int | None = None


class DiskSource(msgspec.Struct, frozen=True, rename="camel"):
    """What a disk is created from. object_ref: an image or a snapshot."""

    object_ref: DeviceRef | None = None


class DiskSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a disk's spec that is read. data_source: None: it is blank."""

    persistent_volume_claim: DiskClaim = DiskClaim()
    data_source: DiskSource | None = None


class DiskAttachment(msgspec.Struct, frozen=True):
    """A VM that a disk is attached to."""

    name: str = ""
    mounted: bool = False


class DiskTarget(msgspec.Struct, frozen=True, rename="camel"):
    """Where the parent keeps a disk."""

    persistent_volume_claim_name: str = ""


class DiskStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a disk's status that is read."""

    phase: str = ""
    progress: str = ""
    capacity: str = ""
    storage_class_name: str = ""
    target: DiskTarget = DiskTarget()
    attached_to_virtual_machines: tuple[DiskAttachment, ...] | None = None
    conditions: tuple[ParentCondition, ...] | None = None
    observed_generation: int = 0


class VirtualDisk(msgspec.Struct, frozen=True):
    """A disk."""

    metadata: objects.ObjectMeta
    spec: DiskSpec = DiskSpec()
    status: DiskStatus = DiskStatus()


class AttachmentSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which device is attached to which VM."""

    virtual_machine_name: str = ""
    block_device_ref: DeviceRef = DeviceRef()


class AttachmentStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an attachment's status that is read."""

    phase: str = ""
    conditions: tuple[ParentCondition, ...] | None = None
    observed_generation: int = 0


class DiskAttachmentRequest(msgspec.Struct, frozen=True):
    """A VirtualMachineBlockDeviceAttachment: a device hot-plugged to a VM."""

    metadata: objects.ObjectMeta
    spec: AttachmentSpec = AttachmentSpec()
    status: AttachmentStatus = AttachmentStatus()


class ParentPort(msgspec.Struct, frozen=True, rename="camel"):
    """A port of a Service of the parent."""

    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0


class ParentTcpProbe(msgspec.Struct, frozen=True, rename="camel"):
    """Where a probe connects to."""

    target_port: int | str | None = None


class ParentProbe(msgspec.Struct, frozen=True, rename="camel"):
    """A probe of a ServiceWithHealthchecks."""

    mode: str = ""
    tcp: ParentTcpProbe | None = None


class ParentHealthcheck(msgspec.Struct, frozen=True, rename="camel"):
    """The probes of a ServiceWithHealthchecks; their times are not read."""

    probes: tuple[ParentProbe, ...] | None = None


class ParentServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the spec that a Service and a ServiceWithHealthchecks share.

    load_balancer_source_ranges: of a Service. healthcheck: of the other one.
    """

    type: str = ""
    selector: Mapping[str, str] | None = None
    ports: tuple[ParentPort, ...] | None = None
    external_traffic_policy: str = ""
    external_ips: tuple[str, ...] | None = msgspec.field(
        default=None, name="externalIPs"
    )
    load_balancer_class: str | None = None
    load_balancer_ip: str = msgspec.field(default="", name="loadBalancerIP")
    load_balancer_source_ranges: tuple[str, ...] | None = None
    healthcheck: ParentHealthcheck | None = None


class ParentIngressPort(msgspec.Struct, frozen=True):
    """A port of an address of a load balancer."""

    port: int = 0
    protocol: str = ""
    error: str | None = None


class ParentIngress(msgspec.Struct, frozen=True, rename="camel"):
    """An address of a load balancer."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: tuple[ParentIngressPort, ...] | None = None


class ParentLoadBalancer(msgspec.Struct, frozen=True):
    """Addresses of a load balancer."""

    ingress: tuple[ParentIngress, ...] | None = None


class ParentServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Service's status that is read."""

    load_balancer: ParentLoadBalancer = ParentLoadBalancer()
    conditions: tuple[ParentCondition, ...] | None = None


class ParentOwner(msgspec.Struct, frozen=True):
    """An owner of an object (metav1.OwnerReference)."""

    kind: str = ""
    name: str = ""


class ParentServiceMeta(objects.ObjectMeta, frozen=True, rename="camel"):
    """Metadata with the owners, of which the parent's garbage collector takes care."""

    owner_references: tuple[ParentOwner, ...] = ()


class ParentService(msgspec.Struct, frozen=True):
    """A Service or a ServiceWithHealthchecks of the parent."""

    metadata: ParentServiceMeta
    spec: ParentServiceSpec = ParentServiceSpec()
    status: ParentServiceStatus = ParentServiceStatus()


class ParentStorageClass(msgspec.Struct, frozen=True, rename="camel"):
    """A StorageClass of the parent."""

    metadata: objects.ObjectMeta
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allow_volume_expansion: bool | None = None


class ClassStatus(msgspec.Struct, frozen=True):
    """The part of a class's status that is read."""

    phase: str = ""


class VirtualMachineClass(msgspec.Struct, frozen=True):
    """A class of VMs."""

    metadata: objects.ObjectMeta
    status: ClassStatus = ClassStatus()


class ImageSize(msgspec.Struct, frozen=True, rename="camel"):
    """Size of an image; unpacked_bytes: of the disk that it contains."""

    unpacked_bytes: str | int | None = None


class ImageStatus(msgspec.Struct, frozen=True):
    """The part of the status of an image, or of a snapshot, that is read."""

    phase: str = ""
    size: ImageSize | None = None


class DiskImage(msgspec.Struct, frozen=True):
    """An image, or a snapshot, that a disk can be created from."""

    metadata: objects.ObjectMeta
    status: ImageStatus = ImageStatus()


class ParentSecret(msgspec.Struct, frozen=True):
    """A Secret of the parent; its data is not read."""

    metadata: objects.ObjectMeta
    type: str = ""


VIRTUAL_MACHINES = ParentKind(
    Resource(_GROUP, "v1alpha2", "virtualmachines", "VirtualMachine", True),
    VirtualMachine,
    is_of_cluster=True,
)
VIRTUAL_DISKS = ParentKind(
    Resource(_GROUP, "v1alpha2", "virtualdisks", "VirtualDisk", True),
    VirtualDisk,
    is_of_cluster=True,
)
DISK_ATTACHMENTS = ParentKind(
    Resource(
        _GROUP,
        "v1alpha2",
        "virtualmachineblockdeviceattachments",
        "VirtualMachineBlockDeviceAttachment",
        True,
    ),
    DiskAttachmentRequest,
    is_of_cluster=True,
)
SERVICES = ParentKind(resources.SERVICES, ParentService)
HEALTHCHECKED_SERVICES = ParentKind(
    Resource(
        "network.deckhouse.io",
        "v1alpha1",
        "servicewithhealthchecks",
        "ServiceWithHealthchecks",
        True,
    ),
    ParentService,
)
STORAGE_CLASSES = ParentKind(resources.STORAGE_CLASSES, ParentStorageClass)
MACHINE_CLASSES = ParentKind(
    Resource(_GROUP, "v1alpha3", "virtualmachineclasses", "VirtualMachineClass", False),
    VirtualMachineClass,
)
OLD_MACHINE_CLASSES = dataclasses.replace(MACHINE_CLASSES.resource, version="v1alpha2")
"""Of platforms that do not serve v1alpha3, see `served_versions.py`."""
VIRTUAL_IMAGES = ParentKind(
    Resource(_GROUP, "v1alpha2", "virtualimages", "VirtualImage", True), DiskImage
)
CLUSTER_IMAGES = ParentKind(
    Resource(_GROUP, "v1alpha2", "clustervirtualimages", "ClusterVirtualImage", False),
    DiskImage,
)
DISK_SNAPSHOTS = ParentKind(
    Resource(_GROUP, "v1alpha2", "virtualdisksnapshots", "VirtualDiskSnapshot", True),
    DiskImage,
)
SECRETS = ParentKind(resources.SECRETS, ParentSecret, is_of_cluster=True)
