"""A checksum changes when machines must be made anew, and never else."""

import dataclasses
import random

import hypothesis
import pytest
from hypothesis import strategies

from lib.discovery.openstack import checksums, documents, model

LARGE = model.InstanceClass("m1.large")
# Source: computed once with sorted YAML and sha256, and frozen.
CHECKSUMS = [
    (LARGE, "4ee4cb025ad7205893214aaea510ec49717f324b110688727f60f98bb6e823d4"),
    (
        model.InstanceClass("m1.large", "ubuntu", 20, "shared"),
        "e6713f8dcd376074424dc0431962c5fe6bd6e32ea556891529143ef410a52312",
    ),
]


@pytest.mark.parametrize(("spec", "checksum"), CHECKSUMS)
def test_checksums_are_the_references(spec: model.InstanceClass, checksum: str) -> None:
    """Without raw tags both engines see the same."""
    assert checksums.mcm(spec) == checksum
    assert checksums.capi(spec) == checksum


# Field of the model, a value that is set, whether it counts for MCM and for CAPI.
FIELDS: list[tuple[str, object, bool, bool]] = [
    ("flavor_name", "m1.small", True, True),
    ("image_name", "ubuntu", True, True),
    ("root_disk_size_gib", 20, True, True),
    ("main_network", "shared", True, True),
    ("additional_networks", ("a",), True, True),
    ("additional_security_groups", ("a",), True, True),
    ("additional_tags", {"a": "b"}, True, True),
    ("tags", ("a",), False, True),
    ("preemptible", True, False, False),
]


@pytest.mark.parametrize(("field", "value", "mcm", "capi"), FIELDS)
def test_what_counts(field: str, value: object, mcm: bool, capi: bool) -> None:
    """Each property counts for the engines that make instances of it."""
    changed = dataclasses.replace(LARGE, **{field: value})  # type: ignore[arg-type] # a row
    assert (checksums.mcm(changed) != checksums.mcm(LARGE)) == mcm
    assert (checksums.capi(changed) != checksums.capi(LARGE)) == capi


def test_each_property_has_a_row() -> None:
    """A property that joins the model needs a decision here."""
    assert [row[0] for row in FIELDS] == [
        field.name for field in dataclasses.fields(model.InstanceClass)
    ]


def test_a_manual_rollout_counts() -> None:
    """Its id is part of both checksums."""
    assert checksums.mcm(LARGE, "1") != checksums.mcm(LARGE)
    assert checksums.capi(LARGE, "1") != checksums.capi(LARGE, "2")


def test_capacity_never_counts() -> None:
    """The autoscaler's hint rolls no machine."""
    with_hint = {"flavorName": "m1.large", "capacity": {"cpu": "4", "memory": "8Gi"}}
    assert checksums.mcm(documents.instance_class(with_hint)) == CHECKSUMS[0][1]


@hypothesis.given(
    strategies.dictionaries(strategies.text(max_size=5), strategies.text(max_size=5)),
    strategies.randoms(),
)
def test_the_order_of_tags_never_counts(
    tags: dict[str, str], rng: random.Random
) -> None:
    """A map is a map, in whatever order a server gives it."""
    items = list(tags.items())
    rng.shuffle(items)
    first = dataclasses.replace(LARGE, additional_tags=tags)
    second = dataclasses.replace(LARGE, additional_tags=dict(items))
    assert checksums.mcm(first) == checksums.mcm(second)


@hypothesis.given(strategies.lists(strategies.text(min_size=1), max_size=4))
def test_the_order_of_networks_counts(networks: list[str]) -> None:
    """The order in which an instance gets its networks is part of what it is."""
    first = dataclasses.replace(LARGE, additional_networks=tuple(networks))
    second = dataclasses.replace(LARGE, additional_networks=tuple(reversed(networks)))
    same = networks == networks[::-1]
    assert (checksums.mcm(first) == checksums.mcm(second)) == same
