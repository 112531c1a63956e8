"""Implements the protocol of volumes with disks of an engine.

A disk has the ID that follows from cluster and name of its volume, so that two requests
for one claim never result in two disks. Disks of the reference, which have no tag, are
found by their alias.
"""

import functools
import time
from collections.abc import Callable, Collection

from ovirtsdk4 import types

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.support import cluster_witnesses, parallel
from lib.cloud.volumes import (
    ById,
    ByName,
    Capacity,
    Feature,
    Found,
    Problems,
    Ref,
    Volume,
    VolumeId,
    VolumeRequest,
    Volumes,
    VolumeSpec,
    VolumesReading,
)
from lib.cloud.zvirt import client, disk_tags, home
from lib.cloud.zvirt.volumes import (
    class_parameters,
    disk_paths,
    disk_reads,
    disk_writes,
    domains,
    translate,
)

FEATURES = frozenset(
    {
        Feature.LIST,
        Feature.CAPACITY,
        Feature.EXPAND_OFFLINE,
        Feature.EXPAND_ONLINE,
    }
)
INTERFACE = types.DiskInterface.VIRTIO_SCSI
"""Source: openshift/ovirt-csi-driver, ControllerPublishVolume."""


class EngineVolumes(Volumes):
    """The volumes of one cluster in an engine."""

    sizing = class_parameters.SIZING
    context_keys: frozenset[str] = frozenset()

    def __init__(
        self,
        access: client.EngineClient,
        place: home.EngineHome,
        cluster: cluster_witnesses.OfCluster,
        data_center: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """data_center: name or ID of the one whose storage is used; empty: any."""
        self._access = access
        self._home = place
        self._cluster = cluster
        self._clock = clock
        self._domains = domains.StorageDomains(access, data_center, clock)
        self._writes = disk_writes.DiskWrites(clock)
        self._reads = disk_reads.DiskReads(
            access, cluster.id, self._domains, self._writes, clock
        )
        self._witnesses = cluster_witnesses.WitnessSearch(
            cluster, disk_paths.is_id, self._has_vm, self.listing, clock
        )

    def is_id(self, text: str) -> bool:
        """See the protocol."""
        return disk_paths.is_id(text)

    def type_name(self, type: str) -> str:
        """See the protocol; a type is a storage domain."""
        if not disk_paths.is_id(type):
            return type
        domain = self._domains.with_id(type, client.TIMEOUT_S)
        return type if domain is None else domain.name

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """See the protocol."""
        return class_parameters.parse(request)

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """See the protocol. Without a type: of all storage domains for data."""
        del zones
        usable = self._domains.usable(client.TIMEOUT_S)
        if type:
            chosen = self._domains.find(type, client.TIMEOUT_S)
            usable = tuple(domain for domain in usable if domain.id == chosen.id)
        sizes = [domain.available_bytes for domain in usable]
        return Capacity(sum(sizes), max(sizes, default=0))

    # Reads.

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """See the protocol: names are searched together, disks read one by one."""
        limit_s = client.TIMEOUT_S
        deadline = self._clock() + min(limit_s, within_s or limit_s)
        observed: dict[Ref, Found] = dict.fromkeys(refs, ())
        names = [ref for ref in refs if isinstance(ref, ByName)]
        observed |= self._reads.by_name(names, deadline)
        ids = [ref for ref in refs if isinstance(ref, ById) and self.is_id(ref.id)]
        read = functools.partial(self._by_id, deadline)
        observed |= dict(zip(ids, parallel.each(read, ids, "disk"), strict=True))
        return VolumesReading(observed)

    def _by_id(self, deadline: float, ref: ById) -> Found:
        try:
            volume = self._reads.volume(ref, deadline)
            if volume is None:
                self._require_home("find disks", ref, deadline)
                return ()
            self._note_home(volume)
            return (volume,)
        except errors.CloudError as error:
            return Unknown(error)

    def _note_home(self, volume: Volume) -> None:
        """Record that a disk of the cluster was observed in this engine."""
        guard = self._home.guard
        is_created = volume.id in guard.memory.created
        if volume.cluster == self._cluster.id and not is_created:
            guard.observed()

    def _require_home(self, operation: str, ref: ById, deadline: float) -> None:
        """Check that this engine is that of the cluster: an absence counts here.

        Raises:
            CloudError: nothing of the cluster was observed in it, or it is not known.
        """
        guard = self._home.guard
        if guard.is_created_here(ref.id):
            return
        search = functools.partial(
            self._witnesses.exist, [ref.witness], guard.memory.created, deadline
        )
        self._home.check_absence(operation, search)

    def _has_vm(self, id_: str, deadline: float) -> bool:
        left_s = deadline - self._clock()
        return self._access.get(f"{disk_reads.VMS}/{id_}", timeout_s=left_s) is not None

    def listing(self) -> tuple[Volume, ...]:
        """See the protocol: disks with the tag, or with an alias of a claim."""
        return self._reads.listing(self._cluster.node_ids)

    # Writes.

    def create(self, spec: VolumeSpec) -> Volume:
        """See the protocol. The engine does not check that the ID is free."""
        operation = "create disk"
        domain = self._domains.find(spec.type, client.TIMEOUT_S)
        if spec.size_bytes > domain.size_bytes:
            raise self._too_large(spec.size_bytes, domain, operation, spec.name)
        id_ = disk_paths.disk_id(spec.cluster, spec.name)
        path = disk_paths.path(id_)
        if not self._writes.take_absent(id_) and self._access.get(path) is not None:
            text = "the disk was created by another call, and is read again"
            raise errors.Busy(text, operation=operation, resource=id_)
        item = self._access.add(
            disk_paths.DISKS,
            _disk(id_, spec, domain),
            correlation_id=disk_paths.creation(id_),
        )
        self._home.guard.created(item.id)
        write = disk_writes.DiskWrite(disk_paths.creation(id_))
        self._writes.jobs.put(item.id, write)
        return translate.volume(item.entity, item.status, (), domain.name)

    def _too_large(
        self, size: int, domain: domains.StorageDomain, operation: str, name: str
    ) -> errors.OutOfRange:
        text = (
            f"capacity_range.required_bytes: {size}: must be at most"
            f' {domain.size_bytes}, the size of storage domain "{domain.name}"'
        )
        return errors.OutOfRange(text, operation=operation, resource=name)

    def delete(self, volume_id: VolumeId) -> None:
        """See the protocol.

        The engine would delete a disk that is attached to a stopped VM, or unplugged.
        """
        operation = "delete disk"
        if not self.is_id(volume_id):
            return
        if not self._writes.take_free(volume_id):
            deadline = self._clock() + client.TIMEOUT_S
            volume = self._reads.volume(ById(volume_id), deadline)
            self._writes.take_free(volume_id)
            if volume is None:
                self._require_home(operation, ById(volume_id), deadline)
                return
            if volume.attachments:
                text = f"it is attached to {volume.attachments[0].holder}"
                raise errors.AttachedElsewhere(
                    text, operation=operation, resource=volume_id
                )
        try:
            self._access.remove(disk_paths.path(volume_id))
        except errors.NotFound:
            return

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """See the protocol; a disk of the reference gets the tag of the cluster."""
        native = volume.native
        assert isinstance(native, translate.DiskNative)  # noqa: S101 -- of this package
        domain = self._domains.with_id(native.domain, client.TIMEOUT_S)
        operation = "update disk"
        if domain is not None and size_bytes > domain.size_bytes:
            raise self._too_large(size_bytes, domain, operation, volume.id)
        body = types.Disk(provisioned_size=size_bytes)
        if not disk_tags.clusters_of(native.description):
            tagged = disk_tags.with_tag(native.description, self._cluster.id)
            body.description = tagged
        self._writes.failures.pop(volume.id)
        correlation_id = disk_paths.resizing(volume.id)
        try:
            self._access.update(
                disk_paths.path(volume.id), body, correlation_id=correlation_id
            )
        except errors.Unplaceable as error:
            # No other place can be tried for a disk that exists.
            raise errors.QuotaExceeded(
                error.message, operation=error.operation, resource=volume.id
            ) from error
        write = disk_writes.DiskWrite(correlation_id, is_resizing=True)
        self._writes.jobs.put(volume.id, write)

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol; an inactive attachment is activated."""
        operation = "create diskattachments"
        if not self.is_id(instance_id):
            text = "not found: must be the ID of a VM"
            raise errors.NotFound(text, operation=operation, resource=instance_id)
        here = [a for a in volume.attachments if a.instance_id == instance_id]
        if here:
            if not here[0].is_published:
                self._activate(volume.id, instance_id)
            return
        try:
            self._access.add(
                disk_paths.attachments_path(instance_id),
                _attachment(volume.id),
                owner=f"{disk_reads.VMS}/{instance_id}",
            )
        except errors.AlreadyExists:
            if not self._is_active(volume.id, instance_id):
                self._activate(volume.id, instance_id)
        except errors.InvalidRequest as error:
            self._require_disk(volume.id, operation, error)
            raise
        self._writes.attached(volume.id, instance_id)

    def _require_disk(
        self, id_: VolumeId, operation: str, error: errors.InvalidRequest
    ) -> None:
        """Check that a refused request does not refer to a missing disk.

        Raises:
            NotFound: it does.
        """
        if self._access.get(disk_paths.path(id_)) is None:
            raise errors.NotFound(
                "not found", operation=operation, resource=id_
            ) from error

    def _is_active(self, id_: VolumeId, vm: InstanceId) -> bool:
        item = self._access.get(disk_paths.attachment_path(vm, id_))
        return item is not None and bool(item.entity.active)

    def _activate(self, id_: VolumeId, vm: InstanceId) -> None:
        """Plug a disk that is attached already."""
        path = disk_paths.attachment_path(vm, id_)
        try:
            self._access.update(path, types.DiskAttachment(active=True))
        except errors.NotFound as error:
            text = "the attachment was removed just now"
            raise errors.Busy(text, operation=error.operation, resource=id_) from error

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol. The disk stays: that is the engine's default, and said."""
        if not self.is_id(instance_id):
            return
        path = disk_paths.attachment_path(instance_id, volume.id)
        try:
            self._access.remove(path, {"detach_only": "true"})
        except errors.NotFound:
            return


def _disk(id_: str, spec: VolumeSpec, domain: domains.StorageDomain) -> types.Disk:
    choice = spec.provider
    assert isinstance(choice, class_parameters.DiskChoice)  # noqa: S101 -- as parsed
    return types.Disk(
        id=id_,
        alias=spec.name,
        description=disk_tags.tag(spec.cluster),
        provisioned_size=spec.size_bytes,
        format=domains.disk_format(domain, choice.is_thin),
        sparse=choice.is_thin,
        storage_domains=[types.StorageDomain(id=domain.id)],
    )


def _attachment(id_: str) -> types.DiskAttachment:
    return types.DiskAttachment(
        active=True, bootable=False, interface=INTERFACE, disk=types.Disk(id=id_)
    )
