"""The reference's own command line starts ours."""

import pathlib

import pytest

from lib.ccm import flag_table, options
from lib.nodes import deletion_budget
from lib.process import config, flags

REFERENCE = {
    "allocate-node-cidrs": "true",
    "authentication-kubeconfig": "text",
    "authentication-skip-lookup": "true",
    "authentication-token-webhook-cache-ttl": "1m30s",
    "authentication-tolerate-lookup-failure": "true",
    "authorization-always-allow-paths": "a,b",
    "authorization-kubeconfig": "text",
    "authorization-webhook-cache-authorized-ttl": "1m30s",
    "authorization-webhook-cache-unauthorized-ttl": "1m30s",
    "bind-address": "127.0.0.1",
    "cert-dir": "text",
    "cidr-allocator-type": "text",
    "client-ca-file": "text",
    "cloud-config": "text",
    "cloud-provider": "openstack",
    "cluster-cidr": "10.111.0.0/16",
    "cluster-name": "text",
    "concurrent-node-status-updates": "7",
    "concurrent-node-syncs": "7",
    "concurrent-service-syncs": "7",
    "configure-cloud-routes": "true",
    "contention-profiling": "true",
    "controller-start-interval": "1m30s",
    "controllers": "*,-route",
    "disable-http2-serving": "true",
    "enable-leader-migration": "true",
    "external-cloud-volume-plugin": "text",
    "feature-gates": "A=true,B=false",
    "http2-max-streams-per-connection": "7",
    "kube-api-burst": "7",
    "kube-api-content-type": "text",
    "kube-api-qps": "50.5",
    "kubeconfig": "text",
    "leader-elect": "true",
    "leader-elect-lease-duration": "20s",
    "leader-elect-renew-deadline": "1m30s",
    "leader-elect-resource-lock": "leases",
    "leader-elect-resource-name": "text",
    "leader-elect-resource-namespace": "text",
    "leader-elect-retry-period": "1m30s",
    "leader-migration-config": "text",
    "log-flush-frequency": "1m30s",
    "log-json-info-buffer-size": "1Ki",
    "log-json-split-stream": "true",
    "log-text-info-buffer-size": "1Ki",
    "log-text-split-stream": "true",
    "logging-format": "json",
    "master": "text",
    "min-resync-period": "1m30s",
    "node-monitor-period": "1m30s",
    "node-status-update-frequency": "1m30s",
    "permit-address-sharing": "true",
    "permit-port-sharing": "true",
    "profiling": "true",
    "requestheader-allowed-names": "a,b",
    "requestheader-client-ca-file": "text",
    "requestheader-extra-headers-prefix": "a,b",
    "requestheader-group-headers": "a,b",
    "requestheader-uid-headers": "a,b",
    "requestheader-username-headers": "a,b",
    "route-reconciliation-period": "1m30s",
    "secure-port": "7",
    "tls-cert-file": "text",
    "tls-cipher-suites": "TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA",
    "tls-curve-preferences": "1,2",
    "tls-min-version": "VersionTLS13",
    "tls-private-key-file": "text",
    "tls-sni-cert-key": "a,b",
    "use-service-account-credentials": "true",
    "v": "2",
    "vmodule": "a=1",
    "webhook-bind-address": "127.0.0.1",
    "webhook-cert-dir": "text",
    "webhook-disable-http2-serving": "true",
    "webhook-secure-port": "7",
    "webhook-tls-cert-file": "text",
    "webhook-tls-cipher-suites": "a,b",
    "webhook-tls-curve-preferences": "1,2",
    "webhook-tls-min-version": "text",
    "webhook-tls-private-key-file": "text",
    "webhook-tls-sni-cert-key": "a,b",
    "webhooks": "a,b",
    # Of cloud-provider-openstack, and deprecated ones that manifests still hold.
    "user-agent": "text",
    "allow-untagged-cloud": "true",
    "node-sync-period": "1m30s",
}
"""Each flag with a value that the reference takes.

Source: `cloud-controller-manager --help` of k8s.io/cloud-provider v0.36.3.
"""


