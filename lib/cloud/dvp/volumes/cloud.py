"""Implements the protocol of volumes with disks and attachments of the parent.

Reads are of watched stores and send no request, except for a disk that its store lacks:
its absence by ID is that of a direct read. Each write is one request.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from lib.cloud import errors
from lib.cloud.dvp import ownership, quantity_bytes
from lib.cloud.dvp.kinds import (
    DISK_ATTACHMENTS,
    VIRTUAL_DISKS,
    VIRTUAL_MACHINES,
    DiskAttachmentRequest,
    ParentKind,
    VirtualDisk,
    VirtualMachine,
)
from lib.cloud.dvp.parent import Parent
from lib.cloud.dvp.volumes import (
    disk_names,
    disk_parameters,
    disk_serial,
    translate,
)
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.support import absence_scope
from lib.cloud.volumes import (
    ById,
    Feature,
    Found,
    Problems,
    Ref,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    Volumes,
    VolumeSpec,
    VolumesReading,
)
from lib.kube import objects

FEATURES = frozenset({Feature.LIST, Feature.EXPAND_OFFLINE, Feature.EXPAND_ONLINE})
HELD_S = 5.0
"""How long a read waits for the watch to show this process's own last write."""
_QUOTA = "exceeded quota"
"""Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go."""
T = TypeVar("T", bound=objects.HasMetadata)


