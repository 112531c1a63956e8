"""How a VM that has run differs from the spec of its machine. Pure.

Every difference is reported and changes nothing: Cluster API replaces a machine whose
spec has changed. The reference deletes a VM that has a second NIC.
"""

from collections.abc import Iterator

from lib.cloud.steps import CommonReason, Problem
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.machines import engine_vm
from lib.cloud.zvirt.machines.desired_vm import DesiredVm
from lib.process import config

GIB = 1 << 30
MIB = 1 << 20


def of(desired: DesiredVm, native: engine_vm.EngineVm) -> tuple[Problem, ...]:
    """Return one problem for each difference, with its field."""
    vm = native.vm
    if vm is None or not engine_vm.has_run(vm):
        return ()
    rows = (*_numbers(desired, vm), *_nics(desired, vm), *_disk(desired, native))
    return tuple(_problem(field, asked, has) for field, asked, has in rows)


def _problem(field: str, asked: str, has: str) -> Problem:
    text = f"{asked} differs from the VM, which has {has}: must be changed by a new"
    return Problem(CommonReason.IMMUTABLE, str(config.stated(field, f"{text} machine")))


def _numbers(desired: DesiredVm, vm: Item) -> Iterator[tuple[str, str, str]]:
    memory = (vm.entity.memory or 0) // MIB
    if memory != desired.memory_mib:
        yield "spec.memory", f"{desired.memory_mib} MiB", f"{memory} MiB"
    topology = vm.entity.cpu.topology if vm.entity.cpu is not None else None
    if topology is None:
        return
    for name, asked in (
        ("sockets", desired.sockets),
        ("cores", desired.cores),
        ("threads", desired.threads),
    ):
        has = getattr(topology, name) or 1
        if has != asked:
            yield f"spec.cpu.{name}", str(asked), str(has)


def _nics(desired: DesiredVm, vm: Item) -> Iterator[tuple[str, str, str]]:
    profiles = {
        str(nic.name): str(nic.vnic_profile.id) if nic.vnic_profile else ""
        for nic in vm.entity.nics or ()
    }
    for nic in desired.nics:
        has = profiles.pop(nic.name, None)
        if has is None:
            yield nic.field, f"NIC {nic.name}", "no NIC of that name"
        elif has != nic.profile:
            yield nic.field, f"profile {nic.profile}", f"profile {has or 'none'}"
    for name in sorted(profiles):
        yield "spec.additionalNICs", "no further NIC", f"NIC {name}"


def _disk(
    desired: DesiredVm, native: engine_vm.EngineVm
) -> Iterator[tuple[str, str, str]]:
    disk = engine_vm.boot_disk(native)
    if disk is None:
        yield "spec.rootDiskSizeGb", "a boot disk", "none that is certain"
    elif disk.size < desired.disk_gib * GIB:
        yield (
            "spec.rootDiskSizeGb",
            f"{desired.disk_gib} GiB",
            f"{disk.size // GIB} GiB",
        )
