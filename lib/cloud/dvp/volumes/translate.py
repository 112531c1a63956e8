"""A disk and its attachments as a volume: pure.

Source: deckhouse/virtualization api/core/v1alpha2 (virtual_disk.go,
virtual_machine_block_device_attachment.go, vdcondition).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from lib.cloud.dvp import disk_reasons, ownership, quantity_bytes
from lib.cloud.dvp.kinds import (
    DiskAttachmentRequest,
    DiskStatus,
    ParentCondition,
    VirtualDisk,
    VirtualMachine,
)
from lib.cloud.dvp.volumes import disk_names, disk_serial
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    AttachmentPhase,
    Volume,
    VolumeId,
    VolumePhase,
)
from lib.kube import objects

PHASES: Mapping[str, VolumePhase] = {
    "": VolumePhase.CREATING,
    "Pending": VolumePhase.CREATING,
    "Provisioning": VolumePhase.CREATING,
    "WaitForUserUpload": VolumePhase.CREATING,
    "WaitForFirstConsumer": VolumePhase.AVAILABLE,
    "Ready": VolumePhase.AVAILABLE,
    "Resizing": VolumePhase.RESIZING,
    "Failed": VolumePhase.FAILED,
    "PVCLost": VolumePhase.FAILED,
    "Exporting": VolumePhase.BUSY,
    "Migrating": VolumePhase.BUSY,
    "Terminating": VolumePhase.DELETING,
}
"""Every phase of a disk. An object without a status was created just now."""
ATTACHMENT_PHASES: Mapping[str, AttachmentPhase] = {
    "": AttachmentPhase.ATTACHING,
    "Pending": AttachmentPhase.ATTACHING,
    "InProgress": AttachmentPhase.ATTACHING,
    "Attached": AttachmentPhase.ATTACHED,
    "Failed": AttachmentPhase.FAILED,
    "Terminating": AttachmentPhase.DETACHING,
}
"""Every phase of an attachment."""
QUOTA_EXCEEDED = "QuotaExceeded"
TERMINAL_REASONS = frozenset(
    {
        QUOTA_EXCEEDED,
        "ProvisioningFailed",
        "ProvisioningFailedTerminally",
        "PVCLost",
        "ImagePullFailed",
        "DatasourceIsNotFound",
        "StorageClassIsNotReady",
        "StorageClassProvisionerMismatch",
    }
)
"""Reasons of Ready=False after which a disk does not become ready by waiting.

