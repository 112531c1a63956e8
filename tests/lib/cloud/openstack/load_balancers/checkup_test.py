"""What cloud.conf names for load balancers is looked for, and nothing is written."""

import pytest

from lib.cloud import errors
from lib.cloud.checkup import Balancing
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session
from lib.cloud.openstack.load_balancers import checkup

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture()
def on() -> driver.Ground:
    ground = driver.ground()
    ground.cloud.octavia.flavors = {"big": True, "old": False}
    ground.cloud.octavia.availabilityzones = {"az1": True, "az2": False}
    return ground


def look(on: driver.Ground, **values: object) -> Balancing:
    config = settings.LoadBalancer(**values)  # type: ignore[arg-type]  # any setting
    balancing = checkup.look(on.cloud.client(), config)
    assert on.cloud.writes == []
    return balancing


def matches(balancing: Balancing) -> dict[str, tuple[str, ...]]:
    """Return what fits, by setting."""
    assert not [
        named_setting for named_setting in balancing.named if named_setting.error
    ]
    return {
        named_setting.setting: named_setting.matches
        for named_setting in balancing.named
    }


@pytest.mark.parametrize(
    ("version", "has_tags"),
    [((2, 0), False), ((2, 4), False), ((2, 5), True), ((2, 30), True)],
)
def test_the_version_says_whether_there_are_tags(
    on: driver.Ground, version: tuple[int, int], has_tags: bool
) -> None:
    on.cloud.octavia.version = version
    service_endpoints = look(on)
    assert service_endpoints.version == f"2.{version[1]}"
    assert service_endpoints.has_tags is has_tags


def test_each_setting_is_looked_for(on: driver.Ground) -> None:
    """A table, setting x value x whether it is there; each setting has a row."""
    outside, inside = on.external_id, on.network_id
    rows: list[tuple[str, dict[str, object], bool]] = [
        ("lb-provider", {"lb_provider": "amphora"}, True),
        ("lb-provider", {"lb_provider": "nimbus"}, False),
        ("flavor-id", {"flavor_id": "big"}, True),
        ("flavor-id", {"flavor_id": "old"}, False),
        ("flavor-id", {"flavor_id": "none"}, False),
        ("availability-zone", {"availability_zone": "az1"}, True),
        ("availability-zone", {"availability_zone": "az2"}, False),
        ("subnet-id", {"subnet_id": on.subnet_id}, True),
        ("subnet-id", {"subnet_id": NOBODY}, False),
        ("member-subnet-id", {"member_subnet_id": on.other_subnet_id}, True),
        ("member-subnet-id", {"member_subnet_id": NOBODY}, False),
        ("network-id", {"network_id": inside}, True),
        ("network-id", {"network_id": NOBODY}, False),
        ("floating-network-id", {"floating_network_id": outside}, True),
        ("floating-network-id", {"floating_network_id": inside}, False),
        ("floating-subnet-id", {"floating_subnet_id": on.external_subnet_id}, True),
        (
            "floating-subnet-id",
            {"floating_subnet_id": on.subnet_id, "floating_network_id": outside},
            False,
        ),
        ("floating-subnet", {"floating_subnet": "public-*"}, True),
        ("floating-subnet", {"floating_subnet": "~private-.*"}, False),
        ("floating-subnet", {"floating_subnet": "~("}, False),
        ("floating-subnet-tags", {"floating_subnet_tags": "edge"}, False),
        (
            "floating-subnet and floating-subnet-tags",
            {"floating_subnet": "public-*", "floating_subnet_tags": "!edge"},
            True,
        ),
    ]
    for key, values, is_there in rows:
        result = matches(look(on, **values))[f"[LoadBalancer] {key}"]
        print(f"{key:42} {values!s:80} {result}")
        assert bool(result) is is_there, values


def test_classes_are_looked_at_by_themselves(on: driver.Ground) -> None:
    """Where a class names no floating network, that of [LoadBalancer] counts."""
    classes = {
        "good": settings.LoadBalancerClass(subnet_id=on.subnet_id),
        "bad": settings.LoadBalancerClass(floating_subnet_id=on.subnet_id),
    }
    balancing = look(on, classes=classes, floating_network_id=on.external_id)
    assert matches(balancing) == {
        "[LoadBalancer] lb-provider": ("amphora",),
        "[LoadBalancer] floating-network-id": (on.external_id,),
        '[LoadBalancerClass "bad"] floating-subnet-id': (),
        '[LoadBalancerClass "good"] subnet-id': (on.subnet_id,),
    }
    bad = next(
        named_setting for named_setting in balancing.named if not named_setting.matches
    )
    assert bad.kind == f"subnet in floating network {on.external_id}"


def test_without_a_floating_network_all_that_would_do_are_told(
    on: driver.Ground,
) -> None:
    setting = "[LoadBalancer] floating-network-id"
    assert matches(look(on))[setting] == (on.external_id,)
    second = on.cloud.neutron.add_network("second", external=True)
    on.cloud.neutron.add_network("without subnets", external=True)
    on.cloud.neutron.add_subnet(second, "203.0.113.0/24")
    assert matches(look(on))[setting] == (on.external_id, second)
    assert setting not in matches(look(on, internal_lb=True))


def test_what_can_not_be_read_is_told_of_its_own_setting(on: driver.Ground) -> None:
    on.cloud.fault = lambda call: (
        session.Fault(403) if call.path == "lbaas/providers" else None
    )
    first, *others = look(on, subnet_id=on.subnet_id).named
    assert isinstance(first.error, errors.Forbidden)
    assert not [
        named_setting
        for named_setting in others
        if named_setting.error or not named_setting.matches
    ]
