"""What an engine reports of itself, and one sentence for each wrong configuration."""

import dataclasses
import datetime

import pytest

from lib.cloud import errors, provider_id
from lib.cloud.model import InstanceRef
from lib.cloud.zvirt import checkup, config, engine_product, http
from lib.lab.zvirt import seed, service
from tests.harness.zvirt import vms_of_nodes
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
    assert [row.missing for row in report.rights()] == [()] * 4


@pytest.mark.parametrize(("major", "minor"), [(4, 4), (4, 5), (5, 0)])
def test_the_version_of_the_api(major: int, minor: int) -> None:
    (engine,) = subject(fixed(200, API.format(major, minor).encode())).services()
    assert (engine.version, engine.error) == (f"{major}.{minor}", None)


@pytest.mark.parametrize(
    ("names", "setting"),
    [
        (config.SettingNames(), "ZVIRT_API_URL"),
        (config.SettingNames("OVIRT_CONFIG ovirt_url"), "OVIRT_CONFIG ovirt_url"),
    ],
)
def test_an_api_that_is_too_old_names_setting_value_and_what_is_valid(
    names: config.SettingNames, setting: str
) -> None:
    settings = dataclasses.replace(SETTINGS, names=names)
    report = subject(Simulated(Stage("version 4.3")), settings)
    expected = (
        f'{setting}: "{SETTINGS.url}": API 4.3 is too old: must be the URL of an oVirt'
        " engine with API 4.4 or newer"
    )
    (engine,) = report.services()
    assert engine.error is not None
    assert engine_product.explain(engine.error, settings) == expected
    with pytest.raises(errors.Unsupported) as caught:
        report.login()
    assert caught.value.message == expected


@pytest.mark.parametrize(
    "body",
    [HTML, b"{}", b"", b"<api/>", b"<vm id='1'/>"],
    ids=["a web page", "JSON", "nothing", "an empty API", "a VM"],
)
def test_a_server_that_is_not_an_engine(body: bytes) -> None:
    with pytest.raises(errors.Unavailable) as caught:
        subject(fixed(200, body)).login()
    text = engine_product.explain(caught.value, SETTINGS)
    assert text.startswith(f'ZVIRT_API_URL: "{SETTINGS.url}": not an engine')
    assert text.endswith("must be the URL of an oVirt engine with API 4.4 or newer")


@pytest.mark.parametrize("body", [HTML, b"[]", b"", b'{"access_token": 4}'])
def test_a_single_sign_on_that_is_none(body: bytes) -> None:
    exchange = fixed(200, b"")
    exchange.sso = http.EngineResponse(200, body)
    with pytest.raises(errors.Unavailable) as caught:
        subject(exchange).login()
    assert "not an engine" in engine_product.explain(caught.value, SETTINGS)


def test_a_rejected_password_is_sent_once() -> None:
    stage = Stage()
    stage.sso.set_password(seed.USER, "another")
    exchange = Simulated(stage)
    report = subject(exchange)
    for ask in (report.login, report.services, report.rights):
        with pytest.raises(errors.Unauthenticated) as caught:
            ask()
        text = engine_product.explain(caught.value, SETTINGS)
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


def test_space_of_storage_domains_is_a_quota_of_each() -> None:
    """Only domains for data count."""
    stage = Stage()
    stage.set("storage_domain", seed.NFS, available=1)
    quotas = subject(Simulated(stage)).quotas()["storage domains"]
    assert not isinstance(quotas, errors.CloudError)
    by_name = {quota.resource: (quota.used, quota.limit) for quota in quotas}
    assert by_name == {"GiB of nfs-1": (100, 101), "GiB of iscsi-1": (100, 10_100)}


def test_an_engine_has_no_load_balancers() -> None:
    with pytest.raises(errors.Unsupported, match="an engine has no load balancers"):
        subject(Simulated(Stage())).balancing()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("forbid GET api/users/*/permissions", "not authorized"),
        ("hide *", "the user has no roles of its own"),
    ],
)
def test_permits_that_are_not_known_are_an_error(rule: str, message: str) -> None:
    """They were reported as no component at all."""
    with pytest.raises(errors.CloudError, match=message):
        subject(Simulated(Stage(rule))).rights()


def test_a_locked_account_is_named_as_one() -> None:
    stage = Stage()
    for _ in range(6):
        stage.log_in(password="wrong")
    with pytest.raises(errors.Unauthenticated, match="disabled or locked"):
        subject(Simulated(stage)).login()


def problems(stage: Stage, *refs: InstanceRef) -> list[tuple[str, str]]:
    report = subject(Simulated(stage))
    return [(row.node, row.text) for row in report.instance_problems(refs)]


def test_vms_of_nodes_with_one_name_and_without_guest_agent() -> None:
    """A VM that is no Node's, and one that is down, are no problem."""
    stage = Stage("without-agent silent-*")
    vms = vms_of_nodes.Vms(stage.service)
    well, silent = vms.boot("well-1"), vms.boot("silent-1")
    for name in ("silent-2", "down-1", "twice-1"):
        vms.boot(name)
    vms.stop(*vms.ids("down-1"))
    first, second = sorted([*vms.ids("twice-1"), vms.create("twice-1")])
    refs = [
        InstanceRef("well-1", provider_id.zvirt(well)),
        InstanceRef("silent-1", provider_id.zvirt(silent)),
        InstanceRef("Twice-1"),
        InstanceRef("down-1"),
        InstanceRef("absent-1"),
        InstanceRef("other-1", "openstack:///x"),
    ]
    assert problems(stage, *refs) == [
        ("Twice-1", f"2 VMs have this name: {first}, {second}"),
        ("silent-1", "no guest agent reports addresses of VM silent-1"),
    ]
    assert problems(stage) == []
