"""A request is read as the reference reads it, and what is wrong with it is named."""

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.volumes import parameters
from lib.cloud.volumes import (
    VolumeChange,
    VolumeId,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
)

GIB = 2**30
PLAIN = settings.BlockStorage()
MAPPED = settings.BlockStorage(availability_zone_map={"az1": "ceph", "az2": "ceph"})
IGNORING = settings.BlockStorage(ignore_volume_az=True)
SOURCE = VolumeId("c0000000-0000-0000-0000-000000000001")


def request(**parts: object) -> VolumeRequest:
    values: dict[str, object] = {"name": "pvc-1", "size_bytes": GIB, "cluster": "kube"}
    return VolumeRequest(**values | parts)  # type: ignore[arg-type]  # any part


def read(storage: settings.BlockStorage = PLAIN, **parts: object) -> VolumeSpec:
    result = parameters.spec(request(**parts), storage)
    assert isinstance(result, VolumeSpec), result
    return result


def problems(**parts: object) -> tuple[VolumeProblem, ...]:
    result = parameters.spec(request(**parts), PLAIN)
    assert isinstance(result, tuple), result
    return result


WRITTEN = {"availability": "nova"}


@pytest.mark.parametrize(
    ("parts", "storage", "zone", "zones"),
    [
        # Nothing asked for: Cinder chooses.
        ({}, PLAIN, "", ()),
        ({"parameters": WRITTEN}, PLAIN, "nova", ("nova",)),
        ({"preferred": ("b", "a"), "requisite": ("a", "b")}, PLAIN, "b", ("b",)),
        ({"requisite": ("a", "b")}, PLAIN, "a", ("a",)),
        ({"parameters": WRITTEN, "preferred": ("b",)}, PLAIN, "nova", ("nova",)),
        ({"preferred": ("az2",)}, MAPPED, "ceph", ("az1", "az2", "ceph")),
        ({"preferred": ("az9",)}, MAPPED, "az9", ("az9",)),
        ({"preferred": ("az2",)}, IGNORING, "az2", None),
        # A clone lands where its source is.
        ({"source": SOURCE}, PLAIN, "", ()),
        ({"source": SOURCE, "preferred": ("a",)}, PLAIN, "", ()),
    ],
)
def test_the_zone_is_written_preferred_or_requisite_in_this_order(
    parts: dict[str, object],
    storage: settings.BlockStorage,
    zone: str,
    zones: tuple[str, ...] | None,
) -> None:
    volume_spec = read(storage, **parts)
    assert parameters.placement(volume_spec).zone == zone
    assert volume_spec.zones == zones


def test_a_type_of_the_attributes_class_wins() -> None:
    volume_spec = read(parameters={"type": "slow"}, changes={"type": "fast"})
    assert volume_spec.type == "fast"


def test_metadata_is_the_mark_and_what_the_sidecar_adds() -> None:
    """In the reference's order; what is not told is not written."""
    messages = {
        "csi.storage.k8s.io/pv/name": "pv",
        "csi.storage.k8s.io/pvc/name": "claim",
        "csi.storage.k8s.io/pvc/namespace": "",
        "other": "thing",
    }
    assert read(metadata=messages).metadata == (
        ("cinder.csi.openstack.org/cluster", "kube"),
        ("csi.storage.k8s.io/pvc/name", "claim"),
        ("csi.storage.k8s.io/pv/name", "pv"),
    )


def test_neighbours_come_from_annotations_and_are_echoed() -> None:
    affinity = "cinder.csi.openstack.org/affinity"
    volume_spec = read(annotations={affinity: " a, b,,", "other": "x"})
    assert (volume_spec.near, volume_spec.apart) == (("a", "b"), ())
    assert volume_spec.context == ((affinity, " a, b,,"),)


def test_the_node_is_told_that_a_clones_file_system_may_be_too_small() -> None:
    desired = (("cinder.csi.openstack.org/resizeRequired", "true"),)
    assert read(source=SOURCE).context == desired
    assert read().context == ()


def test_parameters_that_the_reference_ignores_are_ignored() -> None:
    """A StorageClass that worked goes on working."""
    assert read(parameters={"fsType": "ext4", "unknown": "x"}).type == ""


@pytest.mark.parametrize(
    ("parts", "field", "value"),
    [
        ({"changes": {"iops": "9"}}, "mutable parameter iops", "9"),
        ({"changes": {"type": ""}}, "mutable parameter type", ""),
        (
            {"parameters": {"availability": "moon"}, "requisite": ("a", "b")},
            "parameter availability",
            "moon",
        ),
        (
            {
                "annotations": {
                    "cinder.csi.openstack.org/affinity": "a,b",
                    "cinder.csi.openstack.org/anti-affinity": "b",
                }
            },
            "annotation cinder.csi.openstack.org/anti-affinity",
            "b",
        ),
        ({"name": "n" * 256}, "name", "n" * 256),
        ({"name": "a\nb"}, "name", "a\nb"),
        ({"name": "a\x7f"}, "name", "a\x7f"),
        ({"name": "  "}, "name", "  "),
        ({"parameters": {"type": "t" * 256}}, "parameter type", "t" * 256),
    ],
)
def test_each_problem_names_field_value_and_what_is_right(
    parts: dict[str, object], field: str, value: str
) -> None:
    (problem,) = problems(**parts)
    assert (problem.field, problem.value) == (field, value)
    assert problem.allowed


def test_all_problems_are_named_at_once() -> None:
    assert len(problems(name="n" * 256, changes={"iops": "9", "qos": "8"})) == 3


def test_a_zone_that_all_reach_is_no_contradiction() -> None:
    desired = {"availability": "ceph"}
    volume_spec = read(MAPPED, parameters=desired, requisite=("az2",))
    assert volume_spec.zones == ("az1", "az2", "ceph")
    assert read(IGNORING, parameters=desired, requisite=("az2",)).zones is None


def test_a_name_is_what_cinder_makes_of_it() -> None:
    """Cinder strips names; compared with blanks no volume would be found again."""
    assert read(name=" my volume ").name == "my volume"


def test_a_change_is_of_the_type_alone() -> None:
    assert parameters.change({"type": "fast"}) == VolumeChange("fast")
    assert parameters.change({}) == VolumeChange()
    result = parameters.change({"iops": "9"})
    assert result == (
        VolumeProblem("mutable parameter iops", "9", "only the parameter type"),
    )
