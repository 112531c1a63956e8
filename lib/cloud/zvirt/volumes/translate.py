"""A disk and its attachments as a volume: pure.

Source: ovirt-engine-api-model, Disk, DiskStatus, DiskAttachment.
"""

import dataclasses
from collections.abc import Collection, Mapping

from lib.cloud.model import InstanceId
from lib.cloud.volumes import Attachment, Volume, VolumeId, VolumePhase
from lib.cloud.zvirt import disk_tags
from lib.cloud.zvirt.documents import Entity

PHASES: Mapping[str, VolumePhase] = {
    "ok": VolumePhase.AVAILABLE,
    "locked": VolumePhase.CREATING,
    "illegal": VolumePhase.FAILED,
}
"""Every status of a disk; another one, or none, is UNKNOWN."""


@dataclasses.dataclass(frozen=True, slots=True)
class DiskNative:
    """What a write needs of a disk. domain: ID of its storage domain."""

    description: str
    domain: str


def volume(
    disk: Entity, status: str, attachments: Collection[Attachment], domain_name: str
) -> Volume:
    """Return the volume of a disk. attachments: those that are known."""
    clusters = disk_tags.clusters_of(disk.description)
    return Volume(
        VolumeId(str(disk.id)),
        str(disk.alias or disk.name or ""),
        int(disk.provisioned_size or 0),
        _phase(status, bool(attachments)),
        native_phase=status or "unknown",
        attachments=tuple(attachments),
        type=domain_name,
        cluster=", ".join(clusters) or None,
        is_shareable=bool(disk.shareable),
        is_in_full=True,
        native=DiskNative(str(disk.description or ""), domain_id(disk)),
    )


def _phase(status: str, is_attached: bool) -> VolumePhase:
    """Return the phase: an attached disk is locked by a move, a copy or a resize."""
    phase = PHASES.get(status, VolumePhase.UNKNOWN)
    if not is_attached:
        return phase
    attached = {
        VolumePhase.AVAILABLE: VolumePhase.IN_USE,
        VolumePhase.CREATING: VolumePhase.BUSY,
    }
    return attached.get(phase, phase)


def domain_id(disk: Entity) -> str:
    """Return the ID of the storage domain of a disk; empty: it shows none."""
    domains = disk.storage_domains or [disk.storage_domain]
    return "" if domains[0] is None else str(domains[0].id or "")


def vms(disk: Entity) -> tuple[str, ...]:
    """Return the VMs that a disk lists, which only a read of all content shows."""
    return tuple(sorted(str(vm.id) for vm in disk.vms or ()))


def attachment(vm: str, is_active: bool = True) -> Attachment:
    """Return an attachment. An inactive one gives the guest no device."""
    return Attachment(InstanceId(vm), is_published=is_active)