Source: deckhouse images/dvp-common/api (disk.go)."""
DISK_KIND = "VirtualDisk"


def volume(
    disk: VirtualDisk,
    attachments: Collection[DiskAttachmentRequest],
    machines: Mapping[str, VirtualMachine],
) -> Volume:
    """Return the volume of a disk.

    attachments: of this disk. machines: of the cluster, by name.
    """
    metadata, status = disk.metadata, disk.status
    held = tuple(_attachments(disk, attachments, machines))
    capacity = quantity_bytes.size_bytes(status.capacity)
    requested = quantity_bytes.size_bytes(disk.spec.persistent_volume_claim.size)
    phase, failure = _phase(disk)
    shown = status.phase or "without a status"
    return Volume(
        VolumeId(metadata.name),
        disk_names.volume_name(disk),
        capacity or requested,
        _with_attachments(phase, held),
        native_phase=f"{shown} ({failure.reason})" if failure else shown,
        attachments=held,
        type=status.storage_class_name
        or disk.spec.persistent_volume_claim.storage_class_name
        or "",
        cluster=metadata.labels.get(ownership.CLUSTER),
        was_ready=bool(capacity),
        is_unplaceable=failure is not None and failure.reason == QUOTA_EXCEEDED,
        is_in_full=True,
        created_at=metadata.creation_timestamp,
        message=failure.message if failure else "",
        expanding_to_bytes=_expanding_to_bytes(disk),
        native=disk,
    )


def _expanding_to_bytes(disk: VirtualDisk) -> int:
    """Return the size to which a disk is being expanded; 0: it is not."""
    capacity = quantity_bytes.size_bytes(disk.status.capacity)
    requested = quantity_bytes.size_bytes(disk.spec.persistent_volume_claim.size)
    is_expanding = 0 < capacity < requested and refused_expansion(disk) is None
    return requested if is_expanding else 0


def refused_expansion(disk: VirtualDisk) -> ParentCondition | None:
    """Return why the parent does not expand a disk now; None while it does.

    Source: deckhouse/virtualization, condition Resizing of VirtualDisk: NotAvailable
    while the disk migrates or its claim may not be changed. The parent tries again.
    """
    resizing = condition(disk.status.conditions, "Resizing")
    return resizing if resizing is not None and resizing.status == "False" else None


def deleted(
    volume_id: VolumeId,
    attachments: Collection[DiskAttachmentRequest],
    machines: Mapping[str, VirtualMachine],
) -> Volume:
    """Return the volume of a disk that does not exist, but whose attachments do."""
    about = objects.ObjectMeta(name=volume_id)
    gone = VirtualDisk(about, status=DiskStatus(phase="Terminating"))
    return volume(gone, attachments, machines)


def _phase(disk: VirtualDisk) -> tuple[VolumePhase, ParentCondition | None]:
    """Return the phase, and the condition that explains it where there is one."""
    if disk.metadata.deletion_timestamp is not None:
        return VolumePhase.DELETING, None
    phase = PHASES.get(disk.status.phase, VolumePhase.UNKNOWN)
    ready = condition(disk.status.conditions, "Ready")
    is_false = ready is not None and ready.status == "False"
    reason = ready.reason if ready is not None and is_false else ""
    if phase is VolumePhase.FAILED and reason in disk_reasons.PROCEEDS:
        phase = VolumePhase.CREATING
    is_terminal = reason in TERMINAL_REASONS
    if phase is VolumePhase.CREATING and is_terminal:
        return VolumePhase.FAILED, ready
    if phase is VolumePhase.FAILED or (phase is VolumePhase.CREATING and is_false):
        return phase, ready
    if phase in (VolumePhase.RESIZING, VolumePhase.AVAILABLE):
        return phase, refused_expansion(disk)
    return phase, None


def condition(
    conditions: Iterable[ParentCondition] | None, type_: str
) -> ParentCondition | None:
    """Return the condition of a type; None without one."""
    return next((c for c in conditions or () if c.type == type_), None)


def _with_attachments(
    phase: VolumePhase, attachments: Collection[Attachment]
) -> VolumePhase:
    """Return the phase of a volume with these attachments."""
    if phase is not VolumePhase.AVAILABLE:
        return phase
    phases = {attachment.phase for attachment in attachments}
    for held_phase, result in (
        (AttachmentPhase.ATTACHED, VolumePhase.IN_USE),
        (AttachmentPhase.ATTACHING, VolumePhase.ATTACHING),
        (AttachmentPhase.DETACHING, VolumePhase.DETACHING),
    ):
        if held_phase in phases:
            return result
    return phase


def _attachments(
    disk: VirtualDisk,
    attachments: Collection[DiskAttachmentRequest],
    machines: Mapping[str, VirtualMachine],
) -> Iterator[Attachment]:
    """Yield an attachment for each VM that holds the disk, or is to hold it.

    A VM holds it until its attachment object is deleted and the disk does not list it
    any more: the VM may release it later than the object disappears.
    """
    shown: set[str] = set()
    for attachment in sorted(attachments, key=lambda item: item.metadata.name):
        shown.add(attachment.spec.virtual_machine_name)
        yield _attachment(disk, attachment, machines)
    for listed in disk.status.attached_to_virtual_machines or ():
        if listed.name in shown:
            continue
        machine = machines.get(listed.name)
        if machine is None:
            yield Attachment(InstanceId(""), host=f"virtual machine {listed.name}")
        else:
            yield Attachment(
                InstanceId(disk_names.hostname(machine)),
                (
                    AttachmentPhase.ATTACHED
                    if is_static(disk, machine)
                    else AttachmentPhase.DETACHING
                ),
                publish_context(disk),
            )


def _attachment(
    disk: VirtualDisk,
    attachment: DiskAttachmentRequest,
    machines: Mapping[str, VirtualMachine],
) -> Attachment:
    phase = ATTACHMENT_PHASES.get(attachment.status.phase, AttachmentPhase.ATTACHING)
    if attachment.metadata.deletion_timestamp is not None:
        phase = AttachmentPhase.DETACHING
    name = attachment.spec.virtual_machine_name
    machine = machines.get(name)
    labelled = attachment.metadata.labels.get(ownership.HOSTNAME)
    host = disk_names.hostname(machine) if machine else labelled or name
    return Attachment(
        InstanceId(host),
        phase,
        publish_context(disk) if phase is AttachmentPhase.ATTACHED else (),
        _reason(attachment),
        is_published=disk_names.is_published(attachment),
    )


def _reason(attachment: DiskAttachmentRequest) -> str:
    """Return why an attachment is not attached; empty without a reason."""
    unmet = [
        f"{item.type}: {item.reason}: {item.message}"
        for item in attachment.status.conditions or ()
        if item.status == "False"
    ]
    return "; ".join(unmet)


def publish_context(disk: VirtualDisk) -> tuple[tuple[str, str], ...]:
    """Return what the node needs to find a disk: its UID."""
    return ((disk_serial.DISK_UID, disk.metadata.uid),)


def is_static(disk: VirtualDisk, machine: VirtualMachine) -> bool:
    """Report whether a disk is in the spec of a VM."""
    return any(
        ref.kind == DISK_KIND and ref.name == disk.metadata.name
        for ref in machine.spec.block_device_refs or ()
    )


def devices(
    machine: VirtualMachine, attachments: Iterable[DiskAttachmentRequest]
) -> frozenset[tuple[str, str]]:
    """Return kind and name of the devices that a VM has, or is to have.

    Source: deckhouse/virtualization: devices in the spec and attachments together are
    limited to 16.
    """
    refs = [(ref.kind, ref.name) for ref in machine.spec.block_device_refs or ()]
    for attachment in attachments:
        if attachment.spec.virtual_machine_name == machine.metadata.name:
            ref = attachment.spec.block_device_ref
            refs.append((ref.kind, ref.name))
    return frozenset(refs)