OURS = {
    "node-delete-window": "1m30s",
    "node-delete-max-count": "7",
    "node-delete-max-percent": "50",
    "cluster-id": "prod-1",
    "lb-drift-period": "5m",
    "lb-max-writes": "32",
    "dry-run": "true",
}
"""Each flag that the reference does not have, with a value that it takes."""


def test_flags_of_our_own_are_no_flags_of_the_reference() -> None:
    """They are kept apart in the table, they work, and each has a default."""
    assert {flag.name for flag in flag_table.OURS} == set(OURS)
    assert not set(OURS) & set(REFERENCE)
    words = [f"--{name}={value}" for name, value in OURS.items()]
    values = flags.parse(options.FLAGS, ["--cloud-provider=openstack", *words])
    read = options.read(values, "openstack")
    assert read.delete_limit == deletion_budget.Limit(window_s=90, count=7, percent=50)
    assert (read.cluster_id, read.drift_s) == ("prod-1", 300)
    assert read.dry_run
    assert not read.leader_elect, "a dry run takes no Lease"
    plain = flags.parse(options.FLAGS, ["--cloud-provider=openstack"])
    usual = options.read(plain, "openstack")
    assert (usual.cluster_id, usual.drift_s) == ("", 600)
    assert not usual.dry_run
    assert usual.delete_limit == deletion_budget.Limit(
        window_s=600, count=3, percent=30
    )


def test_every_flag_of_the_reference_is_accepted() -> None:
    """Prints flag x what becomes of it."""
    by_name = {flag.name: flag for flag in options.FLAGS}
    values = flags.parse(
        options.FLAGS, [f"--{name}={value}" for name, value in REFERENCE.items()]
    )
    for name in sorted(REFERENCE):
        flag = by_name[name]
        assert values.is_given(flag)
        print(f"--{name:48} {flag.no_effect or 'works'}")
    assert set(by_name) == set(REFERENCE) | set(OURS)


def test_defaults_are_those_of_the_reference() -> None:
    """Source: k8s.io/cloud-provider options_test.go, the default set."""
    read = options.read(
        flags.parse(options.FLAGS, ["--cloud-provider=openstack"]), "openstack"
    )
    assert read.node_monitor_s == 5
    assert read.node_status_s == 300
    assert (read.lease_s, read.renew_s, read.retry_s) == (15, 10, 2)
    assert (read.lease_namespace, read.lease_name) == (
        "kube-system",
        "cloud-controller-manager",
    )
    assert read.leader_elect
    assert len(read.controllers) == 4


