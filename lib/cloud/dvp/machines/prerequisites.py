"""Whether class, image and storage classes allow a machine to be created. Pure.

Source: deckhouse/virtualization api/core (VirtualMachineClass, sizing policies) and
the validators of VirtualMachine; deckhouse images/capdvp-controller-manager.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from lib.cloud.dvp import quantity_bytes
from lib.cloud.dvp.kinds import CoresRange, MemoryRange, SizingPolicy
from lib.cloud.dvp.machines.desired_machine import DesiredDisk, DesiredMachine
from lib.cloud.dvp.machines.machine_reasons import DvpMachineReason
from lib.cloud.dvp.machines.observed_machine import Prerequisites
from lib.cloud.machines import Reason
from lib.cloud.steps import Problem, ProblemReason
from lib.process import config

CLASS_FIELD = "spec.vmClassName"
IMAGE_FIELD = "spec.bootDiskImageRef.name"
STORAGE_FIELD = "spec.rootDiskStorageClass"
_READY = "Ready"
_LISTED_MAX = 8


def problems(
    desired: DesiredMachine, disks: Iterable[DesiredDisk], available: Prerequisites
) -> tuple[Problem, ...]:
    """Return every reason why these disks, and a VM with them, cannot be created."""
    listed = tuple(disks)
    return (
        *_of_class(desired, available),
        *_of_image(desired, listed, available),
        *_of_storage(listed, available),
    )


def _problem(reason: ProblemReason, problem: config.FieldProblem) -> Problem:
    return Problem(reason, str(problem), is_fatal=True)


def _absent(field: str, name: str, kind: str, available: Prerequisites) -> Problem:
    names = available.offered.get(field, ())
    listed = ", ".join(names[:_LISTED_MAX])
    more = ", ..." if len(names) > _LISTED_MAX else ""
    expected = f"a {kind} of the parent cluster"
    if names:
        expected = f"one of {listed}{more}, the {kind} objects of the parent"
    problem = config.FieldProblem(field, name, expected)
    return _problem(Reason.PREREQUISITE, problem)


def _unready(field: str, name: str, kind: str, phase: str) -> Problem:
    text = f"{kind} {name} is {phase or 'new'}: must be {_READY}"
    return _problem(Reason.PREREQUISITE, config.stated(field, text))


def _of_class(desired: DesiredMachine, available: Prerequisites) -> Iterator[Problem]:
    machine_class = available.machine_class
    kind, name = "VirtualMachineClass", desired.class_name
    if machine_class is None:
        yield _absent(CLASS_FIELD, name, kind, available)
        return
    if machine_class.status.phase != _READY:
        yield _unready(CLASS_FIELD, name, kind, machine_class.status.phase)
    for problem in sizing(desired, machine_class.spec.sizing_policies or ()):
        expected = f"{problem.expected} by {kind} {name}"
        stated = dataclasses.replace(problem, expected=expected)
        yield _problem(DvpMachineReason.SIZING_POLICY, stated)


def _of_image(
    desired: DesiredMachine, disks: tuple[DesiredDisk, ...], available: Prerequisites
) -> Iterator[Problem]:
    boot = desired.disks[0]
    if boot not in disks:
        return
    (kind, name), image = desired.image, available.image
    if image is None:
        yield _absent(IMAGE_FIELD, name, kind, available)
        return
    if image.status.phase != _READY:
        yield _unready(IMAGE_FIELD, name, kind, image.status.phase)
    size = image.status.size
    unpacked = quantity_bytes.size_bytes(size.unpacked_bytes) if size else 0
    if quantity_bytes.size_bytes(boot.size) < unpacked:
        expected = f"at least {unpacked}, the bytes of {kind} {name}"
        problem = config.FieldProblem(boot.field, boot.size, expected)
        yield _problem(DvpMachineReason.IMAGE_TOO_LARGE, problem)


def _of_storage(
    disks: tuple[DesiredDisk, ...], available: Prerequisites
) -> Iterator[Problem]:
    offered = available.offered.get(STORAGE_FIELD, ())
    for disk in disks:
        if disk.storage_class not in available.storage_classes:
            field = disk.class_field
            named = dataclasses.replace(available, offered={field: offered})
            yield _absent(field, disk.storage_class, "StorageClass", named)


# ---------------------------------------------------------------- sizing policies


def sizing(
    desired: DesiredMachine, policies: tuple[SizingPolicy, ...]
) -> Iterator[config.FieldProblem]:
    """Yield what the policies of a class reject. The one for the cores decides."""
    if not policies:
        return
    of_cores = [
        policy
        for policy in policies
        if policy.cores is None or _is_in(desired.cores, policy.cores)
    ]
    if not of_cores:
        ranges = ", ".join(_range(policy.cores) for policy in policies if policy.cores)
        field, value = "spec.cpu.cores", str(desired.cores)
        yield config.FieldProblem(field, value, f"one of {ranges}, as allowed")
        return
    policy = of_cores[0]
    if policy.memory is not None:
        yield from _memory(desired, policy.memory)
    allowed = [_percent(fraction) for fraction in policy.core_fractions or ()]
    if allowed and desired.core_fraction not in allowed:
        field, value = "spec.cpu.cpuFraction", desired.core_fraction
        yield config.FieldProblem(field, value, f"one of {', '.join(allowed)}")


def _percent(fraction: int | str) -> str:
    return f"{fraction}%" if isinstance(fraction, int) else fraction


def _is_in(cores: int, allowed: CoresRange) -> bool:
    is_between = allowed.min <= cores and (not allowed.max or cores <= allowed.max)
    return is_between and not (allowed.step and (cores - allowed.min) % allowed.step)


def _range(allowed: CoresRange) -> str:
    text = f"{allowed.min}-{allowed.max}" if allowed.max else f"{allowed.min} and more"
    return f"{text} in steps of {allowed.step}" if allowed.step > 1 else text


def _memory(
    desired: DesiredMachine, allowed: MemoryRange
) -> Iterator[config.FieldProblem]:
    size = quantity_bytes.size_bytes(desired.memory)
    expected = _memory_range(allowed)
    per_core = allowed.per_core
    is_allowed = _is_size(size, allowed)
    if is_allowed and per_core is not None:
        is_allowed = _is_size(size / desired.cores, per_core)
        expected = f"{_memory_range(per_core)} for each of {desired.cores} cores"
    if not is_allowed:
        yield config.FieldProblem("spec.memory", desired.memory, expected)


def _is_size(size: float, allowed: MemoryRange) -> bool:
    least = quantity_bytes.size_bytes(allowed.min)
    most = quantity_bytes.size_bytes(allowed.max)
    step = quantity_bytes.size_bytes(allowed.step)
    is_between = least <= size and (not most or size <= most)
    return is_between and not (step and (size - least) % step)


def _memory_range(allowed: MemoryRange) -> str:
    parts = [
        f"at least {allowed.min}" if allowed.min else "",
        f"at most {allowed.max}" if allowed.max else "",
        f"in steps of {allowed.step}" if allowed.step else "",
    ]
    return ", ".join(filter(None, parts))
