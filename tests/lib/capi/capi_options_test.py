"""The command line of a provider: defaults, and each value that is rejected."""

import pathlib

import pytest

from lib.capi import flag_table, options
from lib.process import config, flags

LEASE = "70c82521.cluster.x-k8s.io"
IN_POD = "--leader-election-namespace=here"

# Arguments, and what the message has to contain.
REJECTED = [
    ("--health-probe-bind-address=8081", "--health-probe-bind-address: invalid value"),
    ("--metrics-bind-address=:0", "--metrics-bind-address: invalid value"),
    ("--metrics-bind-address=:70000", "from 1 to 65535"),
    ("--metrics-cert-path=/nonexistent", "--metrics-cert-path: /nonexistent/tls.crt"),
    ("--zones=a,a", "--zones: a,a: each zone must be named once"),
    ("--zones=a,", "--zones: invalid value"),
    (f"--zones={'x' * 257}", "a name of 1 to 256 characters"),
    (f"--zones={','.join(f'z{i}' for i in range(101))}", "must be at most 100"),
    ("--kubeconfig=/nonexistent", "--kubeconfig: /nonexistent: no such file"),
    ("--deletion-timeout=0s", "--deletion-timeout: invalid value"),
    ("--sync-period=1s", "--sync-period: invalid value"),
    ("--machine-concurrency=0", "--machine-concurrency: invalid value"),
]


def read(*arguments: str) -> options.ProviderOptions:
    values = flags.parse(flag_table.FLAGS, arguments)
    return options.read(values, LEASE, pathlib.Path("/nonexistent"))


def test_defaults() -> None:
    provider_options = read(IN_POD)
    assert provider_options.lease == ("here", LEASE)
    assert provider_options.probes == ("0.0.0.0", 8081)  # noqa: S104
    assert provider_options.metrics == ("0.0.0.0", 8443)  # noqa: S104
    assert (
        provider_options.is_secure,
        provider_options.zones,
        provider_options.deletion_timeout_s,
    ) == (True, (), 600)
    settings = provider_options.settings("uuid")
    assert (settings.cluster_id, settings.watch_filter) == ("uuid", "")


ZAP = (
    "--zap-devel",
    "--zap-devel=false",
    "--zap-encoder=json",
    "--zap-log-level=debug",
    "--zap-log-level=3",
    "--zap-stacktrace-level=error",
    "--zap-time-encoding=rfc3339",
)
"""Source: controller-runtime pkg/log/zap, BindFlags."""


def test_arguments_of_the_reference_are_accepted() -> None:
    provider_options = read(
        IN_POD,
        "--leader-elect",
        "--health-probe-bind-address=:8081",
        "--metrics-bind-address=0",
        "--metrics-secure=false",
        "--webhook-cert-path=/x",
        "--webhook-cert-name=tls.crt",
        "--webhook-cert-key=tls.key",
        "--enable-http2=false",
        *ZAP,
    )
    assert provider_options.metrics is None
    ignored = {flag.name for flag in provider_options.values.without_effect()}
    assert ignored == {
        "webhook-cert-path",
        "webhook-cert-name",
        "webhook-cert-key",
        "enable-http2",
        *(argument[2:].partition("=")[0] for argument in ZAP),
    }


@pytest.mark.parametrize("argument", ZAP)
def test_each_flag_of_zap_is_accepted_alone(argument: str) -> None:
    name = argument[2:].partition("=")[0]
    accepted = read(IN_POD, argument)
    assert [flag.name for flag in accepted.values.without_effect()] == [name]


@pytest.mark.parametrize(("argument", "message"), REJECTED)
def test_bad_input_is_named(argument: str, message: str) -> None:
    with pytest.raises(config.ConfigError) as raised:
        read(IN_POD, argument)
    assert message in str(raised.value)


def test_the_namespace_of_the_lease(tmp_path: pathlib.Path) -> None:
    values = flags.parse(flag_table.FLAGS, [])
    (tmp_path / "namespace").write_text("of-the-pod\n")
    assert options.read(values, LEASE, tmp_path).lease == ("of-the-pod", LEASE)
    with pytest.raises(config.ConfigError) as raised:
        read()
    assert "--leader-election-namespace: not set" in str(raised.value)
    assert read("--dry-run").lease is None
    assert read("--leader-elect=false").lease is None
