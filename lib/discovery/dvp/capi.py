"""Documents for Cluster API's provider of DVP: cluster, machine templates. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, capi, and crds of capdvp.
"""

from collections.abc import Mapping

from lib.discovery import manifests as deckhouse
from lib.discovery.dvp import checksums, manifests, model

API_GROUP = "infrastructure.cluster.x-k8s.io"
API_VERSION = f"{API_GROUP}/v1alpha1"
CLUSTER_KIND = "DeckhouseCluster"
TEMPLATE_KIND = "DeckhouseMachineTemplate"
CLUSTER_NAME = "dvp"
CHECKSUM = "checksum/instance-class"
CLUSTER_PREFIX = "dvp.deckhouse.io/cluster-prefix"
DEFAULT_CLASS = "generic"
"""The VirtualMachineClass that every parent has."""


def cluster_object(cluster: model.ClusterFacts) -> manifests.Manifest:
    """Return the DeckhouseCluster; capdvp sets its endpoint."""
    labels = {"app": "capdvp-controller-manager"}
    if cluster.prefix:
        labels[CLUSTER_PREFIX] = cluster.prefix
    document = manifests.for_machines(
        (API_VERSION, CLUSTER_KIND), CLUSTER_NAME, {}, labels
    )
    del document["spec"]
    return document


def machine_template(
    cluster: model.ClusterFacts, group: model.NodeGroup, zone: str
) -> manifests.Manifest:
    """Return the template of a group's machines in one zone, of its first generation.

    Old templates outlive a rollout; the node controller numbers those that follow.
    """
    name = f"{group.name}-{deckhouse.zone_hash(cluster.uuid, zone)}"
    checksum = checksums.by_rollout_fields(group.spec, group.manual_rollout_id)
    return manifests.for_machines(
        (API_VERSION, TEMPLATE_KIND),
        f"{name}-gen1",
        {"template": {"spec": machine_spec(group.spec)}},
        {"node-group": group.name},
        {CHECKSUM: checksum, "helm.sh/resource-policy": "keep"},
    )


def machine_spec(spec: model.Spec) -> Mapping[str, object]:
    """Return the spec of a DeckhouseMachine. spec: valid by its schema.

    Zones, node selectors, labels and tolerations of the class are no part of it.
    """
    return _set_fields(
        {
            "vmClassName": _of(spec, "virtualMachine.virtualMachineClassName")
            or DEFAULT_CLASS,
            "cpu": _set_fields(
                {
                    "cores": _of(spec, "virtualMachine.cpu.cores"),
                    "cpuFraction": _of(spec, "virtualMachine.cpu.coreFraction"),
                }
            ),
            "memory": _text(_of(spec, "virtualMachine.memory.size")),
            "rootDiskSize": _text(_of(spec, "rootDisk.size")),
            "rootDiskStorageClass": _of(spec, "rootDisk.storageClass"),
            "additionalDisks": _disks(_of(spec, "additionalDisks")),
            "bootDiskImageRef": _set_fields(
                {
                    "kind": _of(spec, "rootDisk.image.kind"),
                    "name": _of(spec, "rootDisk.image.name"),
                }
            ),
            "bootloader": _of(spec, "virtualMachine.bootloader"),
        }
    )


def _of(spec: model.Spec, field: str) -> object:
    return checksums.at(spec, field)


def _set_fields(fields: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in fields.items() if value}


def _text(quantity: object) -> str:
    """Return a quantity as text; a class may have it as a number of bytes."""
    return str(quantity or "")


def _disks(disks: object) -> list[Mapping[str, object]]:
    if not isinstance(disks, list):
        return []
    return [
        {"size": _text(disk.get("size")), "storageClass": disk.get("storageClass")}
        for disk in disks
    ]
