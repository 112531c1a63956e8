"""Which objects of the parent belong to a machine. Pure.

An object is owned if its labels contain the UUID of the cluster and the UID of the
machine object. One of the reference has no UID, and may be adopted; so may one of
a machine object that was moved to another management cluster, and got another UID.
"""

import dataclasses

from lib.cloud.dvp import ownership
from lib.cloud.dvp.machines import machine_names
from lib.cloud.machines import Ref
from lib.kube import objects


@dataclasses.dataclass(frozen=True, slots=True)
class MachineIdentity:
    """A machine, as labels show it.

    uid: of the machine object; empty: not known. key: "namespace/name" of it. name: of
    the VM. is_recorded: the machine object has the provider ID of this VM.
    """

    cluster_uuid: str
    uid: str
    key: str
    name: str
    is_recorded: bool


def identity(ref: Ref) -> MachineIdentity:
    """Return the identity of a machine. Its native part is the recorded ID."""
    is_recorded = ref.native == machine_names.provider_id(ref.name)
    return MachineIdentity(ref.cluster_id, ref.uid, ref.key, ref.name, is_recorded)


def is_owned(machine: MachineIdentity, about: objects.ObjectMeta) -> bool:
    """Report whether the labels show this machine."""
    owner = about.labels.get(ownership.OWNER_UID)
    is_of_cluster = ownership.is_owned(about.labels, machine.cluster_uuid)
    return is_of_cluster and bool(machine.uid) and owner == machine.uid


def other_owner(machine: MachineIdentity, about: objects.ObjectMeta) -> str:
    """Return who else owns an object, as a clause; empty: it is, or may become, ours.

    Without the label of a cluster it may be of any cluster in the project, unless the
    machine object has its ID.
    """
    labels = about.labels
    cluster, owner = labels.get(ownership.CLUSTER), labels.get(ownership.OWNER_UID)
    if cluster not in (None, machine.cluster_uuid):
        return f'label {ownership.CLUSTER} is "{cluster}"'
    if owner is not None and owner == machine.uid:
        return ""
    key = about.annotations.get(machine_names.MACHINE_ANNOTATION, "")
    if owner is not None:
        is_moved = machine.is_recorded and key == machine.key
        text = f'label {ownership.OWNER_UID} is "{owner}"'
        return "" if is_moved else f"{text}, of machine {key}" if key else text
    host = labels.get(ownership.HOSTNAME)
    if host != machine.name:
        return f'label {ownership.HOSTNAME} is "{host or ""}"'
    if cluster is None and not machine.is_recorded:
        return f"it has no label {ownership.CLUSTER}"
    return ""


def labels(machine: MachineIdentity) -> dict[str, str]:
    """Return the labels of every object of a machine."""
    own = ownership.labels_of(machine.cluster_uuid, machine.uid)
    return {**own, ownership.HOSTNAME: machine.name}


def attachment_labels(machine: MachineIdentity) -> dict[str, str]:
    """Return the labels of every attachment of a machine's VM."""
    return {
        ownership.CLUSTER: machine.cluster_uuid,
        ownership.ATTACHED_VM: machine.name,
    }


def annotations(machine: MachineIdentity) -> dict[str, str]:
    """Return the annotations of every object of a machine."""
    return {machine_names.MACHINE_ANNOTATION: machine.key}
