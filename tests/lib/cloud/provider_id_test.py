"""Golden forms of provider ids; a change here breaks Nodes that exist."""

import pytest

from lib.cloud import provider_id
from lib.cloud.provider_id import ProviderId

UUID = "4b2d3c5e-0000-4000-8000-00000000000a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"openstack:///{UUID}", ProviderId("openstack", "", UUID)),
        (f"openstack://RegionOne/{UUID}", ProviderId("openstack", "RegionOne", UUID)),
        (f"openstack://ru-1.a/{UUID}", ProviderId("openstack", "ru-1.a", UUID)),
        (f"/{UUID}", ProviderId("openstack", "", UUID)),
        (f"RegionOne/{UUID}", ProviderId("openstack", "RegionOne", UUID)),
        ("openstack:///worker-1", ProviderId("openstack", "", "worker-1")),
        ("dvp://worker-1", ProviderId("dvp", "", "worker-1")),
        ("dvp://a/b", ProviderId("dvp", "", "a/b")),
        (f"zvirt://{UUID}", ProviderId("zvirt", "", UUID)),
        ("static://", ProviderId("static", "", "")),
        ("static:///0a1b", ProviderId("static", "", "/0a1b")),
        ("aws:///eu-1a/i-0a1b", ProviderId("aws", "", "/eu-1a/i-0a1b")),
        ("OpenStack:///x", ProviderId("OpenStack", "", "/x")),
        (f"ovirt://{UUID}", ProviderId("ovirt", "", UUID)),
    ],
)
def test_every_form_ever_written_still_parses(text: str, expected: ProviderId) -> None:
    """Each historic form gives cloud, region and id; other schemes stay foreign."""
    assert provider_id.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("", "empty"),
        (UUID, "openstack:///<id>"),
        ("openstack://", "openstack:///<id>"),
        ("openstack:///", "openstack:///<id>"),
        (f"openstack://{UUID}", "openstack:///<id>"),
        (f"openstack://region/extra/{UUID}", "openstack:///<id>"),
        (f"openstack:////{UUID}", "openstack:///<id>"),
        ("dvp://", "dvp://<id>"),
        ("zvirt://", "zvirt://<id>"),
        ("://x", "<cloud>://<id>"),
        ("a b://x", "<cloud>://<id>"),
    ],
)
def test_anything_else_is_refused_and_told_what_would_be_right(
    text: str, right: str
) -> None:
    """A text that is no provider id raises, naming the right form."""
    with pytest.raises(provider_id.ProviderIdError, match=right):
        provider_id.parse(text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (provider_id.openstack("a"), "openstack:///a"),
        (provider_id.openstack("a", "RegionOne"), "openstack://RegionOne/a"),
        (provider_id.dvp("worker-1"), "dvp://worker-1"),
        (provider_id.zvirt("a"), "zvirt://a"),
    ],
)
def test_written_forms_are_frozen_and_parse_again(written: str, expected: str) -> None:
    """What we write is byte for byte what the reference writes, and we can read it."""
    assert written == expected
    assert provider_id.parse(written).id == expected.rpartition("/")[2]
