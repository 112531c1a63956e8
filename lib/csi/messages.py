"""Conversion of volumes to CSI's messages."""

import dataclasses
from collections.abc import Iterable, Mapping

from lib.cloud.model import InstanceId
from lib.cloud.volumes import AttachmentPhase, Pairs, Volume, VolumePhase
from lib.csi.spec import csi_pb2


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """Reporting of zones. key: of the segment; is_on: zones are reported at all."""

    key: str
    is_on: bool

    def requested(
        self, requirement: csi_pb2.TopologyRequirement
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the preferred and the requisite zones, each once, in order."""
        if not self.is_on:
            return (), ()
        return self._zones(requirement.preferred), self._zones(requirement.requisite)

    def _zones(self, topologies: Iterable[csi_pb2.Topology]) -> tuple[str, ...]:
        zones = (topology.segments.get(self.key, "") for topology in topologies)
        return tuple(dict.fromkeys(zone for zone in zones if zone))

    def accessible(
        self,
        zones: tuple[str, ...] | None,
        requirement: csi_pb2.TopologyRequirement,
    ) -> list[csi_pb2.Topology]:
        """Return the topology from which a volume is accessible; zones: see `Volume`.

        When the zones of the volume are unknown, the requested topology is returned.
        """
        if not self.is_on:
            return []
        if zones is None:
            return list(requirement.preferred)
        return [csi_pb2.Topology(segments={self.key: zone}) for zone in zones]


def volume(
    volume: Volume,
    context: Pairs = (),
    topology: Iterable[csi_pb2.Topology] = (),
    source: csi_pb2.VolumeContentSource | None = None,
) -> csi_pb2.Volume:
    """Convert a volume."""
    return csi_pb2.Volume(
        volume_id=volume.id,
        capacity_bytes=volume.size_bytes,
        volume_context=dict(context),
        accessible_topology=topology,
        content_source=source,
    )


def condition(volume: Volume) -> csi_pb2.VolumeCondition:
    """Return whether a volume is abnormal, and why.

    Source: CSI specification 1.12, VolumeCondition; kubernetes-csi/external-health-
    monitor pkg/controller: it compares the list of each minute.
    """
    if volume.phase is not VolumePhase.FAILED:
        return csi_pb2.VolumeCondition(abnormal=False, message="healthy")
    why = f": {volume.message}" if volume.message else ""
    status = volume.native_phase or volume.phase.value
    text = f"in status {status}{why}; the cloud administrator must repair it"
    return csi_pb2.VolumeCondition(abnormal=True, message=text)


def published(volume: Volume) -> list[str]:
    """Return the IDs of the nodes to which a volume is published.

    Without attachments of other programs: external-attacher publishes those again, and
    so gets the publish context.

    Source: kubernetes-csi/external-attacher pkg/controller (csi_handler.go,
    ReconcileVA).
    """
    return [
        attachment.instance_id
        for attachment in volume.attachments
        if attachment.phase is AttachmentPhase.ATTACHED
        and attachment.instance_id
        and attachment.is_published
    ]


def publish_context(volume: Volume, instance_id: InstanceId) -> Mapping[str, str]:
    """Return the publish context of an attachment, for the node plugin."""
    for attachment in volume.attachments:
        if attachment.instance_id == instance_id:
            return dict(attachment.publish_context)
    return {}
