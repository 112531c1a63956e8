"""From a VM of an engine to the model's instance: pure."""

import dataclasses
from collections.abc import Mapping

from lib.cloud import provider_id
from lib.cloud.model import Instance, InstanceId, Phase
from lib.cloud.support import label_values
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import addresses

PHASES: Mapping[str, Phase] = {
    "down": Phase.STOPPED,
    "image_locked": Phase.PENDING,
    "migrating": Phase.RUNNING,
    "not_responding": Phase.UNKNOWN,
    "paused": Phase.SUSPENDED,
    "powering_down": Phase.RUNNING,
    "powering_up": Phase.PENDING,
    "reboot_in_progress": Phase.RUNNING,
    "restoring_state": Phase.PENDING,
    "saving_state": Phase.SUSPENDED,
    "suspended": Phase.SUSPENDED,
    "unassigned": Phase.UNKNOWN,
    "unknown": Phase.UNKNOWN,
    "up": Phase.RUNNING,
    "wait_for_launch": Phase.PENDING,
}
"""Any other status, and none, is UNKNOWN. Only down is STOPPED, as in the reference.

Source: ovirt-engine-api-model, VmStatus.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster is."""

    cluster: str
    data_center_id: str
    data_center: str


@dataclasses.dataclass(frozen=True, slots=True)
class PlaceNames:
    """Names of what VMs refer to: places by ID of the cluster, templates by ID."""

    places: Mapping[str, Place] = dataclasses.field(default_factory=dict)
    templates: Mapping[str, str] = dataclasses.field(default_factory=dict)


def phase(item: Item) -> Phase:
    """Return where a VM stands."""
    return PHASES.get(item.status, Phase.UNKNOWN)


def template_id(item: Item) -> str:
    """Return the template that a VM was created from, also if it was cloned."""
    vm = item.entity
    template = vm.original_template or vm.template
    return "" if template is None else str(template.id or "")


def cluster_id(item: Item) -> str:
    """Return the cluster of a VM; empty: it is not shown."""
    cluster = item.entity.cluster
    return "" if cluster is None else str(cluster.id or "")


def instance(
    item: Item, rules: addresses.AddressRules, names: PlaceNames | None
) -> Instance:
    """Return the model's instance. names: None: it gets no zone, region and type.

    Zone and region are cluster and data center, never the host: a live migration
    changes no label. The instance type is the template.
    """
    vm = item.entity
    shown = addresses.of_vm(vm, rules)
    name = str(vm.name or "")
    problem = f"the guest agent of VM {name} has reported none that counts"
    place = names and names.places.get(cluster_id(item))
    templates: Mapping[str, str] = names.templates if names else {}
    template = label_values.label_value(templates.get(template_id(item), ""))
    return Instance(
        id=InstanceId(item.id),
        name=name,
        phase=phase(item),
        provider_id=provider_id.zvirt(item.id),
        addresses=shown,
        addresses_known=bool(shown),
        no_addresses_reason="" if shown else problem,
        instance_type=template,
        zone=label_values.label_value(place.cluster) if place else "",
        region=label_values.label_value(place.data_center) if place else "",
    )
