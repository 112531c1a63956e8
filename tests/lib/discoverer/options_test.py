"""Flags, their twins in the environment, and what is wrong with them."""

import datetime
import pathlib

import pytest

from lib.discoverer import options
from lib.discovery.provider import Provider
from lib.process import config, flags

PROVIDER = Provider("csi", access_deployment="d8-cloud-provider/discoverer")
FLAGS = options.table(("fake",), PROVIDER.access_deployment)


def read(
    arguments: list[str], env: dict[str, str] | None = None
) -> options.DiscovererOptions:
    values = flags.parse(FLAGS, arguments)
    return options.read(values, env or {}, PROVIDER)


def test_defaults_are_those_of_the_reference() -> None:
    observed = read([])
    assert observed.period_s == 3600
    assert observed.plain == options.Listen("127.0.0.1", 9000)
    assert observed.secure.port == 0
    assert observed.kubeconfig == ""
    assert not observed.settings.manages_classes
    assert observed.settings.orphan_min_age == datetime.timedelta(minutes=15)
    assert observed.settings.period_s == 3600


def test_twins_count_where_the_flag_is_not_given(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    env = {
        "DISCOVERY_PERIOD": "5m",
        "LISTEN_ADDRESS": "127.0.0.1:8081",
        "KUBECONFIG": str(file),
        "LOGGER_LEVEL": "4",
        "CLUSTER_UUID": "cluster-1",
        "MODULE_CONFIG": '{"zones": ["a"], "instances": {"imageName": "x"}}',
    }
    observed = read([], env)
    assert (observed.period_s, observed.plain.port, observed.verbosity) == (
        300,
        8081,
        4,
    )
    assert observed.kubeconfig == str(file)
    assert observed.settings.cluster_id == "cluster-1"
    assert observed.settings.module_config["zones"] == ["a"]
    assert observed.settings.period_s == 300
    assert read(["--discovery-period=1m"], env).period_s == 60


def test_the_secret_is_that_of_the_reference_unless_it_is_named() -> None:
    assert read([]).settings.provider.data_secret == "d8-cloud-provider-discovery-data"
    named = read(["--discovery-data-secret=discovery-data"])
    assert named.settings.provider.data_secret == "discovery-data"
    with pytest.raises(config.ConfigError, match="--discovery-data-secret: invalid"):
        read(["--discovery-data-secret=A/b"])


def test_the_minimum_age_of_orphaned_disks() -> None:
    observed = read(["--orphaned-disk-min-age=90s"])
    assert observed.settings.orphan_min_age == datetime.timedelta(seconds=90)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", options.Listen("", 0)),
        ("localhost:1", options.Listen("127.0.0.1", 1)),
        ("[::1]:2", options.Listen("::1", 2)),
        ("127.0.0.2:3", options.Listen("127.0.0.2", 3)),
    ],
)
def test_listen_address(text: str, place: options.Listen) -> None:
    assert read([f"--listen-address={text}"]).plain == place


BAD = [
    (
        ["--listen-address=0.0.0.0:9000"],
        {},
        '--listen-address: invalid value "0.0.0.0:9000"',
    ),
    (["--listen-address=9000"], {}, '--listen-address: invalid value "9000"'),
    (["--listen-address=127.0.0.1:99999"], {}, "--listen-address"),
    (
        [],
        {"DISCOVERY_PERIOD": "soon"},
        'DISCOVERY_PERIOD: invalid value "soon": must be a duration',
    ),
    (
        [],
        {"LOGGER_LEVEL": "loud"},
        'LOGGER_LEVEL: invalid value "loud": must be a whole number',
    ),
    ([], {"KUBECONFIG": "/nonexistent"}, "--kubeconfig: /nonexistent: no such file"),
    (
        [],
        {"MODULE_CONFIG": "[]"},
        "MODULE_CONFIG: invalid value: must be a JSON object",
    ),
    ([], {"MODULE_CONFIG": "{"}, "MODULE_CONFIG: invalid value: must be a JSON object"),
    (["--access-deployment=me"], {}, '--access-deployment: invalid value "me"'),
    (["--storage-class-exclude=("], {}, '--storage-class-exclude: invalid value "("'),
    (["--tls-cert-file=/x"], {}, "--tls-private-key-file: not set: must be the path"),
]


@pytest.mark.parametrize(("arguments", "env", "expected"), BAD, ids=[r[2] for r in BAD])
def test_a_problem_names_field_and_value(
    arguments: list[str], env: dict[str, str], expected: str
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        read(arguments, env)
    assert expected in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(config.ConfigError) as caught:
        read(["--storage-class-exclude=("], {"LOGGER_LEVEL": "x", "MODULE_CONFIG": "["})
    assert len(caught.value.problems) == 3