@pytest.mark.parametrize(
    ("words", "on"),
    [
        ("*", {"node", "lifecycle"}),
        ("cloud-node", {"node"}),
        ("cloud-node-controller", {"node"}),
        ("cloud-node,cloud-node-lifecycle", {"node", "lifecycle"}),
        ("*,-cloud-node-lifecycle", {"node"}),
        ("*,-cloud-node-lifecycle-controller", {"node"}),
        ("-cloud-node,*", {"lifecycle"}),
        ("service", set()),
    ],
)
def test_controllers(words: str, on: set[str]) -> None:
    arguments = ["--cloud-provider=openstack", f"--controllers={words}"]
    read = options.read(flags.parse(options.FLAGS, arguments), "openstack")
    names = {"node": options.NODE, "lifecycle": options.LIFECYCLE}
    assert {word for word, name in names.items() if name in read.controllers} == on


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--cloud-provider: not set: must be openstack"),
        (
            ["--cloud-provider=aws"],
            '--cloud-provider: invalid value "aws": must be openstack',
        ),
        (
            ["--controllers=nodes"],
            '--controllers: unsupported value "nodes": must be one of *',
        ),
        (
            ["--cloud-config=/no/file"],
            "/no/file: no such file",
        ),
        (
            ["--kubeconfig=/no/file"],
            "/no/file: no such file",
        ),
        (
            ["--leader-elect-renew-deadline=15s"],
            '--leader-elect-lease-duration: invalid value "15s": must be more than',
        ),
        (
            ["--leader-elect-retry-period=10s"],
            '--leader-elect-renew-deadline: invalid value "10s": must be more than',
        ),
        (
            ["--concurrent-node-syncs=0"],
            '--concurrent-node-syncs: invalid value "0": must be a whole',
        ),
        (
            ["--node-monitor-period=0"],
            '--node-monitor-period: invalid value "0": must be a duration',
        ),
        (
            ["--secure-port=65536"],
            '--secure-port: invalid value "65536": must be a whole number',
        ),
        (
            ["--leader-elect=maybe"],
            '--leader-elect: invalid value "maybe": must be true or false',
        ),
        (
            ["--node-delete-max-percent=101"],
            '--node-delete-max-percent: invalid value "101": must be a whole number',
        ),
        (
            ["--node-delete-max-count=-1"],
            '--node-delete-max-count: invalid value "-1": must be a whole number',
        ),
        (
            ["--node-delete-window=0"],
            '--node-delete-window: invalid value "0": must be a duration',
        ),
        (
            ["--tls-cert-file=/no/file"],
            "/no/file: no such file",
        ),
        (
            ["--tls-cert-file=/etc/hostname"],
            (
                "--tls-private-key-file: not set: must be the path of a file, since"
                " --tls-cert-file"
            ),
        ),
        (
            ["--tls-private-key-file=/etc/hostname"],
            (
                "--tls-cert-file: not set: must be the path of a file, since"
                " --tls-private-key-file"
            ),
        ),
        (
            ["--authorization-always-allow-paths=/healthz,/a*b"],
            (
                '--authorization-always-allow-paths: invalid value "/a*b": must be'
                " a path with"
            ),
        ),
        (["--nodes"], "--nodes: unknown flag"),
        (["openstack"], 'unexpected argument: "openstack": must be a flag'),
    ],
)
def test_bad_input_names_flag_value_and_what_is_right(
    words: list[str], message: str
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        options.read(flags.parse(options.FLAGS, words), "openstack")
    assert message in str(caught.value)


def test_all_problems_are_told_together(tmp_path: pathlib.Path) -> None:
    words = [f"--cloud-config={tmp_path / 'none'}", "--controllers=x,y"]
    with pytest.raises(config.ConfigError) as caught:
        options.read(flags.parse(options.FLAGS, words), "openstack")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("value", "named", "expected"),
    [
        ("pods", "pods", "a CIDR without host bits, such as 10.111.0.0/16"),
        ("10.111.0.0", "10.111.0.0", "a CIDR without host bits"),
        ("10.111.0.1/16", "10.111.0.1/16", "a CIDR without host bits"),
        ("10.1.0.0/16,x", "x", "a CIDR without host bits"),
        ("10.1.0.0/16,10.2.0.0/16", "10.1.0.0/16,10.2.0.0/16", "one of IPv6"),
        ("fd00::/64,fd01::/64", "fd00::/64,fd01::/64", "one CIDR, or one of IPv4"),
        ("10.1.0.0/16,fd00::/64,fd01::/64", "fd00::/64", "one CIDR, or one of IPv4"),
    ],
)
def test_a_wrong_cluster_cidr_is_named(value: str, named: str, expected: str) -> None:
    """Flag, value and what would be valid."""
    words = ["--cloud-provider=openstack", f"--cluster-cidr={value}"]
    (problem,) = options.judge(flags.parse(options.FLAGS, words), "openstack")
    assert problem.field == "--cluster-cidr"
    assert named in str(problem)
    assert expected in str(problem)


@pytest.mark.parametrize("value", ["", "10.1.0.0/16", "fd00::/64,10.1.0.0/16"])
def test_a_cluster_cidr_of_each_family_is_taken(value: str) -> None:
    words = ["--cloud-provider=openstack", f"--cluster-cidr={value}"]
    read = options.read(flags.parse(options.FLAGS, words), "openstack")
    assert ",".join(map(str, read.cluster_cidrs)) == value
