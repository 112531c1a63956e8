"""Where `--cloud=zvirt` reads its configuration, and what an engine does not have."""

import pathlib
from collections.abc import Mapping

import pytest

from lib.process import config
from mooring.commands import on_zvirt, provider_zvirt

URL = "https://engine.example.com/ovirt-engine/api"
FILE = f"""
ovirt_url: {URL}
ovirt_username: file@internal
ovirt_password: s3cret
ovirt_insecure: true
"""
SECRET = {
    "ZVIRT_API_URL": URL,
    "ZVIRT_USERNAME": "secret@internal",
    "ZVIRT_PASSWORD": "s3cret",
    "ZVIRT_INSECURE": "true",
}
OF_POD = {"ZVIRT_API_URL_FILE": "/etc/zvirt/server", "OVIRT_CONFIG": "/etc/config"}
TITLE = "Secret d8-cloud-provider-zvirt/ccm-zvirt-credentials, key server"


@pytest.fixture()
def file(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize(
    ("env", "title", "user"),
    [
        pytest.param({}, "", "file@internal", id="a file"),
        pytest.param(SECRET, "", "file@internal", id="a file goes before variables"),
        pytest.param({}, TITLE, "file@internal", id="a key of a Secret is the file"),
        pytest.param(SECRET, TITLE, "secret@internal", id="keys of a Secret"),
        pytest.param(
            {**SECRET, **OF_POD},
            TITLE,
            "secret@internal",
            id="paths in the Pod are not read",
        ),
    ],
)
def test_sources(file: str, env: Mapping[str, str], title: str, user: str) -> None:
    assert on_zvirt.OnZvirt.read(file, env, title).settings.username == user


def test_the_environment_alone_is_a_configuration() -> None:
    assert provider_zvirt.PROVIDER.is_configured is not None
    assert provider_zvirt.PROVIDER.is_configured(SECRET)
    assert not provider_zvirt.PROVIDER.is_configured({})
    assert on_zvirt.OnZvirt.read("", SECRET).settings.url == URL


def test_problems_name_the_source(file: str, tmp_path: pathlib.Path) -> None:
    wrong = {**SECRET, "ZVIRT_API_URL": "http://engine"}
    with pytest.raises(config.ConfigError, match=f"^{TITLE}: ZVIRT_API_URL: invalid"):
        on_zvirt.OnZvirt.read(file, wrong, TITLE)
    bad = tmp_path / "bad.yaml"
    bad.write_text(FILE.replace("file@internal", "file"))
    with pytest.raises(config.ConfigError, match="^--cloud-config ovirt_username: inv"):
        on_zvirt.OnZvirt.read(str(bad), {})


def test_an_engine_has_no_load_balancers(file: str) -> None:
    with pytest.raises(config.ConfigError, match="an engine has no load balancers"):
        on_zvirt.OnZvirt.read(file, {}).plans()


def test_the_cloud_has_instances(file: str) -> None:
    cloud = on_zvirt.OnZvirt.read(file, {}).owner()
    assert cloud.name == "zvirt"
    assert cloud.instances is not None
    assert cloud.load_balancers is None
