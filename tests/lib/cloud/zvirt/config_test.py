"""Three spellings of the configuration, from variables and files, and bad input."""

import base64
import datetime
import pathlib
from collections.abc import Mapping

import pytest

from lib.cloud.zvirt import config
from lib.process.config import ConfigError
from tests.lib.cloud.zvirt.engines import CA, NOW

URL = "https://engine.example.com/ovirt-engine/api"
CCM = {
    "ZVIRT_API_URL": URL,
    "ZVIRT_USERNAME": "admin@internal",
    "ZVIRT_PASSWORD": "hunter2",
    "ZVIRT_INSECURE": "false",
    "ZVIRT_CA_BUNDLE": CA,
}
CAPZ = {
    "ZVIRT_API_URL": URL,
    "ZVIRT_USER": "admin@internal",
    "ZVIRT_PASSWORD": "hunter2",
    "ZVIRT_CONNECT_INSECURE": "false",
    "ZVIRT_CA_BUNDLE": CA,
}
EXPECTED = config.EngineConfig(URL, "admin@internal", "hunter2", CA.strip())
YEARS = datetime.timedelta(days=365 * 11)
USER_TEXT = "must be a user with its profile, such as admin@internal"
URL_TEXT = (
    "must be the URL of the engine, such as"
    " https://engine.example.com/ovirt-engine/api"
)
BAD: Mapping[str, tuple[Mapping[str, str], str]] = {
    "a URL without host": (
        {"ZVIRT_API_URL": "https:///ovirt-engine/api"},
        f'ZVIRT_API_URL: invalid value "https:///ovirt-engine/api": {URL_TEXT}',
    ),
    "a URL with another path": (
        {"ZVIRT_API_URL": "https://a/ovirt-engine/webadmin"},
        f'ZVIRT_API_URL: invalid value "https://a/ovirt-engine/webadmin": {URL_TEXT}',
    ),
    "http instead of https": (
        {"ZVIRT_API_URL": "http://a/ovirt-engine/api"},
        f'ZVIRT_API_URL: invalid value "http://a/ovirt-engine/api": {URL_TEXT}',
    ),
    "a URL with a password": (
        {"ZVIRT_API_URL": "https://u:hunter2@a/ovirt-engine/api"},
        "ZVIRT_API_URL: invalid value"
        f' "https://u:[redacted]@a/ovirt-engine/api": {URL_TEXT}',
    ),
    "a port that is none": (
        {"ZVIRT_API_URL": "https://a:x/"},
        f'ZVIRT_API_URL: invalid value "https://a:x/": {URL_TEXT}',
    ),
    "no URL": ({"ZVIRT_API_URL": ""}, f"ZVIRT_API_URL: not set: {URL_TEXT}"),
    "a user without profile": (
        {"ZVIRT_USERNAME": "admin"},
        f'ZVIRT_USERNAME: invalid value "admin": {USER_TEXT}',
    ),
    "no user": ({"ZVIRT_USERNAME": ""}, f"ZVIRT_USERNAME: not set: {USER_TEXT}"),
    "two different users": (
        {"ZVIRT_USER": "other@internal"},
        "ZVIRT_USERNAME: must not be set together with ZVIRT_USER",
    ),
    "no password": (
        {"ZVIRT_PASSWORD": ""},
        "ZVIRT_PASSWORD: not set: must be the password of the user",
    ),
    "a password twice": (
        {"ZVIRT_PASSWORD_FILE": __file__},
        "ZVIRT_PASSWORD: must not be set together with ZVIRT_PASSWORD_FILE",
    ),
    "a word for insecure": (
        {"ZVIRT_INSECURE": "maybe"},
        'ZVIRT_INSECURE: unsupported value "maybe": must be one of true, false',
    ),
    "a CA that is not PEM": (
        {"ZVIRT_CA_BUNDLE": "hunter2"},
        "ZVIRT_CA_BUNDLE: no certificate: must be certificates in PEM",
    ),
    "a CA in base64": (
        {"ZVIRT_CA_BUNDLE": base64.b64encode(CA.encode()).decode()},
        "ZVIRT_CA_BUNDLE: base64 of certificates: must be certificates in PEM",
    ),
    "a damaged CA": (
        {"ZVIRT_CA_BUNDLE": CA.replace("M", "!", 5)},
        "ZVIRT_CA_BUNDLE: a certificate cannot be read: must be certificates in PEM",
    ),
    "half of a CA": (
        {"ZVIRT_CA_BUNDLE": CA[:100]},
        "ZVIRT_CA_BUNDLE: a certificate cannot be read: must be certificates in PEM",
    ),
    "a file that is missing": (
        {"ZVIRT_CA_BUNDLE": "", "ZVIRT_CA_BUNDLE_FILE": "/absent/ca"},
        "ZVIRT_CA_BUNDLE_FILE: /absent/ca: no such file",
    ),
}


