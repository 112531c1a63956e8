"""What is wrong with cloud.conf is told in one line each."""

import pathlib

import pytest

from lib.process import config
from openstack_ccm import cloud_conf

GOOD = """[Global]
auth-url = http://127.0.0.1:1/v3
username = demo
password = secret-word
tenant-name = demo
domain-id = default
"""


def test_a_good_file_is_read(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(GOOD)
    read = cloud_conf.read(str(file), {})
    assert read.credentials.username == "demo"


def test_no_file_is_named() -> None:
    with pytest.raises(config.ConfigError, match="--cloud-config: want the path"):
        cloud_conf.read("", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Global\n", "line 1 can't be read"),
        (GOOD.replace("http://127.0.0.1:1/v3", "ftp://x"), "[Global] auth-url"),
        (GOOD + "[Metadata]\nrequest-timeout = soon\n", "[Metadata] request-timeout"),
        (GOOD + "[Networking]\nipv6-support-disabled = perhaps\n", "ipv6-support"),
    ],
)
def test_a_bad_file_names_itself_the_key_and_the_value(
    tmp_path: pathlib.Path, text: str, said: str
) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(text)
    with pytest.raises(config.ConfigError) as caught:
        cloud_conf.read(str(file), {})
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_a_certificate_that_is_missing_is_told_at_the_start(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text(f"{GOOD}ca-file = {tmp_path / 'ca.crt'}\n")
    read = cloud_conf.read(str(file), {})
    with pytest.raises(config.ConfigError, match="ca-file"):
        cloud_conf.connect(str(file), read, lambda *told: None, ())
