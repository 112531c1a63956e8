"""Checksums of the properties that recreate the machines of a class. Pure."""

import hashlib

from lib.discovery import go_yaml
from lib.discovery.openstack import model

MCM_FIELDS = (
    "flavorName",
    "imageName",
    "rootDiskSize",
    "mainNetwork",
    "additionalNetworks",
    "additionalSecurityGroups",
    "additionalTags",
    "manualRolloutID",
)
CAPI_FIELDS = (*MCM_FIELDS[:-1], "tags", "manualRolloutID")
"""Tags as raw server tags exist only there."""


def mcm(spec: model.InstanceClass, manual_rollout_id: str = "") -> str:
    """Return the annotation checksum/machine-class: sha256 in hex."""
    return _checksum(spec, manual_rollout_id, MCM_FIELDS)


def capi(spec: model.InstanceClass, manual_rollout_id: str = "") -> str:
    """Return the annotation checksum/instance-class: sha256 in hex."""
    return _checksum(spec, manual_rollout_id, CAPI_FIELDS)


def _checksum(
    spec: model.InstanceClass, manual_rollout_id: str, fields: tuple[str, ...]
) -> str:
    """Hash the fields that are set, as YAML with sorted keys and one line end.

    Source: Deckhouse, cloud-provider-openstack, checksum of a machine class.
    """
    options = {
        "flavorName": spec.flavor_name,
        "imageName": spec.image_name,
        "rootDiskSize": spec.root_disk_size_gib,
        "mainNetwork": spec.main_network,
        "additionalNetworks": list(spec.additional_networks),
        "additionalSecurityGroups": list(spec.additional_security_groups),
        "additionalTags": dict(spec.additional_tags),
        "tags": list(spec.tags),
        "manualRolloutID": manual_rollout_id,
    }
    counted = {
        name: options[name] for name in fields if options[name] or name == "flavorName"
    }
    text = go_yaml.dump(counted)
    return hashlib.sha256(text.encode()).hexdigest()
