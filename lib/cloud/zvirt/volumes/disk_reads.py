"""Reads of disks, with attachments and the jobs of their last writes."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.support import parallel
from lib.cloud.support.cluster_witnesses import NodeIds
from lib.cloud.volumes import (
    Attachment,
    ById,
    ByName,
    Found,
    Ref,
    Volume,
    VolumeId,
    VolumePhase,
)
from lib.cloud.zvirt import api_paths, client, disk_tags, searching
from lib.cloud.zvirt.documents import Entity, Item
from lib.cloud.zvirt.volumes import (
    disk_jobs,
    disk_paths,
    disk_writes,
    domains,
    translate,
)

NAMES = 40
"""Volumes of one search by name; each has two terms."""
IDS = 100
"""VMs of one search by ID."""
LIST_TIMEOUT_S = 120.0
VMS = "vms"
Clock = Callable[[], float]


class DiskReads:
    """Reads disks of one cluster in an engine."""

    def __init__(
        self,
        access: client.EngineClient,
        cluster: str,
        storage: domains.StorageDomains,
        writes: disk_writes.DiskWrites,
        clock: Clock,
    ) -> None:
        """cluster: in the tags of its disks. clock: the one of deadlines."""
        self._access = access
        self._cluster = cluster
        self._domains = storage
        self._writes = writes
        self._clock = clock

    # By name.

    def by_name(self, refs: Collection[ByName], deadline: float) -> dict[Ref, Found]:
        """Search the disks of volumes; also those of the reference, by their alias.

        Attachments are read of those that have failed alone.
        """
        pairs = [
            (ref, disk_paths.search_terms(self._id_of(ref.name), ref.name))
            for ref in refs
        ]
        by_term = {" or ".join(terms): ref for ref, terms in pairs}
        answers: dict[Ref, Found] = {}
        for search in searching.either(list(by_term), NAMES):
            some = [ref for text, ref in by_term.items() if text in search]
            answers |= self._searched(search, some, deadline)
        return answers

    def _searched(
        self, search: str, refs: Sequence[ByName], deadline: float
    ) -> dict[Ref, Found]:
        at = self._writes.now()
        left_s = deadline - self._clock()
        try:
            items = searching.find(
                self._access, disk_paths.DISKS, search, timeout_s=left_s
            )
        except errors.CloudError as error:
            return {ref: Unknown(error) for ref in refs}
        answers = parallel.each(
            lambda ref: self._named(ref.name, items, at, deadline), refs, "disk"
        )
        return dict(zip(refs, answers, strict=True))

    def _named(
        self, name: str, items: Sequence[Item], at: float, deadline: float
    ) -> Found:
        id_ = self._id_of(name)
        matches = [
            item
            for item in items
            if item.id == id_ or str(item.entity.alias or item.entity.name) == name
        ]
        try:
            if not matches:
                self._writes.observed_absent(id_, at)
                return self._lost(id_, name, deadline)
            # Disks of the reference are older than one of this process.
            matches.sort(key=lambda item: (item.id == id_, item.id))
            return tuple(self._owned(item, deadline) for item in matches)
        except errors.CloudError as error:
            return Unknown(error)

    def _id_of(self, name: str) -> str:
        return disk_paths.disk_id(self._cluster, name)

    def _owned(self, item: Item, deadline: float) -> Volume:
        """Return a disk found by name: without a tag it counts as the cluster's."""
        volume = self._volume(item.entity, item.status, (), deadline)
        if volume.phase is VolumePhase.FAILED:
            volume = self.volume(ById(volume.id), deadline) or volume
        if volume.cluster is None:
            volume = dataclasses.replace(volume, cluster=self._cluster)
        return volume

    def _lost(self, id_: str, name: str, deadline: float) -> tuple[Volume, ...]:
        """Return what is left of a disk that this process has begun to create.

        Its job still runs, or it has failed, and the engine has removed the disk.
        """
        write = self._writes.jobs.get(id_)
        if write is None or write.is_resizing:
            return ()
        state = self._job(write, deadline)
        if not state.is_running:
            self._writes.jobs.pop(id_)
        if not state.is_running and not state.failure:
            return ()
        phase = VolumePhase.CREATING if state.is_running else VolumePhase.FAILED
        volume = Volume(
            VolumeId(id_),
            name,
            0,
            phase,
            native_phase="absent",
            cluster=self._cluster,
            was_ready=False,
        )
        return (_explained(volume, state.failure),)

    # By ID.

    def volume(self, ref: ById, deadline: float) -> Volume | None:
        """Read one disk; None: the engine does not show it.

        Raises:
            CloudError: it is not known.
        """
        at = self._writes.now()
        vm = self._likely_vm(ref)
        if vm and (attached := self._on_vm(ref.id, vm, deadline)):
            return attached
        item = self._access.get(
            disk_paths.path(ref.id),
            timeout_s=deadline - self._clock(),
            witness=self._witness,
            all_content=True,
        )
        if item is None:
            self._writes.vms.pop(ref.id)
            self._writes.observed_absent(ref.id, at)
            return None
        held = self._attachments(ref, translate.vms(item.entity), deadline)
        if not held:
            self._writes.observed_free(ref.id, at)
        return self._volume(item.entity, item.status, held, deadline)

    @property
    def _witness(self) -> str:
        """Path of what the user must see, as long as it has its permissions."""
        center = self._domains.data_center_id
        return f"{domains.DATA_CENTERS}/{center}" if center else ""

    def _likely_vm(self, ref: ById) -> str:
        """Return the VM that has a disk, as it seems; empty: that is not known."""
        witness = str(ref.witness or "")
        if not ref.in_full or not disk_paths.is_id(witness):
            return ""
        is_held = self._writes.vms.get(ref.id) == witness
        return witness if is_held or ref.shows_reserved else ""

    def _on_vm(self, id_: str, vm: str, deadline: float) -> Volume | None:
        """Read a disk by its attachment to a VM, one request; None: it has none."""
        path = disk_paths.attachment_path(vm, id_)
        item = self._access.get(path, ("disk",), deadline - self._clock(), witness=None)
        disk = None if item is None else item.entity.disk
        if item is None or disk is None or disk.provisioned_size is None:
            self._writes.vms.pop(id_)
            return None
        if disk.shareable:
            return None  # another VM may have it, too
        status = str(getattr(disk.status, "value", disk.status) or "")
        held = translate.attachment(vm, is_active=bool(item.entity.active))
        return self._volume(disk, status, (held,), deadline)

    def _attachments(
        self, ref: ById, vms: Sequence[str], deadline: float
    ) -> tuple[Attachment, ...]:
        """Return the attachments to the VMs that a disk lists.

        in_full: each is read: one may be inactive, or be that of a snapshot, which is
        none. An engine that hides the VM proves nothing.
        """
        if not ref.in_full:
            return tuple(map(translate.attachment, vms))
        read = functools.partial(self._attachment, ref.id, deadline)
        return tuple(filter(None, parallel.each(read, vms, "attachment")))

    def _attachment(self, id_: str, deadline: float, vm: str) -> Attachment | None:
        item = self._access.get(
            disk_paths.attachment_path(vm, id_),
            timeout_s=deadline - self._clock(),
            witness=f"{VMS}/{vm}",
        )
        if item is None:
            return None
        return translate.attachment(vm, is_active=bool(item.entity.active))

    # All.

    def listing(self, node_ids: NodeIds) -> tuple[Volume, ...]:
        """Return the disks of the cluster, with their VMs; some pages each.

        node_ids: of the VMs that are asked for disks; not known: all VMs.

        Raises:
            CloudError: not all of it could be read.
        """
        deadline = self._clock() + LIST_TIMEOUT_S
        tag = api_paths.quoted(f"*{disk_tags.tag(self._cluster)}*")
        search = f"description={tag} or name={disk_paths.REFERENCE_PREFIX}*"
        items = searching.find(
            self._access,
            disk_paths.DISKS,
            search,
            not_before=self._clock(),
            timeout_s=LIST_TIMEOUT_S,
        )
        mine = [item for item in items if self._is_listed(item)]
        held = self._held(node_ids, deadline) if mine else {}
        return tuple(
            self._volume(item.entity, item.status, held.get(item.id, ()), deadline)
            for item in mine
        )

    def _is_listed(self, item: Item) -> bool:
        clusters = disk_tags.clusters_of(item.entity.description)
        alias = str(item.entity.alias or item.entity.name or "")
        is_of_reference = alias.startswith(disk_paths.REFERENCE_PREFIX)
        return clusters == (self._cluster,) if clusters else is_of_reference

    def _held(
        self, node_ids: NodeIds, deadline: float
    ) -> Mapping[str, tuple[Attachment, ...]]:
        """Return the attachments of VMs by disk."""
        held: dict[str, tuple[Attachment, ...]] = {}
        for vm in self._vms(node_ids, deadline):
            for row in vm.entity.disk_attachments or ():
                disk = str(row.id)
                attachment = translate.attachment(vm.id, is_active=bool(row.active))
                held[disk] = (*held.get(disk, ()), attachment)
        return held

    def _vms(self, node_ids: NodeIds, deadline: float) -> Iterator[Item]:
        follow = ("disk_attachments",)
        ids = node_ids()
        now = self._clock()
        if ids is None:
            yield from self._access.list_all(
                VMS, follow=follow, not_before=now, timeout_s=deadline - now
            )
            return
        terms = [f"id={id_}" for id_ in sorted(set(filter(disk_paths.is_id, ids)))]
        for search in searching.either(terms, IDS):
            left_s = deadline - self._clock()
            yield from searching.find(
                self._access, VMS, search, follow, now, timeout_s=left_s
            )

    # Volumes.

    def _volume(
        self,
        disk: Entity,
        status: str,
        held: Collection[Attachment],
        deadline: float,
    ) -> Volume:
        domain = self._domain_name(translate.domain_id(disk), deadline)
        volume = translate.volume(disk, status, held, domain)
        if volume.phase is VolumePhase.FAILED:
            return self._failed(volume, deadline)
        return self._with_job(volume, deadline)

    def _domain_name(self, id_: str, deadline: float) -> str:
        """Return the name of a domain; empty if it is not known."""
        try:
            domain = self._domains.with_id(id_, deadline - self._clock())
        except errors.CloudError:
            return ""
        return "" if domain is None else domain.name

    def _failed(self, volume: Volume, deadline: float) -> Volume:
        """Return an illegal disk; it was never fit for use if its creation failed."""
        write = self._writes.jobs.pop(volume.id)
        if write is not None and write.is_resizing:
            failure = self._job(write, deadline).failure
            self._writes.failures.put(volume.id, failure)
            return _explained(volume, failure)
        write = disk_writes.DiskWrite(disk_paths.creation(volume.id))
        failure = self._job(write, deadline).failure
        if failure and not volume.attachments:
            volume = dataclasses.replace(volume, was_ready=False)
        return _explained(volume, failure or self._writes.failures.get(volume.id) or "")

    def _with_job(self, volume: Volume, deadline: float) -> Volume:
        """Return a volume as the job of this process's last write shows it."""
        message = self._writes.failures.get(volume.id) or ""
        volume = dataclasses.replace(volume, message=message)
        write = self._writes.jobs.get(volume.id)
        if write is None:
            return volume
        phase = VolumePhase.RESIZING if write.is_resizing else VolumePhase.CREATING
        if volume.phase in (VolumePhase.CREATING, VolumePhase.BUSY):
            return dataclasses.replace(volume, phase=phase)
        state = self._job(write, deadline)
        if state.is_running:
            return dataclasses.replace(volume, phase=phase)
        self._writes.jobs.pop(volume.id)
        if state.failure and write.is_resizing:
            self._writes.failures.put(volume.id, state.failure)
            return dataclasses.replace(volume, message=state.failure)
        return volume

    def _job(self, write: disk_writes.DiskWrite, deadline: float) -> disk_jobs.JobState:
        left_s = deadline - self._clock()
        return disk_jobs.read(self._access, write.correlation_id, left_s)


def _explained(volume: Volume, failure: str) -> Volume:
    """Return a volume with why it failed; is it the place that cannot hold it?"""
    is_full = disk_jobs.is_for_space(failure)
    return dataclasses.replace(volume, message=failure, is_unplaceable=is_full)
