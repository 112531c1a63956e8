"""Native words become the model's by tables."""

import pytest

from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.cloud.openstack import native
from lib.cloud.openstack.config.settings import Config, Credentials
from lib.cloud.openstack.instances import translate
from lib.cloud.openstack.instances.addresses import Wiring
from lib.cloud.support import label_values

NOVA_STATUSES = (
    "ACTIVE BUILD DELETED ERROR HARD_REBOOT MIGRATING PASSWORD PAUSED REBOOT REBUILD"
    " RESCUE RESIZE REVERT_RESIZE SHELVED SHELVED_OFFLOADED SHUTOFF SOFT_DELETED"
    " SUSPENDED UNKNOWN VERIFY_RESIZE"
).split()
"""Source: Nova API guide, "Server concepts", server status."""
NOT_RUNNING = set(
    "BUILD DELETED ERROR PAUSED REBUILD RESCUE RESIZE REVERT_RESIZE SHELVED"
    " SHELVED_OFFLOADED SHUTOFF SOFT_DELETED SUSPENDED UNKNOWN".split()
)
"""Whose guest does not run its own system now.

Source: Nova API guide, "Server concepts": RESCUE runs another image."""


def test_every_status_of_nova_has_a_phase() -> None:
    """None is missing, and none is listed that Nova does not have."""
    assert sorted(translate.PHASES) == NOVA_STATUSES


@pytest.mark.parametrize("status", NOVA_STATUSES)
def test_running_is_what_nova_says_runs(status: str) -> None:
    """RUNNING is said of exactly those whose own system runs."""
    is_running = translate.phase(status) is Phase.RUNNING
    assert is_running is (status not in NOT_RUNNING)


def test_going_and_gone_servers_are_deleting() -> None:
    """SOFT_DELETED may be restored: nothing but a 404 makes a server absent."""
    deleting = [s for s, phase in translate.PHASES.items() if phase is Phase.DELETING]
    assert sorted(deleting) == ["DELETED"]
    assert translate.phase("SOFT_DELETED") is Phase.STOPPED


def test_only_shutoff_earns_the_shutdown_taint() -> None:
    """STOPPED is reached by one status alone, as in the reference."""
    stopped = [s for s, phase in translate.PHASES.items() if phase is Phase.STOPPED]
    assert stopped == ["SHUTOFF", "SOFT_DELETED"]


@pytest.mark.parametrize("status", ["", "active", "HIBERNATED"])
def test_a_status_nobody_knows_is_unknown(status: str) -> None:
    """A new Nova may say anything."""
    assert translate.phase(status) is Phase.UNKNOWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nova", "nova"),
        ("az 1", "az-1"),
        ("az: eu/west", "az-eu-west"),
        ("--_.az._--", "az"),
        ("зона-1", "1"),
        ("зона", ""),
        ("a" * 64, "a" * 63),
        ("a" * 62 + "-b", "a" * 62),
        ("", ""),
        ("A_b.c-1", "A_b.c-1"),
    ],
)
def test_a_zone_is_made_fit_for_a_label(text: str, expected: str) -> None:
    """Foreign characters become one dash, ends are trimmed, 63 are kept."""
    assert label_values.label_value(text) == expected
    assert label_values.is_label_value(expected)


FLAVORS = {
    "f-1": "m1.small",
    "f-2": "bad name!",
    "f-3": "x" * 64,
    "Small HD 4GB": "Small HD 4GB",
    " - ": "!",
}


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        (native.Flavor(original_name="m1.small"), "m1.small"),
        (native.Flavor(original_name="gone-but-embedded"), "gone-but-embedded"),
        (native.Flavor(original_name="bad name!"), "f-2"),
        (native.Flavor(original_name="gone and bad"), None),
        (native.Flavor(id="f-1"), "m1.small"),
        (native.Flavor(id="f-2"), "f-2"),
        (native.Flavor(id="f-3"), "f-3"),
        (native.Flavor(original_name="Small HD 4GB"), "Small-HD-4GB"),
        (native.Flavor(id="Small HD 4GB"), "Small-HD-4GB"),
        (native.Flavor(id=" - "), ""),
        (native.Flavor(id="f-9"), None),
        (native.Flavor(), None),
    ],
)
def test_the_instance_type_is_the_flavors_name_or_else_its_id(
    flavor: native.Flavor, expected: str | None
) -> None:
    """A name that can't be a label's value gives way to the id; a gone one to None."""
    assert translate.instance_type(flavor, FLAVORS) == expected


@pytest.mark.parametrize(
    ("flavor", "needed"),
    [
        (native.Flavor(original_name="m1.small"), False),
        (native.Flavor(original_name="bad name!"), True),
        (native.Flavor(id="f-1"), True),
    ],
)
def test_flavors_are_needed_only_where_the_server_does_not_tell(
    flavor: native.Flavor, needed: bool
) -> None:
    """An embedded name that fits a label costs no further read."""
    assert translate.needs_flavors(native.Server(id="s", flavor=flavor)) is needed


SERVER = native.Server(
    id="id-1",
    name="worker-1",
    status="ACTIVE",
    flavor=native.Flavor(original_name="m1.small"),
    zone="az 1",
    access_ipv4="1.1.1.1",
)


def config(regional: bool = False, region: str = "Region One") -> Config:
    return Config(credentials=Credentials(region=region), regional=regional)


def test_a_server_becomes_an_instance() -> None:
    """All fields at once, with region and zone fit to be labels."""
    assert translate.instance(SERVER, {}, Wiring(), config()) == Instance(
        id=InstanceId("id-1"),
        name="worker-1",
        phase=Phase.RUNNING,
        provider_id="openstack:///id-1",
        addresses=(Address(AddressType.EXTERNAL_IP, "1.1.1.1"),),
        instance_type="m1.small",
        zone="az-1",
        region="Region-One",
    )


def test_the_provider_id_carries_the_region_as_it_is_when_wanted() -> None:
    """OS_CCM_REGIONAL writes the region unchanged, not the label's value."""
    instance = translate.instance(SERVER, {}, Wiring(), config(regional=True))
    assert instance.provider_id == "openstack://Region One/id-1"


def test_addresses_are_unknown_when_neutron_could_not_be_read() -> None:
    """Nova's own addresses alone would change a Node for the worse."""
    instance = translate.instance(SERVER, {}, None, config())
    assert instance.addresses == ()
    assert not instance.addresses_known


def test_a_server_with_hardly_any_fields_is_translated() -> None:
    """Fields that a cloud leaves out or sets to null give empty values."""
    instance = translate.instance(
        native.Server(id="x"), {}, Wiring(), config(region="")
    )
    assert instance == Instance(
        id=InstanceId("x"),
        name="",
        phase=Phase.UNKNOWN,
        provider_id="openstack:///x",
    )
