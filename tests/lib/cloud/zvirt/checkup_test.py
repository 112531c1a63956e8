"""What an engine reports of itself, and one sentence for each wrong configuration."""

import datetime

import pytest

from lib.cloud import errors
from lib.cloud.zvirt import checkup, config, http
from lib.lab.zvirt import seed, service
from tests.lib.cloud.zvirt.engines import (
    CA,
    HTML,
    NOW,
    SETTINGS,
    Scripted,
    Simulated,
    fixed,
)
from tests.lib.lab.zvirt.stage import Stage

API = (
    "<api><product_info><instance_id>i</instance_id><version><major>{}</major>"
    "<minor>{}</minor></version></product_info></api>"
)


def subject(
    exchange: http.HttpExchange, settings: config.EngineConfig = SETTINGS
) -> checkup.EngineCheckup:
    return checkup.EngineCheckup(settings, 5, exchange, lambda: NOW)


def test_a_simulated_engine_reports_itself() -> None:
    report = subject(Simulated(Stage()))
    login = report.login()
    assert (login.user, login.project) == (seed.USER, service.INSTANCE)
    (engine,) = report.services()
    assert engine.version == "4.5.6-1.el8"
    assert engine.warning == ""
    assert report.offered()["templates"] == ("Blank", seed.TEMPLATE)
    assert [row.missing for row in report.rights()] == [(), (), ()]


@pytest.mark.parametrize(
    ("major", "minor", "warning"),
    [(4, 4, ""), (4, 5, ""), (5, 0, ""), (4, 3, "API 4.3: must be 4.4 or newer")],
)
def test_the_version_of_the_api(major: int, minor: int, warning: str) -> None:
    (engine,) = subject(fixed(200, API.format(major, minor).encode())).services()
    assert engine.warning == warning


@pytest.mark.parametrize(
    "body",
    [HTML, b"{}", b"", b"<api/>", b"<vm id='1'/>"],
    ids=["a web page", "JSON", "nothing", "an empty API", "a VM"],
)
def test_a_server_that_is_not_an_engine(body: bytes) -> None:
    with pytest.raises(errors.Unavailable) as caught:
        subject(fixed(200, body)).login()
    assert "not an engine" in checkup.sentence(caught.value, SETTINGS)
    assert SETTINGS.url in checkup.sentence(caught.value, SETTINGS)


@pytest.mark.parametrize("body", [HTML, b"[]", b"", b'{"access_token": 4}'])
def test_a_single_sign_on_that_is_none(body: bytes) -> None:
    exchange = fixed(200, b"")
    exchange.sso = http.EngineResponse(200, body)
    with pytest.raises(errors.Unavailable) as caught:
        subject(exchange).login()
    assert "not an engine" in checkup.sentence(caught.value, SETTINGS)


def test_a_rejected_password_is_sent_once() -> None:
    stage = Stage()
    stage.sso.set_password(seed.USER, "another")
    exchange = Simulated(stage)
    report = subject(exchange)
    for ask in (report.login, report.services, report.rights):
        with pytest.raises(errors.Unauthenticated) as caught:
            ask()
        text = checkup.sentence(caught.value, SETTINGS)
        assert text.startswith(f'ZVIRT_USERNAME: "{seed.USER}": user and password')
    assert exchange.requests["POST /ovirt-engine/sso/oauth/token"] == 1


def test_the_time_comes_without_authentication() -> None:
    headers = {"date": "Mon, 01 Jun 2026 00:00:00 GMT"}
    response = http.EngineResponse(401, HTML, headers)
    exchange = Scripted(lambda method, path, body: response)
    assert subject(exchange).time() == NOW
    assert len(exchange.requests) == 1
    headers["date"] = "soon"
    assert subject(exchange).time() is None


def test_an_authority_that_expires_soon_is_a_warning() -> None:
    settings = config.EngineConfig(SETTINGS.url, "u@p", "p", CA)
    late = NOW + datetime.timedelta(days=3640)
    report = checkup.EngineCheckup(settings, 5, fixed(200, b""), lambda: late)
    assert report.warnings == ("the authority of the engine expires in 10 days",)
    assert subject(fixed(200, b""), settings).warnings == ()
