"""The transitions of the simulator: what each is based on, and what is assumed. Pure.

Facts are those published about the platform's virtualization module (its API types,
definitions, controllers): each row names the behaviour. What they leave open is in the
column "assumed". delay_s is the usual delay; see `settings.py` for others.
"""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Transition:
    """One transition. section: the facts. assumed: what they do not contain."""

    section: str
    change: str
    assumed: str = ""
    delay_s: float = 0.0


_MACHINE = "1.3 VirtualMachine.status"
_DISK = "1.4 VirtualDisk"
_ATTACHMENT = "1.5 VirtualMachineBlockDeviceAttachment"
_OTHERS = "1.7 Images, classes, IPs, operations"
_BALANCER = "3.1 LoadBalancer"

TRANSITIONS: Mapping[str, Transition] = {
    "machine-accepted": Transition(
        _MACHINE, "new -> Pending, finalizer vm-cleanup", "prefix of the finalizer"
    ),
    "machine-address": Transition(
        "1.2 VirtualMachine.spec", "an Auto address is made", "name of the address"
    ),
    "machine-blocked": Transition(
        _MACHINE, "Pending with the condition that is missing", "reasons"
    ),
    "machine-held-back": Transition(
        "1.2 VirtualMachine.spec",
        "Pending -> Stopped with AlwaysOff and Manual, once its parts are ready",
        "Manual begins Stopped",
    ),
    "machine-started": Transition(
        _MACHINE,
        "Pending -> Starting, the launcher Pod is created",
        "requests of the Pod are cores and memory.size; a refused Pod: Pending",
        0.05,
    ),
    "machine-running": Transition(
        _MACHINE,
        "Starting -> Running with nodeName, devices; ipAddress since it is bound; what"
        " fails is Pending again: nothing sets Degraded any more",
        "",
        0.1,
    ),
    "machine-labels": Transition(
        _MACHINE, "labels of the VM are those of its launcher Pods that run"
    ),
    "machine-devices": Transition(
        _MACHINE, "status.blockDeviceRefs follows spec and attachments", "targets sdX"
    ),
    "machine-switched-off": Transition(
        "1.2 VirtualMachine.spec", "Running -> Stopping: runPolicy AlwaysOff"
    ),
    "machine-switched-on": Transition(
        "1.2 VirtualMachine.spec", "Stopped -> Pending: runPolicy AlwaysOn"
    ),
    "machine-stopped": Transition(
        _MACHINE, "Stopping -> Stopped, the launcher Pod is gone", "", 0.1
    ),
    "machine-migrated": Transition(
        _MACHINE,
        "Migrating -> Running on another node, same address and labels",
        "a second launcher Pod, then one",
        0.3,
    ),
    "machine-ending": Transition(_MACHINE, "deleted -> Terminating, Pods go"),
    "machine-gone": Transition(
        _MACHINE, "finalizer vm-cleanup is removed once no Pod is left", "", 0.1
    ),
    "pod-running": Transition(
        _MACHINE, "a launcher Pod is Ready with the address of its VM", "", 0.05
    ),
    "pod-gone": Transition(_MACHINE, "a launcher Pod that is deleted terminates"),
    "disk-accepted": Transition(
        _DISK, "new -> Pending, finalizer vd-cleanup", "prefix of the finalizer"
    ),
    "disk-refused": Transition(
        _DISK,
        "Pending, or Failed when its image is larger, with the reason of Ready=False;"
        " only ProvisioningFailedTerminally is final",
        "message",
    ),
    "disk-claimed": Transition(
        _DISK,
        "Pending -> Provisioning, or WaitForFirstConsumer; the claim is created, with"
        " a quota's refusal as QuotaExceeded",
        "name of the claim",
        0.05,
    ),
    "disk-consumed": Transition(
        _DISK, "WaitForFirstConsumer -> Provisioning with a scheduled consumer"
    ),
    "disk-volume": Transition(_DISK, "the claim is bound", "", 0.05),
    "disk-ready": Transition(
        _DISK, "Provisioning -> Ready with capacity and target", "capacity in Gi or Mi"
    ),
    "disk-expanding": Transition(
        _DISK, "Ready -> Resizing; refused with Resizing=False NotAvailable", "", 0.05
    ),
    "disk-expanded": Transition(
        _DISK, "Resizing -> Ready, capacity follows, the condition is removed", "", 0.2
    ),
    "disk-moving": Transition(
        _DISK, "storageClassName changed: Ready -> Migrating", "only of Ready disks"
    ),
    "disk-moved": Transition(
        _DISK, "Migrating -> Ready with the new class", "the claim stays", 0.2
    ),
    "disk-used": Transition(
        _DISK, "attachedToVirtualMachines, InUse, finalizer vd-protection"
    ),
    "disk-released": Transition(
        _ATTACHMENT,
        "attachedToVirtualMachines loses a VM slightly after the attachment",
        "",
        0.2,
    ),
    "disk-ending": Transition(_DISK, "deleted -> Terminating"),
    "disk-gone": Transition(
        _DISK, "finalizers are removed once no VM uses the disk", "", 0.05
    ),
    "attachment-accepted": Transition(
        _ATTACHMENT, "new -> Pending, finalizer vmbda-cleanup", "prefix"
    ),
    "attachment-waits": Transition(
        _ATTACHMENT,
        "Pending while disk or VM is not ready, or 16 devices are attached",
        "reasons; Attached -> Pending when the VM stops",
    ),
    "attachment-conflict": Transition(
        _ATTACHMENT,
        "-> Failed: the device is in the VM's spec, or races with another attachment",
        "",
    ),
    "attachment-sent": Transition(
        _ATTACHMENT, "Pending -> InProgress, AttachmentRequestSent", "", 0.05
    ),
    "attachment-attached": Transition(
        _ATTACHMENT, "InProgress -> Attached, the device is in the guest", "", 0.1
    ),
    "attachment-ending": Transition(
        _ATTACHMENT, "deleted -> Terminating, DetachPending"
    ),
    "attachment-gone": Transition(
        _ATTACHMENT, "finalizer vmbda-cleanup is removed once detached", "", 0.1
    ),
    "image-provisioning": Transition(_OTHERS, "new -> Provisioning", "", 0.02),
    "image-ready": Transition(_OTHERS, "Provisioning -> Ready with a size", "", 0.05),
    "class-ready": Transition(_OTHERS, "new -> Ready", "Nodes are not checked"),
    "address-bound": Transition(
        _OTHERS, "new -> Bound with an address and its lease", "10.64.0.0/12"
    ),
    "address-attached": Transition(_OTHERS, "Bound -> Attached to its VM", ""),
    "address-released": Transition(
        _OTHERS, "Attached -> Bound when its VM is gone", ""
    ),
    "lease-released": Transition(
        _OTHERS, "Bound -> Released when its address is gone", "the lease stays"
    ),
    "operation-started": Transition(
        _OTHERS, "new -> InProgress, the VM stops, starts or migrates"
    ),
    "operation-done": Transition(_OTHERS, "InProgress -> Completed"),
    "operation-failed": Transition(
        _OTHERS, "new -> Failed: not applicable in the VM's phase", "reasons"
    ),
    "service-ingress": Transition(
        _BALANCER,
        "a Service of type LoadBalancer has an ingress",
        "192.0.2.0/24 and 198.18.0.0/15, or loadBalancerIP",
        0.1,
    ),
    "checked-endpoints": Transition(
        _BALANCER,
        "the endpoints of its Service are the VMs of its selector whose probes succeed",
        "deckhouse, internal/controller of ServiceWithHealthchecks: EndpointSlices of"
        " its own; in the lab each probe succeeds",
        0.05,
    ),
    "checked-service": Transition(
        _BALANCER,
        "ServiceWithHealthchecks makes the Service that it owns: type, ports, traffic"
        " policies, labels, annotations; no selector, class, address or source ranges",
        "deckhouse, internal/controller of ServiceWithHealthchecks, newest version;"
        " older ones pass on neither labels nor annotations",
        0.05,
    ),
}
