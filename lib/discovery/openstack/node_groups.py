"""Reads NodeGroups of ephemeral nodes and their instance classes. Pure."""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from lib.discovery.openstack import documents, model
from lib.discovery.openstack.findings import (
    Document,
    SourceFindings,
    name_of,
    part_of,
    text_of,
)
from lib.process import config

NODE_GROUP = "NodeGroup"
INSTANCE_CLASS = "OpenStackInstanceClass"
KINDS = (NODE_GROUP, INSTANCE_CLASS)

NAME_MAX = 54
"""Characters: with a dash and the hash of a zone it must still be a label's value."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_USE_MCM = "node.deckhouse.io/use-mcm"
_ROLLOUT = "manual-rollout-id"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroup:
    """Ephemeral nodes of one kind. zones: empty means all of the provider's.

    use_mcm: created by machine-controller-manager, else by Cluster API.
    """

    name: str
    instance_class: model.InstanceClass
    zones: tuple[str, ...] = ()
    use_mcm: bool = False
    manual_rollout_id: str = ""

    def per_zone(self, zones: Sequence[str]) -> tuple[model.Group, ...]:
        """Return its machines in each of its zones. zones: the provider's."""
        return tuple(
            model.Group(self.name, zone, self.instance_class, self.manual_rollout_id)
            for zone in self.zones or zones
        )


def read(
    by_kind: Mapping[str, Sequence[Document]], findings: SourceFindings
) -> tuple[NodeGroup, ...]:
    """Read the groups that name an instance class; others are ignored."""
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
    documents: Sequence[Document],
    classes: Mapping[str, model.InstanceClass | None],
    findings: SourceFindings,
) -> Iterator[NodeGroup]:
    taken: set[str] = set()
    for document in documents:
        reference = part_of(document, "spec", "cloudInstances", "classReference")
        if text_of(reference, "kind") != INSTANCE_CLASS:
            continue
        name = name_of(document)
        problems = list(_problems(document, classes, taken))
        findings.add(f"{NODE_GROUP}/{name}", problems)
        taken.add(name)
        # Problems of the class are reported already.
        instance_class = classes.get(text_of(reference, "name"))
        if instance_class is not None and not problems:
            yield _group(document, instance_class)


def _group(document: Document, instance_class: model.InstanceClass) -> NodeGroup:
    notes = part_of(document, "metadata", "annotations")
    zones = part_of(document, "spec", "cloudInstances").get("zones")
    return NodeGroup(
        name=name_of(document),
        instance_class=instance_class,
        zones=tuple(map(str, zones)) if isinstance(zones, list) else (),
        use_mcm=_USE_MCM in notes,
        manual_rollout_id=str(notes.get(_ROLLOUT) or ""),
    )


def _problems(
    document: Document, classes: Collection[str], taken: Collection[str]
) -> Iterator[config.FieldProblem]:
    name = name_of(document)
    if len(name) > NAME_MAX or not _LABEL.fullmatch(name):
        expected = (
            f"a DNS label of at most {NAME_MAX} characters: the names of machines"
            " contain it"
        )
        yield config.FieldProblem("metadata.name", name, expected)
    if name in taken:
        yield config.FieldProblem(
            "metadata.name", name, "a name that is unique among NodeGroups"
        )
    cloud = part_of(document, "spec", "cloudInstances")
    reference = text_of(part_of(cloud, "classReference"), "name")
    if reference not in classes:
        field = "spec.cloudInstances.classReference.name"
        text = f"{INSTANCE_CLASS} {config.quoted(reference)} not found"
        if classes:
            text += f": must be one of {', '.join(sorted(classes))}"
        yield config.FieldProblem(field, reference, "", problem=text)
    zones = cloud.get("zones")
    is_list = isinstance(zones, list) and all(isinstance(zone, str) for zone in zones)
    if zones is not None and not is_list:
        field, expected = "spec.cloudInstances.zones", "a list of names of zones"
        yield config.FieldProblem(field, str(zones), expected)
