"""Sends the writes of machines, one request each."""

import contextlib
import re
from collections.abc import Callable

from ovirtsdk4 import types

from lib.cloud import errors
from lib.cloud.machines import Bootstrap, BootstrapData, ReadBootstrap
from lib.cloud.steps import StepResult
from lib.cloud.zvirt import client
from lib.cloud.zvirt.documents import Entity
from lib.cloud.zvirt.machines import engine_vm, vm_deletion, vm_tags
from lib.cloud.zvirt.machines.vm_differences import MIB
from lib.cloud.zvirt.machines.vm_writes import (
    AddNic,
    AssignTag,
    CreateTag,
    CreateVm,
    DetachDisk,
    PrepareDisk,
    RemoveDisk,
    RemoveVm,
    StartVm,
    StopVm,
    TagVm,
    VmWrite,
)

WAIT_S = 2.0
"""When the effect of a write is worth a read; see `vm_reader.LIST_S`."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, Char."""
_WAITS = StepResult(opens_after_s=WAIT_S)


class VmSender:
    """Sends writes; bootstrap data is read by the one that passes it on."""

    def __init__(
        self, access: client.EngineClient, read_bootstrap: ReadBootstrap
    ) -> None:
        self._access = access
        self._read_bootstrap = read_bootstrap

    def send(self, write: VmWrite, correlation_id: str, left_s: float) -> StepResult:
        """Send one write.

        Raises:
            CloudError: it was refused, or the outcome is unknown.
        """
        timeout_s = min(client.TIMEOUT_S, left_s)
        if isinstance(write, StopVm | DetachDisk | RemoveVm | RemoveDisk):
            return self._end(write, correlation_id, timeout_s)
        try:
            return self._make(write, correlation_id, timeout_s)
        except errors.InUse as error:  # a domain is in maintenance
            raise _replaced(errors.Unplaceable, error) from error

    def _make(
        self,
        write: (
            CreateVm | TagVm | PrepareDisk | AddNic | CreateTag | AssignTag | StartVm
        ),
        correlation_id: str,
        timeout_s: float,
    ) -> StepResult:
        match write:
            case CreateVm():
                return self._create(write, correlation_id, timeout_s)
            case PrepareDisk(_, disk, description, size):
                body = types.Disk(description=description)
                if size:
                    body.provisioned_size = size
                self._update(f"disks/{disk}", body, correlation_id, timeout_s)
                recorded = ((vm_deletion.BOOT_DISK, disk),)
                return StepResult(annotations=recorded, opens_after_s=WAIT_S)
            case StartVm(vm):
                self._act(f"vms/{vm}", "start", correlation_id, timeout_s)
            case TagVm(vm, description):
                body = types.Vm(description=description)
                self._update(f"vms/{vm}", body, correlation_id, timeout_s)
            case AddNic(vm, nic):
                body = types.Nic(
                    name=nic.name,
                    vnic_profile=types.VnicProfile(id=nic.profile),
                    interface=types.NicInterface.VIRTIO,
                )
                self._add(f"vms/{vm}/nics", body, correlation_id, timeout_s)
            case CreateTag(name):
                self._tag("tags", name, correlation_id, timeout_s)
            case AssignTag(vm, name):
                self._tag(f"vms/{vm}/tags", name, correlation_id, timeout_s)
        return _WAITS

    def _add(self, path: str, body: Entity, id_: str, timeout_s: float) -> None:
        self._access.add(path, body, correlation_id=id_, timeout_s=timeout_s)

    def _update(self, path: str, body: Entity, id_: str, timeout_s: float) -> None:
        self._access.update(path, body, correlation_id=id_, timeout_s=timeout_s)

    def _act(self, path: str, action: str, id_: str, timeout_s: float) -> None:
        self._access.act(
            path, action, types.Action(), correlation_id=id_, timeout_s=timeout_s
        )

    def _tag(self, path: str, name: str, id_: str, timeout_s: float) -> None:
        """Create or assign a tag; one that exists by now will do."""
        with contextlib.suppress(errors.AlreadyExists):
            self._add(path, types.Tag(name=name), id_, timeout_s)

    # ------------------------------------------------------------ creation

    def _create(self, write: CreateVm, id_: str, timeout_s: float) -> StepResult:
        body = vm_document(write)
        script = _script(write.bootstrap, self._read_bootstrap)
        initialization = types.Initialization(
            custom_script=script, host_name=write.desired.name
        )
        if write.desired.dns_servers:
            initialization.dns_servers = " ".join(write.desired.dns_servers)
        body.initialization = initialization
        query = {"clone": "true" if write.desired.is_clone else "false"}
        item = self._access.add(
            "vms", body, query, correlation_id=id_, timeout_s=timeout_s
        )
        return StepResult(item.id, opens_after_s=WAIT_S)

    # ------------------------------------------------------------ deletion

    def _end(
        self,
        write: StopVm | DetachDisk | RemoveVm | RemoveDisk,
        id_: str,
        timeout_s: float,
    ) -> StepResult:
        """Send a write of a deletion; that there is nothing left to do is fine."""
        try:
            match write:
                case StopVm(vm):
                    self._act(f"vms/{vm}", "stop", id_, timeout_s)
                case DetachDisk(vm, disk):
                    path = f"vms/{vm}/diskattachments/{disk}"
                    self._remove(path, {"detach_only": "true"}, id_, timeout_s)
                case RemoveVm():
                    self._remove_vm(write, id_, timeout_s)
                case RemoveDisk():
                    self._remove_disk(write, id_, timeout_s)
        except errors.NotFound:
            pass
        except errors.InUse as error:
            if not isinstance(write, StopVm):
                raise _replaced(errors.Busy, error) from error
            # a VM that is down refuses to be powered off
        return _WAITS

    def _remove(
        self, path: str, query: client.Query, id_: str, timeout_s: float
    ) -> None:
        self._access.remove(path, query, correlation_id=id_, timeout_s=timeout_s)

    def _remove_vm(self, write: RemoveVm, id_: str, timeout_s: float) -> None:
        path = f"vms/{write.vm}"
        if not write.with_disks:
            try:
                self._remove(path, {"detach_only": "true"}, id_, timeout_s)
                return
            except errors.InvalidRequest:
                pass  # it has snapshots, or depends on its template
        attached = {item.id for item in self._access.list(f"{path}/diskattachments")}
        if not attached <= {write.boot_disk}:
            raise errors.Busy(
                "a disk that is not its boot disk is attached",
                operation="delete vms",
                resource=write.vm,
                was_rejected=True,
            )
        self._remove(path, {}, id_, timeout_s)

    def _remove_disk(self, write: RemoveDisk, id_: str, timeout_s: float) -> None:
        """Remove a boot disk, unless it has another owner or another VM by now."""
        path = f"disks/{write.disk}"
        item = self._access.get(path, timeout_s=timeout_s, all_content=True)
        if item is None:
            return
        is_own = engine_vm.is_tagged(write.machine, item.entity.description)
        if not is_own or item.entity.vms:
            raise errors.InUse(
                "it is used by another VM, or has another ownership tag by now",
                operation="delete disks",
                resource=write.disk,
                was_rejected=True,
            )
        self._remove(path, {}, id_, timeout_s)


