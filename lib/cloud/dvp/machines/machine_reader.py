"""Reads the parent for machines: from watched stores, without requests.

The exceptions are direct reads of one object: of a name that the parent calls taken
although no store shows it, of the VM of a machine that has its ID, and of the VM before
a machine is released, or while it holds a disk that is deleted. Stores contain objects
with the label of the cluster only.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import (
    DiskAttachmentRequest,
    DiskImage,
    ParentKind,
    ParentSecret,
    VirtualDisk,
    VirtualMachine,
)
from lib.cloud.dvp.machines import (
    desired_machine,
    machine_deletion,
    machine_names,
    machine_ownership,
    observed_machine,
    prerequisites,
)
from lib.cloud.dvp.machines.desired_machine import DesiredMachine
from lib.cloud.dvp.machines.machine_writes import AnyKind
from lib.cloud.dvp.machines.observed_machine import ParentMachine, Prerequisites
from lib.cloud.dvp.parent import Parent
from lib.cloud.machines import Observation, Observed, Ref, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import mass_absence
from lib.kube import objects

CATCH_UP_S = 1.0
"""How long a read waits for the watch to show our own last writes."""
IMAGES: Mapping[str, ParentKind[DiskImage]] = {
    kind.resource.kind: kind
    for kind in (kinds.VIRTUAL_IMAGES, kinds.CLUSTER_IMAGES, kinds.DISK_SNAPSHOTS)
}
_REMEDY = "check the parent; delete the Machine of a VM that was deleted"
T = TypeVar("T", bound=objects.HasMetadata)
OnNeeded = Callable[[AnyKind, str, str], None]


@dataclasses.dataclass(frozen=True, slots=True)
class _Shared:
    """What one observation reads for all machines.

    disks: names of disks, by UID and by name of the machine that labels show.
    attachments: by name of their VM. labelled: VMs of attachments, by the host name in
    their label. deadline: until when the watches are waited for, by the clock.
    """

    disks: Mapping[str, tuple[str, ...]]
    attachments: Mapping[str, tuple[DiskAttachmentRequest, ...]]
    labelled: Mapping[str, frozenset[str]]
    deadline: float


class MachineReader:
    """Observes machines. Thread-safe.

    on_needed: called with kind and name of each object that a creation requires, and
    with the UID of the machine. clock: monotonic seconds.
    """

    def __init__(
        self,
        parent: Parent,
        on_needed: OnNeeded,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parent = parent
        self._on_needed = on_needed
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: set[tuple[str, str]] = set()
        self._deleted: set[str] = set()
        self._is_selection_refused = False
        self._undetached: dict[str, float] = {}
        self._mass = mass_absence.MassAbsence("VirtualMachines", _REMEDY, clock)

    def note_taken(self, kind: AnyKind, name: str) -> None:
        """Note that the parent calls a name taken: no store may show by whom."""
        with self._lock:
            self._taken.add((kind.resource.plural, name))

    def note_deleted(self, name: str, *, is_deleted: bool = True) -> None:
        """Note that a VM was deleted: it needs no direct read but the last one."""
        with self._lock:
            if is_deleted:
                self._deleted.add(name)
            else:
                self._deleted.discard(name)

    def note_selection_refused(self) -> None:
        """Note that the parent refused to delete objects by their labels."""
        self._is_selection_refused = True

    def note_detach_refused(self, name: str) -> None:
        """Note that the parent refused to delete an attachment."""
        with self._lock:
            self._undetached.setdefault(name, self._clock())

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol."""
        if not targets:
            return {}
        try:
            shared = self._read()
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        return {target.ref: self._observation(target, shared) for target in targets}

    def _read(self) -> _Shared:
        parent = self._parent
        vms = parent.items(kinds.VIRTUAL_MACHINES).values()
        listed = {vm.metadata.name for vm in vms}
        self._mass.observed(listed)
        self._mass.listed(listed)
        parent.items(kinds.SECRETS)
        attachments = tuple(parent.items(kinds.DISK_ATTACHMENTS).values())
        names = {row.metadata.name for row in attachments}
        with self._lock:
            kept = self._undetached.items()
            self._undetached = {name: at for name, at in kept if name in names}
        return _Shared(
            _by_machine(parent.items(kinds.VIRTUAL_DISKS).values()),
            _by_vm(attachments),
            _vms_by_label(attachments),
            self._clock() + CATCH_UP_S,
        )

    def _observation(self, target: Target, shared: _Shared) -> Observation:
        """Read what there is for one machine; its error concerns no other."""
        try:
            native = self._native(target, shared)
        except errors.CloudError as error:
            return Unknown(error)
        vm = native.vm
        machine = native.machine
        is_vm = vm is not None and not machine_ownership.other_owner(
            machine, vm.metadata
        )
        is_there = any(
            not machine_ownership.other_owner(machine, about)
            for about in _metadata(native)
        )
        id_ = vm.metadata.uid if vm is not None and is_vm else ""
        return Seen(Observed(is_there, id_, native))

    def _native(self, target: Target, shared: _Shared) -> ParentMachine:
        machine = machine_ownership.identity(target.ref)
        desired = desired_machine.of(target.spec)
        if desired is None:
            self._mass.forget((machine.name,))
        names = self._disk_names(target, desired, shared)
        disks = {
            name: disk
            for name in names
            if (disk := self._find(kinds.VIRTUAL_DISKS, name, shared)) is not None
        }
        secret = machine_names.secret(machine.name)
        native = ParentMachine(
            machine,
            self._find(kinds.VIRTUAL_MACHINES, machine.name, shared),
            disks,
            self._find(kinds.SECRETS, secret, shared),
            shared.attachments.get(machine.name, ()),
            self._refused_s(shared.attachments.get(machine.name, ())),
            selectable=self._selectable(target, frozenset(names), shared),
        )
        if native.vm is None and self._is_doubtful(target, native):
            vm = self._parent.get(kinds.VIRTUAL_MACHINES, machine.name)
            is_last = machine_deletion.is_done(target, native)
            self.note_deleted(machine.name, is_deleted=vm is None and not is_last)
            native = dataclasses.replace(native, vm=vm)
            if vm is None and desired is not None:
                self._mass.check((machine.name,), "find the VM")
        if desired and observed_machine.needs_prerequisites(native, desired):
            needed = self._prerequisites(desired, machine.uid)
            native = dataclasses.replace(native, prerequisites=needed)
        return native

    def _refused_s(
        self, attachments: Collection[DiskAttachmentRequest]
    ) -> Mapping[str, float]:
        now_s = self._clock()
        with self._lock:
            return {
                row.metadata.name: now_s - self._undetached[row.metadata.name]
                for row in attachments
                if row.metadata.name in self._undetached
            }

    def _selectable(
        self, target: Target, names: frozenset[str], shared: _Shared
    ) -> frozenset[str]:
        """Return of which kinds no other object has the labels of this machine.

        A copy of a disk that was made by hand may have them, with a name of its own.
        """
        if self._is_selection_refused or target.only is not None:
            return frozenset()
        ref = target.ref
        disks = names.issuperset(shared.disks.get(ref.uid, ()))
        attachments = shared.labelled.get(ref.name, frozenset()) <= {ref.name}
        rows = ((kinds.VIRTUAL_DISKS, disks), (kinds.DISK_ATTACHMENTS, attachments))
        return frozenset(kind.resource.plural for kind, is_only in rows if is_only)

    def _is_doubtful(self, target: Target, native: ParentMachine) -> bool:
        """Report whether a VM that no store shows may exist, without its label."""
        if target.spec is not None:
            return native.machine.is_recorded
        if machine_deletion.is_done(target, native):
            return True
        with self._lock:
            return native.machine.name not in self._deleted and _is_held(native)

    @staticmethod
    def _disk_names(
        target: Target, desired: DesiredMachine | None, shared: _Shared
    ) -> frozenset[str]:
        """Return the names of a machine's disks, also if its spec has fewer by now."""
        ref = target.ref
        own = {machine_names.boot_disk(ref.name)}
        if desired is not None:
            own |= {disk.name for disk in desired.disks}
        labelled = shared.disks.get(ref.uid, ()) if ref.uid else ()
        is_listed = target.only is not None
        own |= {
            name
            for name in labelled
            if is_listed or machine_names.is_disk_of(ref.name, name)
        }
        return frozenset((*own, *shared.disks.get(f"/{ref.name}", ())))

    def _find(self, kind: ParentKind[T], name: str, shared: _Shared) -> T | None:
        """Return an object, with our own last write, and also one of another owner."""
        parent, key = self._parent, (kind.resource.plural, name)
        if not parent.is_current(kind, name):
            left_s = max(0.0, shared.deadline - self._clock())
            parent.wait(kind, name, _exists, left_s)
        held = parent.find(kind, name)
        with self._lock:
            is_taken = key in self._taken
        if not is_taken:
            return held
        direct = parent.get(kind, name) if held is None else held
        if held is not None or direct is None:
            with self._lock:
                self._taken.discard(key)
        return direct

    def _prerequisites(self, desired: DesiredMachine, uid: str) -> Prerequisites:
        """Read what a creation requires; their stores are opened by the first one."""
        parent, classes = self._parent, kinds.MACHINE_CLASSES
        image_kind = IMAGES[desired.image[0]]
        self._on_needed(classes, desired.class_name, uid)
        self._on_needed(image_kind, desired.image[1], uid)
        for disk in desired.disks:
            self._on_needed(kinds.STORAGE_CLASSES, disk.storage_class, uid)
        images, listed = parent.items(image_kind), parent.items(classes)
        storage = parent.items(kinds.STORAGE_CLASSES)
        return Prerequisites(
            listed.get(parent.key(classes, desired.class_name)),
            images.get(parent.key(image_kind, desired.image[1])),
            storage,
            {
                prerequisites.CLASS_FIELD: _names(listed.values()),
                prerequisites.IMAGE_FIELD: _names(images.values()),
                prerequisites.STORAGE_FIELD: _names(storage.values()),
            },
        )

    # What exists, for gates and lists.

    def vms(self) -> Collection[VirtualMachine]:
        """Return all VMs of the cluster.

        Raises:
            CloudError: they are not known.
        """
        return self._parent.items(kinds.VIRTUAL_MACHINES).values()

    def vm(self, uid: str) -> VirtualMachine | None:
        """Return a VM by its UID, with our own last writes.

        Raises:
            CloudError: it is not known.
        """
        for vm in self.vms():
            if vm.metadata.uid == uid:
                return self._parent.find(kinds.VIRTUAL_MACHINES, vm.metadata.name)
        return None

    def parts(self) -> tuple[tuple[AnyKind, VirtualDisk | ParentSecret], ...]:
        """Return all disks and Secrets of the cluster that are parts of machines.

        Raises:
            CloudError: they are not known.
        """
        disks = self._parent.items(kinds.VIRTUAL_DISKS).values()
        secrets = self._parent.items(kinds.SECRETS).values()
        return (
            *(
                (kinds.VIRTUAL_DISKS, disk)
                for disk in disks
                if disk.metadata.labels.get(ownership.HOSTNAME)
            ),
            *(
                (kinds.SECRETS, secret)
                for secret in secrets
                if secret.type == machine_names.SECRET_TYPE
            ),
        )


