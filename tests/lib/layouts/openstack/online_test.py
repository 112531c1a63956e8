"""What the inputs name and a cloud lacks: field, value and what would be right."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from lib.cloud.layouts import ProjectObject
from lib.cloud.openstack.layouts.layout_offers import ImageOffer, LayoutOffers
from lib.layouts.openstack import online
from tests.harness.layouts import inputs

UUID = inputs.UUID
OFFERS = LayoutOffers(
    zones=("az1", "az2"),
    flavors={"m1.tiny": 1, "m1.diskless": 0},
    images=(ImageOffer("i1", "tiny", 1), ImageOffer("i2", "large", 20)),
    volume_types=frozenset({"fast", "slow"}),
    objects=(
        ProjectObject("network", "n1", "public", fields={"external": "true"}),
        ProjectObject("network", "n2", "lab-net", fields={"external": "false"}),
        ProjectObject("subnet", "s1", "lab-subnet"),
        ProjectObject("security group", "g1", "more"),
        ProjectObject("server group", "h1", "masters"),
    ),
)


def problems(
    layout: str = "Standard",
    *more: ProjectObject,
    offers: LayoutOffers = OFFERS,
    uuid: str = "",
    **changes: Any,
) -> list[str]:
    document = inputs.document(layout, inputs.NO_CLOUD, **changes)
    offers = dataclasses.replace(offers, objects=(*offers.objects, *more))
    return [
        str(problem)
        for problem in online.problems(document, inputs.cluster("prod"), offers, uuid)
    ]


@pytest.mark.parametrize("layout", inputs.LAYOUTS)
def test_inputs_whose_names_exist_have_no_problem(layout: str) -> None:
    groups = [
        {
            **inputs.group(floatingIPPools=["public"], rootDiskSize=1),
            "volumeTypeMap": {"az1": "fast"},
        }
    ]

    assert problems(layout, groups=groups) == []


def test_a_node_may_be_in_the_network_that_the_base_creates() -> None:
    groups = [inputs.group(mainNetwork="prod")]

    assert problems("Standard", groups=groups) == []
    (problem,) = problems("Simple", groups=groups)
    assert "nodeGroups[0].instanceClass.mainNetwork" in problem


TWO = ProjectObject("network", "n3", "public", fields={"external": "true"})
ROWS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "an unknown zone": (
        {"top": {"zones": ["az1", "az9"]}},
        ("zones", '"az9"', "a zone of the project: az1, az2"),
    ),
    "a map without a zone of Nova": (
        {"masters": {"volumeTypeMap": {"az9": "fast"}}},
        ("masterNodeGroup.volumeTypeMap", '"az9"', "a zone of Nova: az1, az2"),
    ),
    "an unknown volume type": (
        {"masters": {"volumeTypeMap": {"az1": "ssd"}}},
        ("volumeTypeMap.az1", '"ssd"', "fast, slow"),
    ),
    "an unknown flavor": (
        {"instance_class": {"flavorName": "m9"}},
        ("masterNodeGroup.instanceClass.flavorName", '"m9"', "m1.diskless, m1.tiny"),
    ),
    "a flavor without a disk": (
        {"instance_class": {"flavorName": "m1.diskless"}},
        ("flavorName", '"m1.diskless"', "rootDiskSize must be set"),
    ),
    "an unknown image": (
        {"instance_class": {"imageName": "ubuntu"}},
        ("masterNodeGroup.instanceClass.imageName", '"ubuntu"', "large, tiny"),
    ),
    "a disk that is smaller than the image": (
        {"instance_class": {"imageName": "large", "rootDiskSize": 10}},
        ("rootDiskSize", '"10"', "20 GiB at least, which image large needs"),
    ),
    "a flavor's disk that is smaller than the image": (
        {"instance_class": {"imageName": "large"}},
        ("flavorName", '"m1.tiny"', "20 GiB at least"),
    ),
    "an unknown security group": (
        {"instance_class": {"additionalSecurityGroups": ["dmz"]}},
        ("instanceClass.additionalSecurityGroups", '"dmz"', "more"),
    ),
    "an unknown server group": (
        {
            "masters": {
                "serverGroup": {
                    "policy": "ManuallyManaged",
                    "manuallyManaged": {"id": "h9"},
                }
            }
        },
        ("serverGroup.manuallyManaged.id", '"h9"', "a server group", "h1"),
    ),
    "an unknown external network": (
        {"externalNetworkName": "internet"},
        ("standard.externalNetworkName", '"internet"', "lab-net, public"),
    ),
    "a network that is not external": (
        {"externalNetworkName": "lab-net"},
        ("standard.externalNetworkName", '"lab-net"', "n2 is not external"),
    ),
    "a bastion's unknown zone": (
        {"bastion": {**inputs.BASTION, "zone": "az7"}},
        ("standard.bastion.zone", '"az7"', "az1, az2"),
    ),
    "a bastion's unknown volume type": (
        {"bastion": {**inputs.BASTION, "volumeType": "ssd"}},
        ("standard.bastion.volumeType", '"ssd"', "fast, slow"),
    ),
    "a bastion's unknown image": (
        {
            "bastion": {
                "zone": "az1",
                "instanceClass": {"flavorName": "m1.diskless", "imageName": "x"},
            }
        },
        ("standard.bastion.instanceClass.imageName", '"x"', "large, tiny"),
    ),
    "a group's unknown network": (
        {"groups": [inputs.group(additionalNetworks=["dmz"])]},
        ("nodeGroups[0].instanceClass.additionalNetworks", '"dmz"', "a network"),
    ),
    "a group's pool that is not external": (
        {"groups": [inputs.group(floatingIPPools=["lab-net"])]},
        ("nodeGroups[0].instanceClass.floatingIPPools", '"lab-net"', "not external"),
    ),
    "a group's unknown zone": (
        {"groups": [{**inputs.group(), "zones": ["az5"]}]},
        ("nodeGroups[0].zones", '"az5"', "az1, az2"),
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_the_cloud_lacks_is_named(
    row: tuple[Mapping[str, Any], tuple[str, ...]],
) -> None:
    changes, words = row

    (problem,) = problems(**changes)

    for text in words:
        assert text in problem


def test_a_subnet_that_does_not_exist_is_named() -> None:
    (problem,) = problems("SimpleWithInternalNetwork", internalSubnetName="x")

    assert problem.startswith("simpleWithInternalNetwork.internalSubnetName")
    assert "lab-subnet" in problem


def test_names_of_several_objects_are_ambiguous() -> None:
    images = (*OFFERS.images, ImageOffer("i3", "tiny"))

    several = problems(
        "Standard", TWO, offers=dataclasses.replace(OFFERS, images=images)
    )

    assert [text.split(":")[0] for text in several] == [
        "masterNodeGroup.instanceClass.imageName",
        "standard.externalNetworkName",
    ]
    assert "i1, i3 all have it; rename all but one" in several[0]
    assert "n1, n3 all have it; rename all but one" in several[1]


def _of(owner: str) -> ProjectObject:
    return ProjectObject("subnet", "s9", "prod", owner)


PREFIXES = {
    "a new cluster, and a subnet of the name": (_of(""), "", True),
    "a new cluster, and a subnet of another cluster": (_of(UUID), "", True),
    "a cluster that exists, and its own subnet": (_of(UUID), UUID, False),
    "a cluster that exists, and a subnet of another": (
        _of(UUID.replace("5", "6")),
        UUID,
        True,
    ),
    "a new cluster, and a key pair of the name": (
        ProjectObject("key pair", "prod", "prod"),
        "",
        True,
    ),
    "a cluster that exists, and its key pair": (
        ProjectObject("key pair", "prod", "prod"),
        UUID,
        False,
    ),
}


@pytest.mark.parametrize("row", PREFIXES.values(), ids=PREFIXES.keys())
def test_a_prefix_in_use_is_named_with_the_ids(
    row: tuple[ProjectObject, str, bool],
) -> None:
    item, uuid, is_refused = row

    several = problems("Standard", item, uuid=uuid)

    assert len(several) == is_refused
    for problem in several:
        assert problem.startswith("cloud.prefix")
        assert f"{item.kind} {item.id}" in problem
