"""What the parent holds for a machine. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping

from lib.cloud.dvp.kinds import (
    DiskAttachmentRequest,
    DiskImage,
    ParentCondition,
    ParentSecret,
    ParentStorageClass,
    VirtualDisk,
    VirtualMachine,
    VirtualMachineClass,
)
from lib.cloud.dvp.machines.desired_machine import DesiredMachine
from lib.cloud.dvp.machines.machine_ownership import MachineIdentity, is_owned
from lib.cloud.machines import Observed

NEW = ("", "Pending")
"""Phases of a VM that may never have run."""
ALIVE = ("Running", "Migrating", "Pause", "Stopping")
"""Phases of a VM that has run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prerequisites:
    """What a VM and its disks refer to, as far as it exists.

    storage_classes: by name. offered: names that exist, by the field that needs one.
    """

    machine_class: VirtualMachineClass | None = None
    image: DiskImage | None = None
    storage_classes: Mapping[str, ParentStorageClass] = dataclasses.field(
        default_factory=dict
    )
    offered: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ParentMachine:
    """All that the parent holds for one machine, and objects with its names.

    disks: by name, as far as a part or an owner label shows this machine.
    attachments: of the VM. refused_s: for how many seconds the parent has refused to
    delete an attachment, by its name. prerequisites: None: not needed. selectable:
    kinds of which no other object has the labels that those of this machine have, so
    that one request may delete them all.
    """

    machine: MachineIdentity
    vm: VirtualMachine | None = None
    disks: Mapping[str, VirtualDisk] = dataclasses.field(default_factory=dict)
    secret: ParentSecret | None = None
    attachments: tuple[DiskAttachmentRequest, ...] = ()
    refused_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    prerequisites: Prerequisites | None = None
    selectable: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Report whether there is no object of these names."""
        return self.vm is None and not self.disks and self.secret is None


def of(observed: Observed) -> ParentMachine:
    """Return the native part of an observation."""
    if not isinstance(observed.native, ParentMachine):
        raise TypeError("the observation is of another provider package")
    return observed.native


def missing_disks(native: ParentMachine, desired: DesiredMachine) -> tuple[str, ...]:
    """Return the names of disks that the VM refers to, or is to, and that are absent.

    Disks of an existing VM are those of its own spec: a changed spec adds none.
    """
    names: Iterable[str] = (disk.name for disk in desired.disks)
    if native.vm is not None:
        own = {ref.name for ref in native.vm.spec.block_device_refs or ()}
        names = (name for name in names if name in own)
    return tuple(name for name in names if name not in native.disks)


def is_new(native: ParentMachine, desired: DesiredMachine) -> bool:
    """Report whether the VM has never run, so that its parts may be created.

    A VM of the reference gets our labels once all its parts exist: until then the
    recorded ID shows nothing, since the reference records it early.
    """
    vm = native.vm
    if vm is None:
        return not desired.is_recorded
    is_unused = vm.status.phase in NEW and not vm.status.node_name
    is_adopted = is_owned(native.machine, vm.metadata)
    return is_unused and not (desired.is_recorded and is_adopted)


def needs_prerequisites(native: ParentMachine, desired: DesiredMachine) -> bool:
    """Report whether a VM or a disk is to be created."""
    if not is_new(native, desired):
        return False
    return native.vm is None or bool(missing_disks(native, desired))


def condition(
    conditions: Iterable[ParentCondition] | None, type_: str
) -> ParentCondition | None:
    """Return the condition of a type; None without one."""
    return next((row for row in conditions or () if row.type == type_), None)
