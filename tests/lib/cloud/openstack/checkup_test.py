"""The checkup of a cloud: each service fails by itself, and only reads are sent."""

import datetime
import typing
from collections.abc import Callable

import pytest

from lib.cloud import checkup, errors
from lib.cloud.openstack import checkup as openstack_checkup
from lib.cloud.openstack.config import settings

if typing.TYPE_CHECKING:
    from tests.lib.cloud.openstack import conftest

MakeConfig = Callable[..., settings.Config]


@pytest.fixture()
def look(make_config: MakeConfig) -> Callable[..., openstack_checkup.OpenStackCheckup]:
    def make(
        timeout_s: float = 5.0, **parts: object
    ) -> openstack_checkup.OpenStackCheckup:
        return openstack_checkup.OpenStackCheckup(make_config(**parts), timeout_s)

    return make


Look = Callable[..., openstack_checkup.OpenStackCheckup]


def by_kind(
    service_endpoints: tuple[checkup.ServiceEndpoint, ...],
) -> dict[str, checkup.ServiceEndpoint]:
    return {service.kind: service for service in service_endpoints}


def test_a_cloud_that_is_well(stand_in: "conftest.StandIn", look: Look) -> None:
    """Who we are, what is offered, and what time it is; the rest is not there."""
    asked = look()
    assert asked.login().user == "u"
    assert asked.login().project == "p"
    service_endpoints = by_kind(asked.services())
    assert service_endpoints["compute"].version == "2.1, microversions 2.1 to 2.96"
    assert service_endpoints["network"].version == "2.0"
    assert not any(
        service_endpoint.warning or service_endpoint.error
        for service_endpoint in service_endpoints.values()
    )
    absent = {
        kind
        for kind, service_endpoint in service_endpoints.items()
        if not service_endpoint.url
    }
    assert absent == {"load-balancer"}
    assert {
        kind
        for kind, service_endpoint in service_endpoints.items()
        if service_endpoint.needed
    } == {"compute", "network"}
    message = asked.time()
    assert message is not None
    assert abs(message - datetime.datetime.now(datetime.UTC)).total_seconds() < 5
    assert asked.region == "RegionOne"
    asked.quotas()
    sent = {(c.method, c.path) for c in stand_in.calls if c.method != "GET"}
    assert sent == {("POST", "/identity/v3/auth/tokens")}


@pytest.mark.parametrize(
    ("body", "expires"),
    [
        (b'{"application_credential": {"expires_at": "2027-05-01T00:00:00.0"}}', 2027),
        (b'{"application_credential": {"expires_at": null}}', None),
        (None, None),
    ],
    ids=["it expires", "it never expires", "it cannot be read"],
)
def test_an_application_credential_says_when_it_expires(
    body: bytes | None, expires: int | None, stand_in: "conftest.StandIn", look: Look
) -> None:
    """The token's own end is of no interest: it is renewed."""
    assert look().login().expires_at is None
    stand_in.application_credential = "a1"
    stand_in.roles = ["reader", "member"]
    path = "/identity/v3/users/user-1/application_credentials/a1"

    def answer(call: "conftest.Call", name: str) -> "conftest.Answer | None":
        del name
        is_it = call.path == path and body is not None
        return (200, {}, body or b"") if is_it else None

    stand_in.more = answer
    login = look().login()
    assert login.roles == ("member", "reader")
    assert (login.expires_at.year if login.expires_at else None) == expires


@pytest.mark.parametrize(
    ("roles", "is_reader"),
    [
        (("reader",), True),
        (("Reader", "load-balancer_observer"), True),
        (("reader", "member"), False),
        (("k8s-operator",), False),
        ((), False),
    ],
)
def test_roles_that_only_read_are_known(
    roles: tuple[str, ...],
    is_reader: bool,
    stand_in: "conftest.StandIn",
    look: Look,
) -> None:
    """A role of an administrator's own may permit anything."""
    stand_in.roles = list(roles)
    assert look().login().is_reader is is_reader


def test_a_date_without_a_zone_is_one_in_gmt(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    """Or there would be two kinds of time to compare."""
    date = {"Date": "Thu, 01 Jan 2026 12:00:00 -0000"}
    stand_in.fail("/identity/v3", 300, b"{}", date)
    datetime = look().time()
    assert datetime is not None
    assert datetime.tzinfo is not None


def test_an_old_nova_is_a_warning(stand_in: "conftest.StandIn", look: Look) -> None:
    stand_in.newest = "2.1"
    assert "below 2.47" in by_kind(look().services())["compute"].warning


def test_a_broken_service_leaves_the_others(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    """503 is told of the one that said it."""
    stand_in.fail("/compute/v2.1", 503)
    service_endpoints = by_kind(look().services())
    assert isinstance(service_endpoints["compute"].error, errors.Unavailable)
    assert "503" in service_endpoints["compute"].error.message
    assert service_endpoints["network"].error is None


def test_a_silent_service_is_left_after_the_time_out(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    stand_in.silent.add("/compute/v2.1")
    error = by_kind(look(timeout_s=0.3).services())["compute"].error
    assert error is not None
    assert error.message.startswith("the cloud did not answer in time: http://")


def test_refused_credentials_are_one_error_without_the_password(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    for _ in range(3):
        stand_in.fail("auth/tokens", 401)
    asked = look()
    calls: list[Callable[[], object]] = [asked.login, asked.services, asked.quotas]
    for call in calls:
        with pytest.raises(errors.Unauthenticated) as caught:
            call()
        assert "hunter2" not in str(caught.value)


def test_quotas_that_are_refused_or_nonsense_are_told_by_service(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    stand_in.fail("limits", 403)
    stand_in.fail("quotas/project-1/details", 200, b"<html>")
    result = look().quotas()
    assert set(result) == {"compute", "network", "block-storage"}
    assert isinstance(result["compute"], errors.Forbidden)
    assert isinstance(result["network"], errors.Unavailable)


def test_another_region_offers_nothing(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    """Also where block storage has two of its old names."""
    stand_in.elsewhere = ["volumev2", "volumev3"]
    asked = look(credentials={"region": "Elsewhere"})
    assert [service_endpoint.url for service_endpoint in asked.services()] == [""] * 4
    assert asked.quotas() == {}


def test_tls_without_proof_is_a_warning(look: Look, make_config: MakeConfig) -> None:
    credentials = make_config().credentials
    insecure = settings.Config(
        settings.Credentials(
            auth_url=credentials.auth_url, token="t", tls_insecure=True
        )
    )
    (warning,) = openstack_checkup.OpenStackCheckup(insecure, 1.0).warnings
    assert "tls-insecure" in warning


def test_load_balancers_need_a_service_that_makes_them(
    stand_in: "conftest.StandIn", look: Look
) -> None:
    """That it is not there is a fact; that none are wanted is another."""
    balancing = look().balancing()
    assert balancing is not None
    assert balancing.error is not None
    assert "the catalogue has no load-balancer service" in balancing.error.message
    off = settings.LoadBalancer(enabled=False)
    assert look(load_balancer=off).balancing() is None
    assert {call.method for call in stand_in.calls if call.path[-6:] != "tokens"} <= {
        "GET"
    }
