"""Each problem of cloud.conf is one line."""

import pathlib
from collections.abc import Callable

import prometheus_client
import pytest

from lib.cloud.openstack.config.cloud_conf import CloudConf
from lib.daemon import counting, reopening
from lib.process import config
from openstack_ccm import cloud_conf

GOOD = """[Global]
auth-url = http://127.0.0.1:1/v3
username = demo
password = secret-word
tenant-name = demo
domain-id = default
"""
PEM = "-----BEGIN CERTIFICATE-----\n"


def test_a_good_file_is_read(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(GOOD)
    read = CloudConf((str(file),), {}).read().config
    assert read.credentials.username == "demo"


def test_no_file_is_named() -> None:
    with pytest.raises(
        config.ConfigError, match="--cloud-config: not set: must be the path"
    ):
        CloudConf(("",), {}).read()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Global\n", "line 1: invalid syntax"),
        (GOOD.replace("http://127.0.0.1:1/v3", "ftp://x"), "[Global] auth-url"),
        (GOOD + "[Metadata]\nrequest-timeout = soon\n", "[Metadata] request-timeout"),
        (GOOD + "[Networking]\nipv6-support-disabled = perhaps\n", "ipv6-support"),
    ],
)
def test_a_bad_file_names_itself_the_key_and_the_value(
    tmp_path: pathlib.Path, text: str, expected: str
) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(text)
    with pytest.raises(config.ConfigError) as caught:
        CloudConf((str(file),), {}).read()
    assert str(caught.value).startswith(f"{file}: ")
    assert expected in str(caught.value)
    assert "secret-word" not in str(caught.value)


def door(
    file: pathlib.Path, env: dict[str, str] | None = None
) -> Callable[[], reopening.Opened]:
    """Open clouds as the program does; each call is one opening."""
    calls = counting.CloudMetrics("openstack", prometheus_client.CollectorRegistry())
    opener = cloud_conf.source(str(file), env or {}, ())
    return lambda: opener.open(calls)


def test_a_certificate_that_is_missing_is_told_at_the_start(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(f"{GOOD}ca-file = {tmp_path / 'ca.crt'}\n")
    with pytest.raises(config.ConfigError, match="ca-file"):
        door(file)()


def test_every_file_that_counts_is_watched(tmp_path: pathlib.Path) -> None:
    """cloud.conf, CA, certificate and key; and clouds.yaml beside secure.yaml."""
    named = ["ca.crt", "tls.crt", "tls.key"]
    for name in named:
        (tmp_path / name).write_text(PEM)
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text("clouds: {mine: {auth: {password: secret-word}}}")
    file = tmp_path / "cloud.conf"
    file.write_text(
        GOOD.replace("password = secret-word\n", "use-clouds = true\n")
        + f"clouds-file = {clouds}\ncloud = mine\nca-file = {tmp_path / 'ca.crt'}\n"
        + f"cert-file = {tmp_path / 'tls.crt'}\nkey-file = {tmp_path / 'tls.key'}\n"
    )
    secure = tmp_path / "secure.yaml"
    env = {"OS_CLIENT_SECURE_FILE": str(secure)}
    opened = door(file, env)()
    assert not opened.changed()
    for path in (file, clouds, *(tmp_path / name for name in named)):
        path.write_text(path.read_text() + "\n")
        assert opened.changed(), path
        assert not opened.changed(), path
    secure.write_text("clouds: {mine: {auth: {password: other-word}}}")
    assert opened.changed(), "a file that was not there before"


def test_a_clouds_yaml_that_is_no_text_is_told_without_its_content(
    tmp_path: pathlib.Path,
) -> None:
    clouds = tmp_path / "clouds.yaml"
    clouds.write_bytes(b"password: \xff\xfe")
    file = tmp_path / "cloud.conf"
    file.write_text(f"{GOOD}use-clouds = true\nclouds-file = {clouds}\n")
    with pytest.raises(config.ConfigError) as caught:
        door(file)()
    assert str(caught.value) == (
        f"{file}: [Global] clouds-file: not a text file in UTF-8"
    )
