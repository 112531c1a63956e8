"""What the chart renders, by its snapshots, fits the program and what the lab runs."""

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import prometheus_client
import pytest
import yaml

from lib.ccm import flag_table, metrics, options
from lib.daemon import common_flags, counting
from lib.daemon import metrics as daemon_metrics
from lib.lab.charts import charts
from lib.lab.daemons import ccm
from lib.process import flags
from lib.reconcile import metrics as reconcile_metrics
from openstack_ccm import cloud_conf

ROOT = pathlib.Path()
CHART = charts.folder(ROOT, "openstack-ccm")
SNAPSHOTS = charts.of("openstack-ccm")
USUAL, BESIDE = "usual", "beside-the-reference"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
TAINTS = [
    {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},
]
"""With any of them on a Node, only openstack-ccm can remove the first one."""


def of_kind(name: str, kind: str) -> list[dict[str, Any]]:
    return SNAPSHOTS[name].objects(ROOT, kind)


def deployment(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].deployment(ROOT)


def pod(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].pod(ROOT)


def container(name: str) -> dict[str, Any]:
    (only,) = pod(name)["containers"]
    assert isinstance(only, dict)
    return only


def parsed(name: str) -> flags.Values:
    return flags.parse(options.FLAGS, container(name)["args"])


def defaults() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return document


def values(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].all_values(ROOT)


def judge(chart_values: Mapping[str, Any]) -> list[str]:
    """Return the fields that the schema refuses."""
    return charts.refused(ROOT, "openstack-ccm", chart_values)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_flag_is_taken_by_the_program(name: str) -> None:
    """And does something there."""
    parsed_flags = parsed(name)
    assert parsed_flags.without_effect() == ()
    chart_values = values(name)
    assert parsed_flags[flag_table.CLOUD_PROVIDER] == "openstack"
    assert parsed_flags[flag_table.SECURE_PORT] == chart_values["securePort"]
    assert parsed_flags[common_flags.LEADER_ELECT]
    election = chart_values["leaderElection"]
    assert parsed_flags[flag_table.LEASE_NAME] == election["resourceName"]
    assert parsed_flags[flag_table.LEASE_NAMESPACE] == election["resourceNamespace"]
    limit = chart_values["nodeDeletion"]
    assert parsed_flags[flag_table.NODE_DELETE_MAX_COUNT] == limit["maxCount"]
    assert parsed_flags[flag_table.NODE_DELETE_MAX_PERCENT] == limit["maxPercent"]
    assert list(parsed_flags[flag_table.CONTROLLERS_FLAG]) == (
        chart_values["controllers"] or ["*"]
    )
    assert parsed_flags[flag_table.CLUSTER_NAME] == chart_values["clusterName"]
    assert parsed_flags[flag_table.CLUSTER_ID] == chart_values["clusterID"]
    assert parsed_flags[flag_table.CLUSTER_CIDR] == chart_values["clusterCIDR"]
    assert (
        parsed_flags[flag_table.CONFIGURE_ROUTES]
        == chart_values["configureCloudRoutes"]
    )


def test_what_is_not_set_is_as_the_program_has_it() -> None:
    """But for the port, which is Deckhouse's, and how much is logged."""
    parsed_flags = parsed(USUAL)
    otherwise = {"cloud-provider", "cloud-config", "bind-address", "secure-port", "v"}
    for flag in options.FLAGS:
        if flag.name not in otherwise:
            assert parsed_flags[flag] == flag.default, flag.name


def test_the_controllers_of_the_schema_are_those_of_the_program() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = schema["properties"]["controllers"]["items"]["enum"]
    names = list(flag_table.CONTROLLERS)
    assert known == ["*", *names, *(f"-{name}" for name in names)]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_cloud_conf_is_a_file_of_a_secret_that_there_is(name: str) -> None:
    """No Secret is made, and nothing of one reaches arguments or environment."""
    cloud_config = values(name)["cloudConfig"]
    assert of_kind(name, "Secret") == []
    path = pathlib.Path(parsed(name)[flag_table.CLOUD_CONFIG])
    assert path.name == cloud_config["key"]
    mounts = {mount["mountPath"]: mount for mount in container(name)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(name)["volumes"]}
    mount = mounts[str(path.parent)]
    assert volumes[mount["name"]]["secret"] == {
        "secretName": cloud_config["secretName"]
    }
    assert mount["readOnly"]
    for variable in container(name)["env"]:
        assert set(variable.get("valueFrom", {})) <= {"fieldRef"}
    assert "envFrom" not in container(name)


