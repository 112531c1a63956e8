"""From a VM of the parent to the model's instance: pure."""

from collections.abc import Mapping

from lib.cloud import provider_id
from lib.cloud.dvp import kinds, ownership
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.cloud.support import label_values

PHASES: Mapping[str, Phase] = {
    "Degraded": Phase.FAILED,
    "Migrating": Phase.RUNNING,
    "Pause": Phase.SUSPENDED,
    "Pending": Phase.PENDING,
    "Running": Phase.RUNNING,
    "Starting": Phase.PENDING,
    "Stopped": Phase.STOPPED,
    "Stopping": Phase.RUNNING,
    "Terminating": Phase.DELETING,
}
"""Any other phase is UNKNOWN.

Source: deckhouse/virtualization api/core/v1alpha2 (MachinePhase).
"""
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def phase(vm: kinds.VirtualMachine) -> Phase:
    """Return where a VM stands."""
    if vm.metadata.deletion_timestamp is not None:
        return Phase.DELETING
    return PHASES.get(vm.status.phase, Phase.UNKNOWN)


def hostname(vm: kinds.VirtualMachine) -> str:
    """Return the name of the Node of a VM; empty when it has no such label."""
    return vm.metadata.labels.get(ownership.HOSTNAME, "")


def addresses(vm: kinds.VirtualMachine) -> tuple[Address, ...]:
    """Return the addresses of its Node, none before the VM has an IP address.

    Source: deckhouse cloud-controller-manager of DVP (instances.go), which also returns
    addresses that are empty.
    """
    ip_address = vm.status.ip_address.strip()
    if not ip_address:
        return ()
    name = hostname(vm)
    return (
        Address(AddressType.EXTERNAL_IP, ip_address),
        Address(AddressType.INTERNAL_IP, ip_address),
        *((Address(AddressType.HOSTNAME, name),) if name else ()),
    )


def instance(vm: kinds.VirtualMachine) -> Instance:
    """Return the model's instance; its name is that of the Node.

    Zone and region are where the VM is to run by its placement constraints, never where
    it runs: a live migration changes no label. A class's name is the type.
    """
    constraints = vm.spec.node_selector or {}
    return Instance(
        id=InstanceId(vm.metadata.name),
        name=hostname(vm),
        phase=phase(vm),
        provider_id=provider_id.dvp(vm.metadata.name),
        addresses=addresses(vm),
        instance_type=label_values.label_value(vm.spec.virtual_machine_class_name),
        zone=label_values.label_value(constraints.get(ZONE, "")),
        region=label_values.label_value(constraints.get(REGION, "")),
    )
