"""Whether class, image and storage classes allow a machine to be created. Pure.

Sizing policies are judged by the parent alone, whose rules differ between versions: see
`refusals.SizingRejected`. The size of a snapshot is not known: it has none in its
status, and the parent compares its restore size.

Source: deckhouse/virtualization api/core (VirtualMachineClass, images);
deckhouse images/capdvp-controller-manager.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from lib.cloud.dvp import quantity_bytes
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


_BLOCK_BYTES = 2**20
"""The parent aligns an image up to it. Source: deckhouse/virtualization
pkg/controller/service/disk_service.go, DefaultAlignBlockSize."""


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
    needed = -(-unpacked // _BLOCK_BYTES) * _BLOCK_BYTES
    if quantity_bytes.size_bytes(boot.size) < needed:
        expected = f"at least {needed}, the bytes of {kind} {name}"
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