def test_what_the_environment_says() -> None:
    """By the names that the reference reads."""
    usual = {variable["name"] for variable in container(USUAL)["env"]}
    assert usual == {"HOST_IP"}
    env = {
        variable["name"]: variable.get("value") for variable in container(BESIDE)["env"]
    }
    assert env == {
        "HOST_IP": None,
        "KUBERNETES_SERVICE_HOST": None,
        "KUBERNETES_SERVICE_PORT": "6443",
        "OS_CCM_REGIONAL": "true",
        "SKIP_NODE_DELETION": "true",
    }


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_probes_and_scrapes_reach_the_secure_port(name: str) -> None:
    """Where the kubelet and Prometheus ask: at the host's address."""
    here = container(name)
    port = values(name)["securePort"]
    for probe in ("livenessProbe", "readinessProbe"):
        asked = here[probe]["httpGet"]
        assert (asked["port"], asked["scheme"]) == (port, "HTTPS")
        assert asked["path"] in parsed(name)[flag_table.ALWAYS_ALLOW]
    assert here["ports"] == [{"name": "https-metrics", "containerPort": port}]
    assert pod(name)["hostNetwork"]
    assert parsed(name)[common_flags.BIND_ADDRESS] == "$(HOST_IP)"
    for monitor in of_kind(name, "PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert (endpoint["port"], endpoint["scheme"]) == ("https-metrics", "https")


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_two_are_never_on_one_host(name: str) -> None:
    """They would want the same port; an old pod goes before a new one comes."""
    labels = deployment(name)["template"]["metadata"]["labels"]
    assert deployment(name)["replicas"] >= 2
    affinity = pod(name)["affinity"]["podAntiAffinity"]
    (rule,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    chosen = rule["labelSelector"]["matchLabels"]
    assert chosen.items() <= labels.items()
    assert deployment(name)["selector"]["matchLabels"] == chosen
    assert deployment(name)["strategy"]["rollingUpdate"]["maxSurge"] == 0
    (budget,) = of_kind(name, "PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"] == chosen
    assert budget["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("taint", TAINTS, ids=[taint["key"] for taint in TAINTS])
def test_it_runs_where_nothing_else_does_yet(taint: dict[str, str]) -> None:
    """Source: Kubernetes, well-known taints; core/v1 Toleration."""
    tolerated = [
        toleration
        for toleration in pod(USUAL)["tolerations"]
        if toleration.get("key", taint["key"]) == taint["key"]
        and toleration.get("effect", taint["effect"]) == taint["effect"]
        and (
            toleration.get("operator") == "Exists"
            or toleration.get("value") == taint.get("value")
        )
    ]
    assert tolerated
    assert pod(USUAL)["priorityClassName"] == "system-cluster-critical"


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_it_may_do_little_on_its_host(name: str) -> None:
    assert pod(name)["securityContext"]["runAsNonRoot"]
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert {tuple(set(volume) - {"name"}) for volume in pod(name)["volumes"]} == {
        ("emptyDir",),
        ("secret",),
    }


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_rights_are_those_of_the_tests(name: str) -> None:
    """The lab runs it with files/rbac.yaml; the chart moves only where it lives."""
    home = SNAPSHOTS[name].namespace
    moved = ccm.manifest().replace("namespace: kube-system", f"namespace: {home}")
    expected = [manifest for manifest in yaml.safe_load_all(moved) if manifest]
    assert all(manifest in SNAPSHOTS[name].objects(ROOT) for manifest in expected)
    kinds = {manifest["kind"] for manifest in expected}
    others = [
        manifest["metadata"]["name"]
        for manifest in SNAPSHOTS[name].objects(ROOT)
        if manifest["kind"] in kinds and manifest not in expected
    ]
    watched = values(name)["metrics"]["podMonitor"]["enabled"]
    assert others == (["openstack-ccm:metrics"] * 2 if watched else [])
    (account,) = of_kind(name, "ServiceAccount")
    assert account["metadata"]["namespace"] == home
    assert pod(name)["serviceAccountName"] == account["metadata"]["name"]


def test_every_series_of_an_alert_is_one_of_ours() -> None:
    """With labels that it has; `up` is Prometheus' own."""
    registry = prometheus_client.CollectorRegistry()
    reconcile_metrics.ReconcileMetrics(registry)
    calls = counting.CloudMetrics("openstack", registry, cloud_conf.REFERENCE)
    calls.circuit("compute", is_open=False)
    metrics.InstanceMetrics(registry)
    metrics.DeletionMetrics(registry)
    metrics.NodeProblemMetrics(registry).watch(dict)
    daemon_metrics.LeaderMetrics("lease", registry)
    metrics.BalancerMetrics(registry, cloud_conf.REFERENCE)
    metrics.RouteMetrics(registry)
    own_metrics = {
        f"{family.name}{'_total' if family.type == 'counter' else ''}"
        for family in registry.collect()
    }
    (group,) = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        named = set(re.findall(r"(\w+)\{", rule["expr"]))
        print(f"{rule['alert']:40} {', '.join(sorted(named))}")
        assert named
        assert named <= {*own_metrics, "up"}, rule["alert"]
        assert rule["expr"].count('job="openstack-ccm"') == len(named)


def test_templates_values_and_schema_know_the_same_keys() -> None:
    usual = defaults()
    schema = json.loads((CHART / "values.schema.json").read_text())
    texts = "".join(file.read_text() for file in (CHART / "templates").iterdir())
    shared = "".join(charts.library(pathlib.Path()).values())
    own, library = (
        set(re.findall(r"\.Values\.(\w+)", text)) for text in (texts, shared)
    )
    assert own <= set(usual) <= own | library
    assert set(schema["properties"]) == {*usual, "global", "library"}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_values_of_the_snapshots_are_good(name: str) -> None:
    assert judge(values(name)) == []


def test_the_chart_alone_asks_for_what_only_the_user_knows() -> None:
    assert judge(defaults()) == ["cloudConfig.secretName", "image"]
