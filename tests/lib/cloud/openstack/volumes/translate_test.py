"""Cinder's words have one meaning each."""

import datetime

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.volumes import native, translate
from lib.cloud.volumes import VolumePhase

GIB = 2**30
PLAIN = settings.BlockStorage()
MAPPED = settings.BlockStorage(
    availability_zone_map={"az1": "ceph", "az 2": "ceph", "az3": "local"}
)

# Source: cinder/objects/fields.py (VolumeStatus), and what older releases wrote.
MEANINGS = {
    VolumePhase.CREATING: ["creating", "downloading", "managing"],
    VolumePhase.AVAILABLE: ["available"],
    VolumePhase.ATTACHING: ["reserved", "attaching"],
    VolumePhase.IN_USE: ["in-use"],
    VolumePhase.DETACHING: ["detaching"],
    VolumePhase.RESIZING: ["extending"],
    VolumePhase.BUSY: [
        "awaiting-transfer",
        "backing-up",
        "maintenance",
        "restoring-backup",
        "retyping",
        "reverting",
        "uploading",
    ],
    VolumePhase.DELETING: ["deleted", "deleting", "unmanaging"],
    VolumePhase.FAILED: [
        "error",
        "error_attaching",
        "error_backing-up",
        "error_deleting",
        "error_detaching",
        "error_extending",
        "error_managing",
        "error_restoring",
    ],
    VolumePhase.UNKNOWN: ["", "something-new"],
}


@pytest.mark.parametrize("phase", VolumePhase)
def test_every_status_has_one_phase(phase: VolumePhase) -> None:
    assert {translate.phase(status) for status in MEANINGS[phase]} == {phase}


def test_the_table_of_statuses_is_the_one_above() -> None:
    """A status that is added here is added there, too."""
    known = {
        status
        for phase, statuses in MEANINGS.items()
        for status in statuses
        if phase is not VolumePhase.UNKNOWN
    }
    assert translate.PHASES.keys() == known


@pytest.mark.parametrize(
    ("zone", "storage", "zones"),
    [
        ("nova", PLAIN, ("nova",)),
        ("my zone", PLAIN, ("my-zone",)),
        ("", PLAIN, ()),
        ("ceph", MAPPED, ("az1", "az-2", "ceph")),
        ("local", MAPPED, ("az3", "local")),
        ("other", MAPPED, ("other",)),
        ("nova", settings.BlockStorage(ignore_volume_az=True), None),
    ],
)
def test_a_volume_is_reached_from_the_zones_that_lead_to_it(
    zone: str, storage: settings.BlockStorage, zones: tuple[str, ...] | None
) -> None:
    """Zones are given as Nodes are labelled with them."""
    assert translate.node_zones(zone, storage) == zones


@pytest.mark.parametrize(
    ("zone", "volume_zone"), [("az1", "ceph"), ("az-2", "ceph"), ("nova", "nova")]
)
def test_a_nodes_zone_leads_to_cinders(zone: str, volume_zone: str) -> None:
    """A label is what Kubernetes made of the name of Nova's zone."""
    assert translate.volume_zone(zone, MAPPED) == volume_zone


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("9f1c3a52-0b0f-4f57-9a8e-0f3f2c1d4e5b", True),
        ("9F1C3A52-0B0F-4F57-9A8E-0F3F2C1D4E5B", True),
        ("9f1c3a520b0f4f579a8e0f3f2c1d4e5b", False),
        ("9f1c3a52-0b0f-4f57-9a8e-0f3f2c1d4e5b/x", False),
        ("fake-vol-id-1234567890", False),
        ("", False),
    ],
)
def test_ids_are_told_from_other_texts(text: str, is_id: bool) -> None:
    assert translate.is_id(text) is is_id


def test_a_volume_keeps_what_cinder_says_of_it() -> None:
    """Sizes become bytes, times get their zone, attachments their device."""
    moment = datetime.datetime(2026, 1, 1)  # - as Cinder writes it
    listed = native.Volume(
        "id-1",
        None,
        3,
        "in-use",
        "nova",
        (native.Attached("server-1", "at-1", "/dev/vdb"),),
        {"cinder.csi.openstack.org/cluster": "kube"},
        "fast",
        "id-0",
        True,
        moment,
        None,
    )
    volume = translate.volume(listed, PLAIN)
    assert (volume.name, volume.size_bytes, volume.source) == ("", 3 * GIB, "id-0")
    assert volume.created_at == moment.replace(tzinfo=datetime.UTC)
    assert (volume.cluster, volume.is_shareable, volume.type) == ("kube", True, "fast")
    assert volume.attachments[0].publish_context == (("DevicePath", "/dev/vdb"),)
    assert native.handle(volume).attachments == (("server-1", "at-1"),)
