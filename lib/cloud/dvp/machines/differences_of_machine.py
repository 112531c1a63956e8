"""How a VM and its disks differ from the spec of their machine. Pure.

Two policies are applied in place. Every other difference is reported and changes
nothing: Cluster API replaces a machine whose spec has changed. What the spec does not
set is as the parent has it.
"""

import dataclasses
from collections.abc import Iterator, Mapping

from lib.cloud.dvp import kinds, quantity_bytes
from lib.cloud.dvp.machines import desired_machine, machine_names
from lib.cloud.dvp.machines.desired_machine import DesiredDisk, DesiredMachine
from lib.cloud.dvp.machines.machine_documents import DISK_KIND
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.explained import FieldChange
from lib.cloud.steps import CommonReason, Problem
from lib.process import config


@dataclasses.dataclass(frozen=True, slots=True)
class MachineDifference:
    """One field of the machine's spec, with the value of the VM."""

    field: str
    desired: str
    observed: str

    @property
    def problem(self) -> Problem:
        """The difference for people."""
        has = config.quoted(self.observed) if self.observed else "none"
        text = (
            f"{config.quoted(self.desired)} differs from the VM, which has {has}:"
            " must be changed by a new machine"
        )
        stated = config.stated(f"spec.{self.field}", text)
        return Problem(CommonReason.IMMUTABLE, str(stated))


def in_place(
    desired: DesiredMachine, vm: kinds.VirtualMachine
) -> tuple[FieldChange, ...]:
    """Return the fields of the VM that are changed in place."""
    pairs = (
        ("runPolicy", vm.spec.run_policy, desired.run_policy),
        (
            "liveMigrationPolicy",
            vm.spec.live_migration_policy,
            desired.live_migration_policy,
        ),
    )
    return tuple(
        FieldChange(f"spec.{name}", old, new, f"spec.{name}")
        for name, old, new in pairs
        if new and new != old
    )


def of(desired: DesiredMachine, native: ParentMachine) -> tuple[MachineDifference, ...]:
    """Return all differences that are only reported."""
    if native.vm is None:
        return ()
    return (
        *_of_spec(desired, native.vm),
        *_of_placement(desired, native.vm),
        *_of_metadata(desired, native.vm),
        *_of_disks(desired, native),
    )


def _of_spec(
    desired: DesiredMachine, vm: kinds.VirtualMachine
) -> Iterator[MachineDifference]:
    spec = vm.spec
    pairs = (
        ("vmClassName", desired.class_name, spec.virtual_machine_class_name),
        ("cpu.cores", str(desired.cores), str(spec.cpu.cores)),
        ("bootloader", desired.bootloader, spec.bootloader or desired.bootloader),
        (
            "cpu.cpuFraction",
            desired.core_fraction,
            spec.cpu.core_fraction or desired.core_fraction,
        ),
    )
    for field, new, old in pairs:
        if new != old:
            yield MachineDifference(field, new, old)
    yield from _of_size("memory", desired.memory, spec.memory.size)


def _of_size(
    field: str, desired: str, observed: str | int | None
) -> Iterator[MachineDifference]:
    old = quantity_bytes.size_bytes(observed)
    if old and old != quantity_bytes.size_bytes(desired):
        yield MachineDifference(field, desired, str(observed))


def _of_placement(
    desired: DesiredMachine, vm: kinds.VirtualMachine
) -> Iterator[MachineDifference]:
    selector = vm.spec.node_selector or {}
    for key, value in desired.selector.items():
        if selector.get(key) != value:
            is_zone = key == machine_names.ZONE and desired.zone
            field = "failureDomain" if is_zone else f"nodeSelector[{key}]"
            yield MachineDifference(field, value, selector.get(key, ""))
    present = {
        desired_machine.canonical(toleration)
        for toleration in vm.spec.tolerations or ()
    }
    for toleration in desired.tolerations:
        if toleration not in present:
            observed = ", ".join(sorted(present))
            yield MachineDifference("tolerations", toleration, observed)
    priority = vm.spec.priority_class_name
    if desired.priority_class and desired.priority_class != priority:
        yield MachineDifference("priorityClassName", desired.priority_class, priority)


def _of_metadata(
    desired: DesiredMachine, vm: kinds.VirtualMachine
) -> Iterator[MachineDifference]:
    yield from _of_words("additionalLabels", desired.labels, vm.metadata.labels)
    present = vm.metadata.annotations
    yield from _of_words("additionalAnnotations", desired.annotations, present)


def _of_words(
    field: str, desired: tuple[tuple[str, str], ...], observed: Mapping[str, str]
) -> Iterator[MachineDifference]:
    for key, value in desired:
        if observed.get(key) != value:
            yield MachineDifference(f"{field}[{key}]", value, observed.get(key, ""))


def _of_disks(
    desired: DesiredMachine, native: ParentMachine
) -> Iterator[MachineDifference]:
    """Yield differences of the disks that exist, and of their number."""
    for disk in desired.disks:
        existing = native.disks.get(disk.name)
        if existing is not None:
            yield from _of_disk(disk, existing)
    boot = native.disks.get(desired.disks[0].name)
    if boot is not None:
        yield from _of_image(desired, boot)
    new = len(desired.disks) - 1
    old = len(_additional(desired.name, native))
    if new != old:
        yield MachineDifference("additionalDisks", f"{new} disks", f"{old} disks")


def _additional(name: str, native: ParentMachine) -> frozenset[str]:
    """Return the additional disks of a VM: of its spec, or hot-plugged."""
    if native.vm is None:
        return frozenset()
    rows = (
        *(native.vm.spec.block_device_refs or ()),
        *(row.spec.block_device_ref for row in native.attachments),
    )
    boot = machine_names.boot_disk(name)
    return frozenset(
        row.name
        for row in rows
        if row.kind == DISK_KIND
        and row.name != boot
        and machine_names.is_disk_of(name, row.name)
    )


def _of_disk(
    disk: DesiredDisk, existing: kinds.VirtualDisk
) -> Iterator[MachineDifference]:
    claim = existing.spec.persistent_volume_claim
    yield from _of_size(disk.field.removeprefix("spec."), disk.size, claim.size)
    old = claim.storage_class_name or existing.status.storage_class_name
    if old and old != disk.storage_class:
        field = disk.class_field.removeprefix("spec.")
        yield MachineDifference(field, disk.storage_class, old)


def _of_image(
    desired: DesiredMachine, boot: kinds.VirtualDisk
) -> Iterator[MachineDifference]:
    source = boot.spec.data_source
    reference = source.object_ref if source is not None else None
    if reference is None:
        return
    new, old = " ".join(desired.image), f"{reference.kind} {reference.name}"
    if new != old:
        yield MachineDifference("bootDiskImageRef", new, old)