def vm_document(write: CreateVm) -> Entity:
    """Return the VM of a creation, without its initialization.

    Source: deckhouse capz-controller-manager: type, memory and its policy.
    """
    desired, machine = write.desired, write.machine
    memory = desired.memory_mib * MIB
    vm = types.Vm(
        name=desired.name,
        description=vm_tags.tag(machine.cluster_id, machine.uid),
        cluster=types.Cluster(id=desired.cluster),
        template=types.Template(id=write.template),
        type=types.VmType.HIGH_PERFORMANCE,
        memory=memory,
        memory_policy=types.MemoryPolicy(
            guaranteed=memory, max=memory, ballooning=False
        ),
        cpu=types.Cpu(
            topology=types.CpuTopology(
                sockets=desired.sockets, cores=desired.cores, threads=desired.threads
            )
        ),
    )
    if desired.domain:
        disk = types.Disk(
            id=write.disk, storage_domains=[types.StorageDomain(id=desired.domain)]
        )
        vm.disk_attachments = [types.DiskAttachment(disk=disk)]
    return vm


def _replaced(
    kind: type[errors.CloudError], error: errors.CloudError
) -> errors.CloudError:
    """Return an error with the reason that it has for a machine."""
    return kind(
        error.message,
        operation=error.operation,
        resource=error.resource,
        was_rejected=True,
    )


def _script(bootstrap: Bootstrap, read: Callable[[Bootstrap], BootstrapData]) -> str:
    """Return bootstrap data as the text that it is; the SDK escapes it.

    Raises:
        CloudError: it cannot be read, or is no text.
    """
    data = read(bootstrap).reveal()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _NO_XML.search(text):
        raise errors.InvalidRequest(
            "the bootstrap data has bytes that are no text of cloud-config",
            operation="create vms",
            resource=bootstrap.name,
            was_rejected=True,
        ) from None
    return text
