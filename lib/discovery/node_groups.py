"""Reads NodeGroups of ephemeral nodes and the instance classes of one cloud. Pure."""

import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from lib.discovery.findings import (
    Document,
    SourceFindings,
    name_of,
    part_of,
    text_of,
)
from lib.process import config

NODE_GROUP = "NodeGroup"

NAME_MAX = 54
"""Characters: with a dash and the hash of a zone it must still be a label's value."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_USE_MCM = "node.deckhouse.io/use-mcm"
_ROLLOUT = "manual-rollout-id"

ClassT = TypeVar("ClassT")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroup(Generic[ClassT]):
    """Ephemeral nodes of one kind. zones: empty means all of the provider's.

    use_mcm: created by machine-controller-manager, else by Cluster API.
    """

    name: str
    instance_class: ClassT
    zones: tuple[str, ...] = ()
    use_mcm: bool = False
    manual_rollout_id: str = ""


def read(
    by_kind: Mapping[str, Sequence[Document]],
    findings: SourceFindings,
    class_kind: str,
    read_class: Callable[[object], ClassT],
) -> tuple[NodeGroup[ClassT], ...]:
    """Read the groups that name an instance class; others are ignored.

    read_class: reads the spec of a class, or raises a ConfigError.
    """
    classes: dict[str, ClassT | None] = {}
    for document in by_kind.get(class_kind, ()):
        name = name_of(document)
        label = f"{class_kind}/{name}"
        spec = document.get("spec")
        classes[name] = findings.part(label, functools.partial(read_class, spec))
    groups = by_kind.get(NODE_GROUP, ())
    return tuple(_groups(groups, class_kind, classes, findings))


def _groups(
    documents: Sequence[Document],
    class_kind: str,
    classes: Mapping[str, ClassT | None],
    findings: SourceFindings,
) -> Iterator[NodeGroup[ClassT]]:
    taken: set[str] = set()
    for document in documents:
        reference = part_of(document, "spec", "cloudInstances", "classReference")
        if text_of(reference, "kind") != class_kind:
            continue
        name = name_of(document)
        problems = list(_problems(document, class_kind, classes, taken))
        findings.add(f"{NODE_GROUP}/{name}", problems)
        taken.add(name)
        # Problems of the class are reported already.
        instance_class = classes.get(text_of(reference, "name"))
        if instance_class is not None and not problems:
            yield _group(document, instance_class)


def _group(document: Document, instance_class: ClassT) -> NodeGroup[ClassT]:
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
    document: Document,
    class_kind: str,
    classes: Collection[str],
    taken: Collection[str],
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
        text = f"{class_kind} {config.quoted(reference)} not found"
        if classes:
            text += f": must be one of {', '.join(sorted(classes))}"
        yield config.FieldProblem(field, reference, "", problem=text)
    zones = cloud.get("zones")
    is_list = isinstance(zones, list) and all(isinstance(zone, str) for zone in zones)
    if zones is not None and not is_list:
        field, expected = "spec.cloudInstances.zones", "a list of names of zones"
        yield config.FieldProblem(field, str(zones), expected)
