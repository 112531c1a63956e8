"""Which machines are concerned by a change in the parent: hints for the flow.

Rules: a VM that runs writes statistics, which are no report; only what a plan reads is
compared. A class, image or storage class is reported to machines that need it. Once
the parent answers again after a failure, every machine is concerned.
"""

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import (
    DiskAttachmentRequest,
    ParentSecret,
    VirtualDisk,
    VirtualMachine,
)
from lib.cloud.dvp.machines.machine_writes import AnyKind
from lib.cloud.dvp.parent import Parent
from lib.cloud.machines import Ref
from lib.kube import objects

K = TypeVar("K")


class MachineChanges:
    """Reports changes, each with the UID of a machine object. Thread-safe."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._subscribers: list[Callable[[str], None]] = []
        self._uids: dict[str, set[str]] = {}
        self._needed: dict[tuple[str, str], set[str]] = {}
        self._followed: set[str] = set()

    def expect(self, ref: Ref) -> None:
        """Report changes of objects with the names of this machine."""
        if ref.uid:
            with self._lock:
                self._uids.setdefault(ref.name, set()).add(ref.uid)

    def forget(self, ref: Ref) -> None:
        """Report nothing more for a machine of which nothing is left."""
        with self._lock:
            _discard(self._uids, ref.name, ref.uid)
            for key in tuple(self._needed):
                _discard(self._needed, key, ref.uid)

    def need(self, kind: AnyKind, name: str, uid: str) -> None:
        """Report changes of an object that the creation of a machine requires."""
        with self._lock:
            self._needed.setdefault((kind.resource.plural, name), set()).add(uid)
            is_followed = kind.resource.plural in self._followed
            is_heard = bool(self._subscribers)
            if is_heard:
                self._followed.add(kind.resource.plural)
        if is_heard and not is_followed:
            self._follow(kind)

    def _follow(self, kind: AnyKind) -> None:
        def changed(
            key: str, old: objects.HasMetadata | None, new: objects.HasMetadata | None
        ) -> None:
            del key
            about = new or old
            if about is None or (old is not None and _same_state(old, new)):
                return
            with self._lock:
                uids = self._needed.get((kind.resource.plural, about.metadata.name))
                uids = set(uids or ())
            self._report(uids)

        self._parent.on_change(kind, changed)

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See `lib.cloud.protocol.ChangeReports`."""
        with self._lock:
            self._subscribers.append(fn)
            is_first = len(self._subscribers) == 1
        if is_first:
            self._parent.on_change(kinds.VIRTUAL_MACHINES, self._vm_changed)
            self._parent.on_change(kinds.VIRTUAL_DISKS, self._disk_changed)
            self._parent.on_change(kinds.SECRETS, self._secret_changed)
            self._parent.on_change(kinds.DISK_ATTACHMENTS, self._attachment_changed)
            self._parent.on_recovery(self._recovered)

    def _recovered(self) -> None:
        with self._lock:
            uids = set[str]().union(*self._uids.values())
        self._report(uids)

    def _vm_changed(
        self, key: str, old: VirtualMachine | None, new: VirtualMachine | None
    ) -> None:
        del key
        about = new or old
        if about is not None and _of_vm(old) != _of_vm(new):
            self._changed(about.metadata, about.metadata.name)

    def _disk_changed(
        self, key: str, old: VirtualDisk | None, new: VirtualDisk | None
    ) -> None:
        del key
        about = new or old
        host = about.metadata.labels.get(ownership.HOSTNAME, "") if about else ""
        if about is not None and host and _of_disk(old) != _of_disk(new):
            self._changed(about.metadata, host)

    def _secret_changed(
        self, key: str, old: ParentSecret | None, new: ParentSecret | None
    ) -> None:
        del key
        about = new or old
        if about is not None and _of_metadata(old) != _of_metadata(new):
            host = about.metadata.labels.get(ownership.HOSTNAME, "")
            self._changed(about.metadata, host)

    def _attachment_changed(
        self,
        key: str,
        old: DiskAttachmentRequest | None,
        new: DiskAttachmentRequest | None,
    ) -> None:
        """Report the end of an attachment: a VM may wait for it to be deleted."""
        del key
        if new is None and old is not None:
            with self._lock:
                uids = set(self._uids.get(old.spec.virtual_machine_name, ()))
            self._report(uids)

    def _changed(self, about: objects.ObjectMeta, name: str) -> None:
        owner = about.labels.get(ownership.OWNER_UID, "")
        with self._lock:
            uids = set(self._uids.get(name, ()))
        self._report(uids | ({owner} if owner else set()))

    def _report(self, uids: Iterable[str]) -> None:
        with self._lock:
            subscribers = tuple(self._subscribers)
        for uid in sorted(uids):
            for subscriber in subscribers:
                subscriber(uid)


def _discard(sets: dict[K, set[str]], key: K, uid: str) -> None:
    uids = sets.get(key, set())
    uids.discard(uid)
    if not uids:
        sets.pop(key, None)


def _of_metadata(held: objects.HasMetadata | None) -> object:
    if held is None:
        return None
    about = held.metadata
    is_deleted = about.deletion_timestamp is not None
    return about.uid, is_deleted, dict(about.labels), dict(about.annotations)


def _of_vm(vm: VirtualMachine | None) -> object:
    return None if vm is None else (_of_metadata(vm), vm.spec, vm.status)


def _of_disk(disk: VirtualDisk | None) -> object:
    """Return what a plan reads of a disk: not which VMs have it."""
    if disk is None:
        return None
    return _of_metadata(disk), disk.spec, disk.status.phase, disk.status.conditions


def _same_state(old: objects.HasMetadata, new: objects.HasMetadata | None) -> bool:
    """Report whether nothing but the metadata of a prerequisite has changed."""
    if new is None:
        return False
    parts = ("spec", "status")
    return all(getattr(old, part, None) == getattr(new, part, None) for part in parts)
