"""NodeGroups whose instance class is an OpenStackInstanceClass. Pure."""

from collections.abc import Mapping, Sequence

from lib.discovery import node_groups
from lib.discovery.findings import Document, SourceFindings
from lib.discovery.openstack import documents, model

NODE_GROUP = node_groups.NODE_GROUP
INSTANCE_CLASS = "OpenStackInstanceClass"
KINDS = (NODE_GROUP, INSTANCE_CLASS)

NodeGroup = node_groups.NodeGroup[model.InstanceClass]


def read(
    by_kind: Mapping[str, Sequence[Document]], findings: SourceFindings
) -> tuple[NodeGroup, ...]:
    """Read the groups that name an instance class; others are ignored."""
    return node_groups.read(by_kind, findings, INSTANCE_CLASS, documents.instance_class)


def per_zone(group: NodeGroup, zones: Sequence[str]) -> tuple[model.Group, ...]:
    """Return a group's machines in each of its zones. zones: the provider's."""
    return tuple(
        model.Group(group.name, zone, group.instance_class, group.manual_rollout_id)
        for zone in group.zones or zones
    )
