"""From the vocabulary of volumes to CSI's messages."""

import dataclasses
from collections.abc import Iterable, Mapping

from lib.cloud.model import InstanceId
from lib.cloud.volumes import AttachmentPhase, Pairs, Volume
from lib.csi.spec import csi_pb2


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """How zones are told. key: of the segment; is_on: they are told at all."""

    key: str
    is_on: bool

    def wanted(
        self, requirement: csi_pb2.TopologyRequirement
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the preferred and the requisite zones, each once, in order."""
        if not self.is_on:
            return (), ()
        return self._zones(requirement.preferred), self._zones(requirement.requisite)

    def _zones(self, topologies: Iterable[csi_pb2.Topology]) -> tuple[str, ...]:
        zones = (one.segments.get(self.key, "") for one in topologies)
        return tuple(dict.fromkeys(zone for zone in zones if zone))

    def reached(
        self,
        zones: tuple[str, ...] | None,
        requirement: csi_pb2.TopologyRequirement,
    ) -> list[csi_pb2.Topology]:
        """Return from where a volume is reached; zones as of `Volume`.

        Where the volume does not tell, what was asked for is repeated.
        """
        if not self.is_on:
            return []
        if zones is None:
            return list(requirement.preferred)
        return [csi_pb2.Topology(segments={self.key: zone}) for zone in zones]


def volume(
    found: Volume,
    context: Pairs = (),
    topology: Iterable[csi_pb2.Topology] = (),
    source: csi_pb2.VolumeContentSource | None = None,
) -> csi_pb2.Volume:
    """Write a volume."""
    return csi_pb2.Volume(
        volume_id=found.id,
        capacity_bytes=found.size_bytes,
        volume_context=dict(context),
        accessible_topology=topology,
        content_source=source,
    )


def published(found: Volume) -> list[str]:
    """Return the nodes that a volume is published to."""
    return [
        one.instance_id
        for one in found.attachments
        if one.phase is AttachmentPhase.ATTACHED and one.instance_id
    ]


def publish_context(found: Volume, instance_id: InstanceId) -> Mapping[str, str]:
    """Return what the node plugin is told about an attachment."""
    for one in found.attachments:
        if one.instance_id == instance_id:
            return dict(one.publish_context)
    return {}
