"""Reads NodeGroups of ephemeral nodes and the instance classes they use. Pure."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

from lib.discovery.openstack import documents, model
from lib.discovery.openstack.findings import (
    Document,
    Findings,
    name_of,
    part_of,
    text_of,
)
from lib.process import config

NODE_GROUP = "NodeGroup"
INSTANCE_CLASS = "OpenStackInstanceClass"
KINDS = (NODE_GROUP, INSTANCE_CLASS)

_USE_MCM = "node.deckhouse.io/use-mcm"
_ROLLOUT = "manual-rollout-id"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroup:
    """Ephemeral nodes of one kind. zones: empty means all of the provider's.

    use_mcm: made by machine-controller-manager, else by Cluster API.
    """

    name: str
    instance_class: model.InstanceClass
    zones: tuple[str, ...] = ()
    use_mcm: bool = False
    manual_rollout_id: str = ""

    def per_zone(self, zones: Sequence[str]) -> tuple[model.Group, ...]:
        """Give its machines in each of its zones. zones: the provider's."""
        return tuple(
            model.Group(self.name, zone, self.instance_class, self.manual_rollout_id)
            for zone in self.zones or zones
        )


def read(
    by_kind: Mapping[str, Sequence[Document]], findings: Findings
) -> tuple[NodeGroup, ...]:
    """Read the groups that name an instance class; others are no business of ours."""
    classes: dict[str, model.InstanceClass | None] = {}
    for document in by_kind.get(INSTANCE_CLASS, ()):
        name = name_of(document)
        label = f"{INSTANCE_CLASS}/{name}"
        spec = document.get("spec")
        classes[name] = findings.part(
            label, functools.partial(documents.instance_class, spec)
        )
    return tuple(_groups(by_kind.get(NODE_GROUP, ()), classes, findings))


def _groups(
    given: Sequence[Document],
    classes: Mapping[str, model.InstanceClass | None],
    findings: Findings,
) -> Iterator[NodeGroup]:
    for document in given:
        cloud = part_of(document, "spec", "cloudInstances")
        reference = part_of(cloud, "classReference")
        if text_of(reference, "kind") != INSTANCE_CLASS:
            continue
        wanted = text_of(reference, "name")
        if wanted not in classes:
            field = "spec.cloudInstances.classReference.name"
            known = ", ".join(sorted(classes)) or "none is given"
            problem = config.Problem(field, wanted, f"an {INSTANCE_CLASS}: {known}")
            findings.add(f"{NODE_GROUP}/{name_of(document)}", [problem])
        elif (found := classes[wanted]) is not None:
            notes = part_of(document, "metadata", "annotations")
            zones = cloud.get("zones")
            yield NodeGroup(
                name=name_of(document),
                instance_class=found,
                zones=tuple(map(str, zones)) if isinstance(zones, list) else (),
                use_mcm=_USE_MCM in notes,
                manual_rollout_id=text_of(notes, _ROLLOUT),
            )
