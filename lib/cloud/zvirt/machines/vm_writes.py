"""The writes of a machine, each a step that can be printed. Pure."""

import dataclasses

from lib.cloud.machines import Bootstrap
from lib.cloud.steps import Step, Verb
from lib.cloud.zvirt.machines.desired_vm import DesiredNic, DesiredVm
from lib.cloud.zvirt.machines.engine_vm import VmIdentity


@dataclasses.dataclass(frozen=True, slots=True)
class CreateVm:
    """Create the VM, with its ownership tag. template, disk: IDs."""

    machine: VmIdentity
    desired: DesiredVm
    template: str
    disk: str
    bootstrap: Bootstrap


@dataclasses.dataclass(frozen=True, slots=True)
class TagVm:
    """Add the ownership tag to a VM of the reference, which is not complete."""

    vm: str
    description: str


@dataclasses.dataclass(frozen=True, slots=True)
class PrepareDisk:
    """Expand the boot disk and give it its ownership tag. size: 0: as it is."""

    vm: str
    disk: str
    description: str
    size: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class AddNic:
    """Add a NIC to a VM."""

    vm: str
    nic: DesiredNic


@dataclasses.dataclass(frozen=True, slots=True)
class CreateTag:
    """Create a tag."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class AssignTag:
    """Assign a tag to a VM."""

    vm: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class StartVm:
    """Start a VM."""

    vm: str


@dataclasses.dataclass(frozen=True, slots=True)
class StopVm:
    """Power a VM off: guests of Kubernetes Nodes inhibit a shutdown."""

    vm: str


@dataclasses.dataclass(frozen=True, slots=True)
class DetachDisk:
    """Detach a disk of others."""

    vm: str
    disk: str


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveVm:
    """Remove a VM and keep all its disks; with_disks: the boot disk is lost with it.

    The engine refuses to keep the disks of a VM that depends on its template or has
    snapshots. Then nothing but the boot disk may be attached, which is read immediately
    before. boot_disk: its ID; empty: it has none.
    """

    vm: str
    boot_disk: str
    with_disks: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveDisk:
    """Remove the boot disk of a VM that is deleted, if no other VM uses it by now."""

    machine: VmIdentity
    disk: str


VmWrite = (
    CreateVm
    | TagVm
    | PrepareDisk
    | AddNic
    | CreateTag
    | AssignTag
    | StartVm
    | StopVm
    | DetachDisk
    | RemoveVm
    | RemoveDisk
)
_NOT_REPEATABLE = (CreateVm, AddNic)
"""A second one would have an effect of its own, or be refused as a failure."""


def of(step: Step) -> VmWrite:
    """Return the request of a step."""
    native = step.native
    if not isinstance(native, VmWrite):
        raise TypeError(f"not of this cloud: {step!r}")
    return native


def step(
    verb: Verb,
    name: str,
    write: VmWrite,
    why: str,
    part: str = "",
    *,
    is_gated: bool = True,
) -> Step:
    """Return a step. name: of the VM. part: of it; empty: the VM itself."""
    path = (f"VM {name}", *((part,) if part else ()))
    is_repeatable = not isinstance(write, _NOT_REPEATABLE)
    return Step(verb, path, why, write, is_gated=is_gated, is_repeatable=is_repeatable)
