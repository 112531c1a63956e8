"""What the engine has for a machine. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping

from lib.cloud.machines import Observed
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.machines import vm_tags

BLANK = "00000000-0000-0000-0000-000000000000"
"""ID of the template that a clone is reported with."""
ILLEGAL = ""
"""A VM whose copy has failed is reported without a status."""
LOCKED = "image_locked"
UP = "up"
DOWN = "down"


@dataclasses.dataclass(frozen=True, slots=True)
class VmIdentity:
    """How the VM of a machine is recognized.

    name: of the VM, which is that of the Machine. template: its name, as in the spec.
    vm_id, boot_disk: as recorded; empty: none.
    """

    cluster_id: str
    uid: str
    name: str
    template: str = ""
    vm_id: str = ""
    boot_disk: str = ""

    @property
    def tag(self) -> str:
        """Name of the tag that the reference assigns to VMs of the cluster."""
        return f"cluster-{self.cluster_id}"


@dataclasses.dataclass(frozen=True, slots=True)
class AttachedDisk:
    """A disk of a VM."""

    id: str
    name: str
    status: str
    size: int
    is_bootable: bool
    description: str


@dataclasses.dataclass(frozen=True, slots=True)
class VmPrerequisites:
    """What a creation refers to. Items: as far as they exist.

    templates: those of the name, in the data center of the cluster. disk: the boot
    disk of the template that is used. offered: names or IDs that exist, by field.
    """

    cluster: Item | None = None
    templates: tuple[Item, ...] = ()
    profiles: Mapping[str, Item] = dataclasses.field(default_factory=dict)
    domains: Mapping[str, str] = dataclasses.field(default_factory=dict)
    offered: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class EngineVm:
    """All that the engine has for one machine.

    named: another VM of its name. is_adoptable: the reference has created that for
    this machine, and has not recorded it. left: the boot disk of a VM that is deleted.
    tags: names of the tags that exist. prerequisites: None: not needed.
    """

    machine: VmIdentity
    vm: Item | None = None
    named: Item | None = None
    is_adoptable: bool = False
    left: Item | None = None
    tags: frozenset[str] = frozenset()
    prerequisites: VmPrerequisites | None = None

    @property
    def is_empty(self) -> bool:
        """Report whether nothing that the machine may own exists."""
        return self.vm is None and self.left is None


def of(observed: Observed) -> EngineVm:
    """Return the native part of an observation."""
    if not isinstance(observed.native, EngineVm):
        raise TypeError("the observation is of another provider package")
    return observed.native


def disks(vm: Item) -> tuple[AttachedDisk, ...]:
    """Return the disks of a VM."""
    return tuple(_disks(vm))


def _disks(vm: Item) -> Iterator[AttachedDisk]:
    for attachment in vm.entity.disk_attachments or ():
        disk = attachment.disk
        if disk is None:
            continue
        status = getattr(disk.status, "value", "") if disk.status else ""
        yield AttachedDisk(
            str(disk.id),
            str(disk.alias or disk.name or disk.id),
            status,
            int(disk.provisioned_size or 0),
            bool(attachment.bootable),
            str(disk.description or ""),
        )


def boot_disk(native: EngineVm) -> AttachedDisk | None:
    """Return the boot disk of the machine's VM; None: it is not certain which one is.

    That which is recorded, or has the tag of the machine; before that, the only
    bootable disk, as long as it has no other owner. A disk of others is never one.
    """
    if native.vm is None:
        return None
    machine, rows = native.machine, disks(native.vm)
    for disk in rows:
        if disk.id == machine.boot_disk or is_tagged(machine, disk.description):
            return disk if is_own(machine, disk.description) else None
    usable = [d for d in rows if d.is_bootable and vm_tags.is_free(d.description)]
    return usable[0] if len(usable) == 1 else None


def is_tagged(machine: VmIdentity, description: str | None) -> bool:
    """Report whether a description has the tag of a machine."""
    uid = vm_tags.uid_of(description, machine.cluster_id)
    return bool(uid) and uid == machine.uid


def is_own(machine: VmIdentity, description: str | None) -> bool:
    """Report whether a description names this machine, or no owner at all."""
    return is_tagged(machine, description) or vm_tags.is_free(description)


def tag_names(vm: Item) -> frozenset[str]:
    """Return the names of the tags that are assigned to a VM."""
    return frozenset(str(tag.name) for tag in vm.entity.tags or ())


def has_run(vm: Item) -> bool:
    """Report whether a VM was ever started."""
    entity = vm.entity
    is_running = vm.status not in (DOWN, LOCKED, ILLEGAL)
    return is_running or bool(entity.start_time or entity.stop_time)


def is_linked(vm: Item) -> bool:
    """Report whether a VM depends on its template: its disks cannot be kept."""
    template = vm.entity.template
    return template is not None and template.id not in (None, BLANK)