def problems(env: Mapping[str, str], now: datetime.datetime = NOW) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config.read(env, now)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("env", [CCM, CAPZ], ids=["cloud controller manager", "capz"])
def test_variables(env: Mapping[str, str]) -> None:
    assert config.read(env, NOW).config == EXPECTED


@pytest.mark.parametrize("path", ["", "/", "/ovirt-engine", "/ovirt-engine/api/"])
def test_paths_of_the_url(path: str) -> None:
    env = {**CCM, "ZVIRT_API_URL": f"https://engine.example.com{path}"}
    settings = config.read(env, NOW).config
    assert settings.url == URL
    assert settings.host == "https://engine.example.com"


def test_the_file_of_the_csi_driver(tmp_path: pathlib.Path) -> None:
    ca, file = tmp_path / "ca.pem", tmp_path / "config.yaml"
    ca.write_text(CA)
    file.write_text(
        f"ovirt_url: {URL}\novirt_username: admin@internal\novirt_password: hunter2\n"
        f"ovirt_insecure: false\novirt_cafile: {ca}\nclusterid: x\n"
    )
    result = config.read({"OVIRT_CONFIG": str(file)}, NOW)
    assert result.config.username == "admin@internal"
    assert result.config.ca.strip() == CA.strip()
    assert result.files == {ca, file}


@pytest.mark.parametrize("password", ["0123", "yes", "1e3", "2026-11-29", "12:30:45"])
def test_an_unquoted_password_keeps_its_characters(
    tmp_path: pathlib.Path, password: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        f"ovirt_url: {URL}\novirt_username: admin@internal\n"
        f"ovirt_password: {password}\novirt_insecure: true\n"
    )
    result = config.read({"OVIRT_CONFIG": str(file)}, NOW)
    assert result.config.password == password


def test_files_of_variables_are_watched(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    env = {**CCM, "ZVIRT_PASSWORD": "", "ZVIRT_PASSWORD_FILE": str(file)}
    result = config.read(env, NOW)
    assert result.config == EXPECTED
    assert result.files == config.watched(env) == {file}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str) -> None:
    changes, sentence = BAD[case]
    texts = problems({**CCM, **changes})
    assert texts == [sentence]
    assert "hunter2" not in texts[0]


def test_an_expired_ca() -> None:
    (text,) = problems(CCM, NOW + YEARS)
    assert text.startswith("ZVIRT_CA_BUNDLE: the certificate expired at 2036-")


def test_all_problems_are_in_one_message() -> None:
    assert len(problems({})) == 3


@pytest.mark.parametrize("content", ["[", "- a", "text", ""])
def test_a_file_that_is_no_mapping(content: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    texts = problems({"OVIRT_CONFIG": str(file)})
    assert any(text.startswith("OVIRT_CONFIG") for text in texts)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("ovirt_usernme", ": did you mean ovirt_username?"),
        (
            "namespace",
            ": must be one of ovirt_url, ovirt_username, ovirt_password,"
            " ovirt_insecure, ovirt_cafile",
        ),
    ],
)
def test_an_unknown_key_of_the_file(
    key: str, hint: str, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        f"ovirt_url: {URL}\novirt_username: admin@internal\n"
        f"ovirt_password: hunter2\n{key}: hunter2\n"
    )
    assert problems({"OVIRT_CONFIG": str(file)}) == [
        f"OVIRT_CONFIG {key}: unknown key{hint}"
    ]


def test_an_empty_file_names_each_key(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("")
    assert problems({"OVIRT_CONFIG": str(file)}) == [
        f"OVIRT_CONFIG ovirt_url: not set: {URL_TEXT}",
        f"OVIRT_CONFIG ovirt_username: not set: {USER_TEXT}",
        "OVIRT_CONFIG ovirt_password: not set: must be the password of the user",
    ]


def test_the_password_is_in_no_representation() -> None:
    assert "hunter2" not in repr(EXPECTED)
