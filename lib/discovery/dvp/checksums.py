"""Checksums of the fields of an instance class that recreate its machines. Pure.

Two generations. The older one hashes nine keys; two have the value of another field by
mistake: rootDiskSize that of bootloader, coreFraction that of the image's name.
It is kept as it is: a corrected formula would recreate all machines of a cluster that
changes over. The newer one names its fields (rolloutFields), and compares their values.
"""

import hashlib
from collections.abc import Mapping, Sequence

from lib.discovery import go_json, go_yaml, unsafe_change
from lib.discovery.dvp import model

ROLLOUT_FIELDS = (
    "virtualMachine.virtualMachineClassName",
    "virtualMachine.bootloader",
    "virtualMachine.cpu.cores",
    "virtualMachine.cpu.coreFraction",
    "virtualMachine.memory.size",
    "rootDisk.size",
    "rootDisk.storageClass",
    "rootDisk.image.kind",
    "rootDisk.image.name",
    "additionalDisks",
)
"""etcdDisk is no field of ephemeral nodes.

Source: deckhouse modules/030-cloud-provider-dvp, capi/template.yaml.
"""
_OLD_KEYS: Mapping[str, str] = {
    "vmClassName": "virtualMachine.virtualMachineClassName",
    "bootloader": "virtualMachine.bootloader",
    "memory": "virtualMachine.memory.size",
    "rootDiskSize": "virtualMachine.bootloader",
    "rootDiskStorageClass": "rootDisk.storageClass",
    "cores": "virtualMachine.cpu.cores",
    "coreFraction": "rootDisk.image.name",
    "osImageRefKind": "rootDisk.image.kind",
    "additionalDisks": "additionalDisks",
}
"""Key of the hashed document, and the field whose value it has.

Source: deckhouse modules/030-cloud-provider-dvp, capi/instance-class.checksum.
"""


def of_old_generation(spec: model.Spec) -> str:
    """Return the annotation checksum/instance-class of the older generation.

    A field that is not set counts as null.
    """
    return _sha256({key: at(spec, field) for key, field in _OLD_KEYS.items()})


def by_rollout_fields(spec: model.Spec, manual_rollout_id: str = "") -> str:
    """Return the annotation checksum/instance-class of the newer generation.

    Two specs have the same one exactly if `changed` names no field.
    """
    values = {
        field: _plain(value)
        for field in ROLLOUT_FIELDS
        if (value := at(spec, field)) is not None
    }
    more = {"manualRolloutID": manual_rollout_id} if manual_rollout_id else {}
    return _sha256({**values, **more})


def changed(before: model.Spec, after: model.Spec) -> Sequence[str]:
    """Return the fields whose change recreates machines, sorted.

    A missing field and null are the same; 4 and 4.0 are one number; the order of a list
    counts, that of keys does not.

    Source: deckhouse modules/040-node-manager, node-controller, contract v2.
    """
    return sorted(
        field
        for field in ROLLOUT_FIELDS
        if _compared(at(before, field)) != _compared(at(after, field))
    )


def at(spec: model.Spec, field: str) -> object:
    """Return the value of a field; None: not set."""
    return unsafe_change.at(spec, field)


def _compared(value: object) -> str:
    """Return a text that is equal for equal values."""
    return go_json.dump(_plain(value))


def _plain(value: object) -> object:
    """Return a value without floats that are integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _sha256(document: Mapping[str, object]) -> str:
    """Hash YAML with sorted keys and one line end, in hex."""
    return hashlib.sha256(go_yaml.dump(document).encode()).hexdigest()
