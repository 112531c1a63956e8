"""From each variant of a lab to each other one: its data are used, or named."""

import itertools

import pytest

from lib.lab import errors, places
from lib.lab.whole import record, variant

VARIANTS = {
    "lab up": record.Record(provider="openstack"),
    "lab up --node": record.Record(provider="openstack", node=True),
    "lab up --charts": record.Record(provider="openstack", node=True, charts=True),
    "lab up --cloud dvp": record.Record(provider="dvp"),
    "lab up --cloud dvp --charts": record.Record(
        provider="dvp", node=True, charts=True
    ),
    "lab up --cloud zvirt": record.Record(provider="zvirt"),
    "lab up --os-cloud mine": record.Record(
        provider="openstack", existing_cloud="mine"
    ),
}
CONTINUED = {(name, name) for name in VARIANTS} | {("lab up", "lab up --node")}


@pytest.mark.parametrize(
    ("former", "following"),
    list(itertools.product(VARIANTS, VARIANTS)),
    ids=lambda name: name.removeprefix("lab "),
)
def test_data_of_another_variant_are_named_before_anything_starts(
    where: places.Places, former: str, following: str
) -> None:
    variant.write(where, VARIANTS[former])
    if (former, following) in CONTINUED:
        variant.require(where, VARIANTS[following])
        return
    with pytest.raises(errors.LabError) as caught:
        variant.require(where, VARIANTS[following])
    command = variant.of(VARIANTS[former]).command
    assert f"are those of `{command}`" in str(caught.value)
    assert "`mooring lab down --wipe`" in str(caught.value)


def test_a_cluster_of_others_has_no_data_here(where: places.Places) -> None:
    foreign = record.Record(kubeconfig="/admin.conf", provider="openstack")
    variant.write(where, foreign)
    assert variant.read(where) is None
    variant.write(where, VARIANTS["lab up --cloud dvp"])
    variant.require(where, foreign)


@pytest.mark.parametrize("text", ["", "[]", '{"node": 1}'])
def test_a_damaged_file_hinders_nothing(where: places.Places, text: str) -> None:
    where.state.mkdir(parents=True)
    (where.state / "variant.json").write_text(text)
    variant.require(where, VARIANTS["lab up"])