def _metadata(native: ParentMachine) -> Iterable[objects.ObjectMeta]:
    parts: tuple[objects.HasMetadata | None, ...] = (
        native.vm,
        native.secret,
        *native.disks.values(),
    )
    return (part.metadata for part in parts if part is not None)


def _is_held(native: ParentMachine) -> bool:
    """Report whether a disk that is deleted is held by a VM that no store shows."""
    return any(
        disk.metadata.deletion_timestamp is not None
        and user.name == native.machine.name
        for disk in native.disks.values()
        for user in disk.status.attached_to_virtual_machines or ()
    )


def _names(listed: Iterable[objects.HasMetadata]) -> tuple[str, ...]:
    return tuple(sorted(row.metadata.name for row in listed))


def _exists(held: object) -> bool:
    """Accept any state: only our own last write is waited for."""
    del held
    return True


def _by_machine(disks: Iterable[VirtualDisk]) -> Mapping[str, tuple[str, ...]]:
    """Return names of disks, by UID of their machine and by "/" and its name."""
    grouped: dict[str, tuple[str, ...]] = {}
    for disk in disks:
        labels, name = disk.metadata.labels, disk.metadata.name
        host = labels.get(ownership.HOSTNAME, "")
        if not host:
            continue
        owner = labels.get(ownership.OWNER_UID, "")
        keys = [owner] if owner else []
        if machine_names.is_disk_of(host, name):
            keys.append(f"/{host}")
        for key in keys:
            grouped[key] = (*grouped.get(key, ()), name)
    return grouped


def _vms_by_label(
    attachments: Iterable[DiskAttachmentRequest],
) -> Mapping[str, frozenset[str]]:
    grouped: dict[str, frozenset[str]] = {}
    for attachment in attachments:
        label = attachment.metadata.labels.get(ownership.ATTACHED_VM, "")
        vm = attachment.spec.virtual_machine_name
        grouped[label] = grouped.get(label, frozenset()) | {vm}
    return grouped


def _by_vm(
    attachments: Iterable[DiskAttachmentRequest],
) -> Mapping[str, tuple[DiskAttachmentRequest, ...]]:
    grouped: dict[str, tuple[DiskAttachmentRequest, ...]] = {}
    for attachment in attachments:
        name = attachment.spec.virtual_machine_name
        grouped[name] = (*grouped.get(name, ()), attachment)
    return grouped