class DvpVolumes(Volumes):
    """The volumes of one cluster in its project of the parent."""

    sizing = disk_parameters.SIZING
    context_keys: frozenset[str] = frozenset()

    def __init__(self, parent: Parent, held_s: float = HELD_S) -> None:
        """Begin to watch disks, attachments and VMs. held_s: as of HELD_S."""
        self._parent = parent
        self._held_s = held_s
        self._guard = absence_scope.Guard(parent.location, "")
        self._lock = threading.Lock()
        self._written: dict[str, set[str]] = {}
        parent.store(VIRTUAL_MACHINES)
        parent.store(VIRTUAL_DISKS)
        parent.store(DISK_ATTACHMENTS)

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See the protocol."""

        def disk_changed(
            key: str, old: VirtualDisk | None, new: VirtualDisk | None
        ) -> None:
            del key
            disk = new or old
            if disk is not None:
                fn(disk.metadata.name)
                if disk_names.volume_name(disk) != disk.metadata.name:
                    fn(disk_names.volume_name(disk))

        def attachment_changed(
            key: str,
            old: DiskAttachmentRequest | None,
            new: DiskAttachmentRequest | None,
        ) -> None:
            del key
            attachment = new or old
            if attachment is not None:
                fn(attachment.spec.block_device_ref.name)

        self._parent.on_change(VIRTUAL_DISKS, disk_changed)
        self._parent.on_change(DISK_ATTACHMENTS, attachment_changed)

    def is_id(self, text: str) -> bool:
        """See the protocol."""
        return disk_names.is_disk_name(text)

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """See the protocol."""
        return disk_parameters.parse(request)

    # Reads.

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """See the protocol."""
        held_s = self._held_s if within_s is None else min(within_s, self._held_s)
        return VolumesReading({ref: self._observe(ref, held_s) for ref in refs})

    def _observe(self, ref: Ref, held_s: float) -> Found:
        name = ref.id if isinstance(ref, ById) else disk_names.disk_name(ref.name)
        if not self.is_id(name):
            return ()
        try:
            disk = self._disk(name, held_s, is_sure=isinstance(ref, ById))
            if disk is None:
                remains = self._remains(ref)
                if isinstance(ref, ById) and not remains:
                    self._require_home("find virtualdisk", name)
                return remains
            if not disk_names.is_volume(disk):
                return ()
            if isinstance(ref, ById) and self._guard.memory.home is None:
                self._note_home(disk)
            self._await_attachments(name, held_s)
            return (self._volume(disk),)
        except errors.CloudError as error:
            return Unknown(error)

    def _require_home(self, operation: str, disk: str) -> None:
        """Check that this project is that of the cluster: an absence counts here.

        disk: its name; that of a disk which this process has created here counts.

        Raises:
            Unavailable: no VM and no disk of the cluster was observed in it.
        """
        if not self._guard.is_created_here(disk):
            self._guard.check(operation, self._has_witness)

    def _note_home(self, disk: VirtualDisk) -> None:
        """Record that a disk of the cluster was observed here, until a restart.

        For a while the stores still show the project of a kubeconfig that was replaced.
        Names of disks repeat in other projects; the label of the cluster does not.
        """
        metadata, memory = disk.metadata, self._guard.memory
        is_owned = ownership.is_owned(metadata.labels, self._parent.cluster_uuid)
        if is_owned and metadata.name not in memory.created:
            self._guard.observed()

    def _has_witness(self) -> bool:
        """Report whether the project has a VM, or a disk, with the cluster's label."""
        created = self._guard.memory.created
        disks = self._parent.items(VIRTUAL_DISKS).values()
        return bool(self._machines()) or any(
            disk.metadata.name not in created for disk in disks
        )

    def _remains(self, ref: Ref) -> Found:
        """Return a deleted disk that attachments still name: they occupy its VM."""
        if not isinstance(ref, ById) or not ref.in_full:
            return ()
        left = self._attachments_of(ref.id)
        return (translate.deleted(ref.id, left, self._machines()),) if left else ()

    def _disk(self, name: str, held_s: float, is_sure: bool) -> VirtualDisk | None:
        """Return a disk; is_sure: read it directly where the store lacks it.

        Raises:
            CloudError: it is not known.
        """
        self._await(VIRTUAL_DISKS, name, held_s)
        disk = self._parent.find(VIRTUAL_DISKS, name)
        if disk is not None or not is_sure:
            return disk
        return self._parent.get(VIRTUAL_DISKS, name)

    def _await(self, kind: ParentKind[T], name: str, held_s: float) -> None:
        """Wait until the store has seen this process's last write to an object."""
        if not self._parent.is_current(kind, name):
            self._parent.wait(kind, name, lambda value: True, held_s)

    def _await_attachments(self, disk: str, held_s: float) -> None:
        """The same for all attachments of a disk; reads late ones directly.

        Raises:
            CloudError: the watch is late, and what it lacks cannot be read.
        """
        with self._lock:
            written = self._written.get(disk, set()).copy()
        for name in written:
            self._await(DISK_ATTACHMENTS, name, held_s)
            if not self._parent.is_current(DISK_ATTACHMENTS, name):
                text = "the watch does not show the last write yet"
                operation = "watch virtualmachineblockdeviceattachment"
                raise errors.Unavailable(text, operation=operation, resource=name)
            self._forget(disk, name)

    def _volume(self, disk: VirtualDisk) -> Volume:
        attachments = self._attachments_of(disk.metadata.name)
        return translate.volume(disk, attachments, self._machines())

    def _attachments_of(self, disk: str) -> list[DiskAttachmentRequest]:
        return [
            attachment
            for attachment in self._parent.items(DISK_ATTACHMENTS).values()
            if attachment.spec.block_device_ref.kind == translate.DISK_KIND
            and attachment.spec.block_device_ref.name == disk
        ]

    def _machines(self) -> Mapping[str, VirtualMachine]:
        machines = self._parent.items(VIRTUAL_MACHINES).values()
        return {machine.metadata.name: machine for machine in machines}

    def listing(self) -> tuple[Volume, ...]:
        """See the protocol; sends no request."""
        by_disk: dict[str, list[DiskAttachmentRequest]] = {}
        for attachment in self._parent.items(DISK_ATTACHMENTS).values():
            ref = attachment.spec.block_device_ref
            if ref.kind == translate.DISK_KIND:
                by_disk.setdefault(ref.name, []).append(attachment)
        machines = self._machines()
        return tuple(
            translate.volume(disk, by_disk.get(disk.metadata.name, ()), machines)
            for disk in self._parent.items(VIRTUAL_DISKS).values()
            if disk_names.is_volume(disk)
        )

    # Writes.

    def create(self, spec: VolumeSpec) -> Volume:
        """See the protocol."""
        name, cluster = spec.name, self._parent.cluster_uuid
        document = disk_names.disk_document(name, spec.type, spec.size_bytes, cluster)
        try:
            disk = self._parent.create(VIRTUAL_DISKS, document)
        except errors.AlreadyExists as error:
            raise self._existing(disk_names.disk_name(name), error) from error
        self._guard.created(disk.metadata.name)
        return translate.volume(disk, (), {})

    def _existing(self, name: str, error: errors.AlreadyExists) -> errors.CloudError:
        """Return why a disk cannot be created: one of that name exists already.

        Busy: it is being deleted, or the watch does not show it yet. It is not returned
        as created: what this call did not create must never be deleted as its own.
        AlreadyExists: it belongs to another owner.
        """
        disk = self._parent.get(VIRTUAL_DISKS, name)
        operation = error.operation
        if disk is None or disk.metadata.deletion_timestamp is not None:
            text = "an older disk of this name is being deleted"
            return errors.Busy(text, operation=operation, resource=name)
        labels = disk.metadata.labels
        is_owned = ownership.is_owned(labels, self._parent.cluster_uuid)
        if is_owned and disk_names.is_volume(disk):
            self._parent.expect(VIRTUAL_DISKS, disk)
            text = "the disk was created by another call, and is read again"
            return errors.Busy(text, operation=operation, resource=name)
        owner = labels.get(ownership.CLUSTER, "")
        text = f"name: conflict: the disk exists, and its label {ownership.CLUSTER} is"
        text = f'{text} "{owner}": delete the disk or correct its labels'
        return errors.AlreadyExists(text, operation=operation, resource=name)

    def delete(self, volume_id: VolumeId) -> None:
        """See the protocol."""
        if not self.is_id(volume_id):
            return
        disk = self._known(volume_id)
        if disk is None:
            self._require_home("delete virtualdisk", volume_id)
        if disk is None or not disk_names.is_volume(disk):
            return
        volume = self._volume(disk)
        if volume.attachments:
            holder = volume.attachments[0].holder
            text = f"it is attached to {holder}"
            raise errors.AttachedElsewhere(
                text, operation="delete virtualdisk", resource=volume_id
            )
        try:
            self._parent.delete(VIRTUAL_DISKS, volume_id, disk.metadata.uid)
        except errors.NotFound:
            return

    def _known(self, volume_id: VolumeId) -> VirtualDisk | None:
        if not self.is_id(volume_id):
            return None
        return self._disk(volume_id, self._held_s, is_sure=True)

    def _owned(self, volume_id: VolumeId, operation: str) -> VirtualDisk:
        """Return a disk of this cluster.

        Raises:
            NotFound: none exists, it is being deleted, or its labels name another
                cluster.
        """
        disk = self._known(volume_id)
        cluster = self._parent.cluster_uuid
        if (
            disk is None
            or disk.metadata.deletion_timestamp is not None
            or not ownership.is_owned(disk.metadata.labels, cluster)
        ):
            text = f"no disk with the label {ownership.CLUSTER}={cluster}"
            raise errors.NotFound(text, operation=operation, resource=volume_id)
        return disk

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """See the protocol."""
        operation = "resize virtualdisk"
        disk = self._owned(volume.id, operation)
        requested = disk.spec.persistent_volume_claim.size
        if quantity_bytes.size_bytes(requested) >= size_bytes:
            _require_expansion(disk, operation)
            return
        if translate.volume(disk, (), {}).phase is VolumePhase.BUSY:
            text = f"the disk is in phase {disk.status.phase}"
            raise errors.Busy(text, operation=operation, resource=volume.id)
        claim = {"persistentVolumeClaim": {"size": str(size_bytes)}}
        self._parent.patch(VIRTUAL_DISKS, volume.id, {"spec": claim})

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        operation = "attach virtualdisk"
        machine = self._machine(instance_id, operation)
        disk = self._owned(volume.id, operation)
        if translate.is_static(disk, machine):
            return
        self._await_attachments(volume.id, self._held_s)
        attachments = self._attachments_of(volume.id)
        here = machine.metadata.name
        for attachment in attachments:
            if attachment.spec.virtual_machine_name == here:
                self._keep(disk, attachment, operation)
                return
        holders = [*self._volume(disk).attachments]
        if holders:
            text = f"it is attached to {holders[0].holder}"
            raise errors.AttachedElsewhere(
                text, operation=operation, resource=volume.id
            )
        self._require_room(machine, operation)
        self._attach(disk, machine)

    def _machine(self, instance_id: InstanceId, operation: str) -> VirtualMachine:
        """Return the VM of a Node.

        Raises:
            NotFound, Ambiguous: none exists, or several have the name of the Node.
        """
        machine = self._find_machine(instance_id, operation)
        if machine is None:
            text = f"no virtual machine has the label {ownership.HOSTNAME} of the node"
            raise errors.NotFound(text, operation=operation, resource=instance_id)
        return machine

    def _find_machine(
        self, instance_id: InstanceId, operation: str
    ) -> VirtualMachine | None:
        """Return the VM of a Node; None if there is none.

        Raises:
            Ambiguous: several have the name of the Node.
        """
        machines = self._machines().values()
        named = [m for m in machines if disk_names.hostname(m) == instance_id]
        if len(named) <= 1:
            return named[0] if named else None
        listed = ", ".join(sorted(machine.metadata.name for machine in named))
        text = f"virtual machines {listed} have the same label {ownership.HOSTNAME}"
        raise errors.Ambiguous(text, operation=operation, resource=instance_id)

    def _keep(
        self, disk: VirtualDisk, attachment: DiskAttachmentRequest, operation: str
    ) -> None:
        """Keep the attachment that exists; adopt that of another program.

        Raises:
            Busy: it is being deleted.
        """
        name = attachment.metadata.name
        if attachment.metadata.deletion_timestamp is not None:
            text = "an older attachment is being deleted"
            raise errors.Busy(text, operation=operation, resource=name)
        if disk_names.is_published(attachment):
            return
        labels = {
            ownership.OWNER_UID: disk.metadata.uid,
            disk_names.PUBLISHED: disk_names.PUBLISHER,
        }
        self._note(disk.metadata.name, name)
        self._parent.patch(DISK_ATTACHMENTS, name, {"metadata": {"labels": labels}})

    def _require_room(self, machine: VirtualMachine, operation: str) -> None:
        attachments = self._parent.items(DISK_ATTACHMENTS).values()
        count = len(translate.devices(machine, attachments))
        if count >= disk_serial.DEVICES_MAX:
            text = (
                f"virtual machine {machine.metadata.name} has {count} block devices:"
                f" must be fewer than {disk_serial.DEVICES_MAX}"
            )
            raise errors.LimitReached(
                text, operation=operation, resource=disk_names.hostname(machine)
            )

    def _attach(self, disk: VirtualDisk, machine: VirtualMachine) -> None:
        cluster = self._parent.cluster_uuid
        document = disk_names.attachment_document(disk, machine, cluster)
        host = disk_names.hostname(machine)
        name = disk_names.attachment_name(disk.metadata.name, host)
        self._note(disk.metadata.name, name)
        try:
            self._parent.create(DISK_ATTACHMENTS, document)
        except errors.AlreadyExists as error:
            existing = self._parent.get(DISK_ATTACHMENTS, name)
            is_ours = existing is not None and ownership.is_owned(
                existing.metadata.labels, self._parent.cluster_uuid
            )
            if existing is None or is_ours:
                text = "an attachment of this name was created or deleted just now"
                raise errors.Busy(
                    text, operation=error.operation, resource=name
                ) from error
            raise

    def _note(self, disk: str, attachment: str) -> None:
        """Note a write to an attachment, which later reads must show."""
        with self._lock:
            self._written.setdefault(disk, set()).add(attachment)

    def _forget(self, disk: str, attachment: str) -> None:
        with self._lock:
            names = self._written.get(disk, set())
            names.discard(attachment)
            if not names:
                self._written.pop(disk, None)

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        self._await_attachments(volume.id, self._held_s)
        machines = self._machines()
        # Of two VMs with one host name, neither loses what may be the other's.
        self._find_machine(instance_id, "detach virtualdisk")
        held = [
            attachment
            for attachment in self._attachments_of(volume.id)
            if _host(attachment, machines) == instance_id
        ]
        if not held and self._is_listed(volume, instance_id):
            held = self._unlisted(volume, instance_id)
        for attachment in held:
            if attachment.metadata.deletion_timestamp is None:
                self._detach(volume.id, attachment)

    def _is_listed(self, volume: Volume, instance_id: InstanceId) -> bool:
        """Report whether the disk lists the VM although no attachment is known."""
        return any(item.instance_id == instance_id for item in volume.attachments)

    def _unlisted(
        self, volume: Volume, instance_id: InstanceId
    ) -> list[DiskAttachmentRequest]:
        """Read the attachment that the store may lack, by its name."""
        name = disk_names.attachment_name(volume.id, instance_id)
        attachment = self._parent.get(DISK_ATTACHMENTS, name)
        if attachment is None or not ownership.is_owned(
            attachment.metadata.labels, self._parent.cluster_uuid
        ):
            return []
        return [attachment]

    def _detach(self, disk: str, attachment: DiskAttachmentRequest) -> None:
        metadata = attachment.metadata
        self._note(disk, metadata.name)
        try:
            self._parent.delete(DISK_ATTACHMENTS, metadata.name, metadata.uid)
        except errors.NotFound:
            return


def _require_expansion(disk: VirtualDisk, operation: str) -> None:
    """Report why the parent does not do what an earlier request has asked of it.

    Raises:
        QuotaExceeded, Busy: it waits for the quota, or for something else.
    """
    refused = translate.refused_expansion(disk)
    if refused is None:
        return
    text = f"the parent does not expand the disk: {refused.reason}: {refused.message}"
    is_quota = _QUOTA in refused.message
    kind = errors.QuotaExceeded if is_quota else errors.Busy
    raise kind(text, operation=operation, resource=disk.metadata.name)


def _host(
    attachment: DiskAttachmentRequest, machines: Mapping[str, VirtualMachine]
) -> str:
    """Return the name of the Node of an attachment, also of one without its VM."""
    name = attachment.spec.virtual_machine_name
    if name in machines:
        return disk_names.hostname(machines[name])
    return attachment.metadata.labels.get(ownership.HOSTNAME) or name
