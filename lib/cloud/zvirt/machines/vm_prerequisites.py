"""What a VM refers to in the engine, judged before it is created. Pure."""

from collections.abc import Iterator

from lib.cloud.machines import Reason
from lib.cloud.steps import CommonReason, Problem, ProblemReason
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.machines.desired_vm import DesiredVm
from lib.cloud.zvirt.machines.engine_vm import (
    AttachedDisk,
    VmPrerequisites,
    disks,
)
from lib.cloud.zvirt.machines.vm_differences import GIB
from lib.process import config

_OFFERED_MAX = 10
"""Names that a message lists."""


def template(available: VmPrerequisites) -> Item | None:
    """Return the newest version of the template; None: none, or it is ambiguous."""
    newest = sorted(available.templates, key=_version, reverse=True)
    if not newest or (len(newest) > 1 and _version(newest[0]) == _version(newest[1])):
        return None
    return newest[0]


def _version(item: Item) -> int:
    version = item.entity.version
    return 0 if version is None else int(version.version_number or 0)


def boot_disk(item: Item) -> AttachedDisk | None:
    """Return the only bootable disk of a template; None: it has none, or several."""
    bootable = [disk for disk in disks(item) if disk.is_bootable]
    return bootable[0] if len(bootable) == 1 else None


def problems(desired: DesiredVm, available: VmPrerequisites) -> tuple[Problem, ...]:
    """Return what is missing or not usable; the field, its value and what is."""
    if not desired.cluster or available.cluster is None:
        text = "the infrastructure cluster names no cluster of the engine that exists"
        return (_problem("spec.id of ZvirtCluster", text),)
    return (
        *_of_template(desired, available),
        *_of_profiles(desired, available),
        *_of_domain(desired, available),
    )


def _problem(
    field: str, text: str, reason: ProblemReason = Reason.PREREQUISITE
) -> Problem:
    return Problem(reason, str(config.stated(field, text)))


def _of_template(desired: DesiredVm, available: VmPrerequisites) -> Iterator[Problem]:
    field, name = "spec.template", config.quoted(desired.template)
    if not available.templates:
        yield _problem(field, f"{name} does not exist{_offered(available, field)}")
        return
    chosen = template(available)
    if chosen is None:
        text = f"{name} is the name of several templates: must be unique"
        yield _problem(field, text, CommonReason.AMBIGUOUS)
        return
    if chosen.status != "ok":
        yield _problem(field, f"{name} is {chosen.status or 'illegal'}: must be ok")
    disk = boot_disk(chosen)
    if disk is None:
        yield _problem(field, f"{name} must have exactly one bootable disk")
    elif disk.size > desired.disk_gib * GIB:
        least = -(-disk.size // GIB)
        text = f"{desired.disk_gib}: must be at least {least}, as in the template"
        yield _problem("spec.rootDiskSizeGb", text, Reason.INVALID_SPEC)


def _of_profiles(desired: DesiredVm, available: VmPrerequisites) -> Iterator[Problem]:
    for nic in desired.nics:
        if nic.profile not in available.profiles:
            text = f"{nic.profile} is no vNIC profile of the cluster's data center"
            yield _problem(nic.field, text + _offered(available, "spec.vnicProfileID"))


def _of_domain(desired: DesiredVm, available: VmPrerequisites) -> Iterator[Problem]:
    field, domain = "spec.storageDomainID", desired.domain
    if not domain:
        return
    status = available.domains.get(domain)
    if status is None:
        text = f"{domain} is no storage domain of the cluster's data center"
        yield _problem(field, text + _offered(available, field))
    elif status != "active":
        yield _problem(field, f"{domain} is {status}: must be active")


def _offered(available: VmPrerequisites, field: str) -> str:
    """Return the names that exist, as the end of a message."""
    names = available.offered.get(field, ())
    more = ", ..." if len(names) > _OFFERED_MAX else ""
    listed = ", ".join(names[:_OFFERED_MAX])
    return f": must be one of {listed}{more}" if listed else ""
