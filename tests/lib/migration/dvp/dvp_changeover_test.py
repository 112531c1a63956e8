"""Values, differences and steps for DVP, by what the module left in a cluster."""

import datetime
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.lab.charts import charts
from lib.migration import http_proxy, reference
from lib.migration.dvp import dvp_changeover
from lib.migration.reference import Observed

ROOT = pathlib.Path()
HOME = "d8-cloud-provider-dvp"
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
APPS = {
    "cloud-controller-manager": (
        "--cloud-provider=dvp",
        "--controllers=cloud-node,cloud-node-lifecycle,service-lb-controller",
        "--v=4",
    ),
    "capdvp-controller-manager": ("--leader-elect",),
    "csi-controller": ("--endpoint=$(CSI_ENDPOINT)", "--node-name=$(NODE)"),
    "csi-node": ("--endpoint=$(CSI_ENDPOINT)",),
    "cloud-data-discoverer": ("--discovery-period=1h",),
}
EMPTY: Mapping[str, str] = {}
SIDECARS = {
    "csi-controller": ("provisioner", ("--timeout=600s", "--v=5")),
    "csi-node": (
        "node-driver-registrar",
        (
            "--kubelet-registration-path=/var/lib/kubelet/csi-plugins/"
            "csi.dvp.deckhouse.io/csi.sock",
        ),
    ),
}


def workload(
    app: str, secret: str, key: str, env: Mapping[str, str] = EMPTY
) -> dict[str, Any]:
    """Return a Deployment or DaemonSet as the module renders it. env: added to it."""
    variable = {
        "name": "DVP_KUBERNETES_CONFIG_BASE64",
        "valueFrom": {"secretKeyRef": {"name": secret, "key": key}},
    }
    further = [{"name": name, "value": value} for name, value in env.items()]
    variables = [variable, *further]
    own = {"name": app, "image": "x@sha256:1", "args": APPS[app], "env": variables}
    beside = [
        {"name": name, "image": "y", "args": words}
        for of, (name, words) in SIDECARS.items()
        if of == app
    ]
    labels = {"heritage": "deckhouse", "module": "cloud-provider-dvp", "app": app}
    return {
        "metadata": {"name": app, "namespace": HOME, "labels": labels},
        "spec": {"template": {"spec": {"containers": [*beside, own]}}},
    }


def observe(
    secrets: Mapping[str, tuple[str, str]],
    hosts: int = 3,
    env: Mapping[str, str] = EMPTY,
) -> Observed:
    """Read a cluster. secrets: name and key, by app; others have the module's own.

    env: added to the variables of each program.
    """
    api = fake_api.FakeApi(lambda: NOW)
    for app in APPS:
        own = "dvp-credentials-capdvp" if "capdvp" in app else "dvp-credentials"
        secret, key = secrets.get(app, (own, "kubernetesConfigBase64"))
        kind = resources.DAEMON_SETS if app == "csi-node" else resources.DEPLOYMENTS
        api.put(kind, workload(app, secret, key, env))
    for number in range(hosts):
        labels = {"node-role.kubernetes.io/control-plane": ""}
        meta = {"name": f"host-{number}", "labels": labels}
        api.put(resources.NODES, {"metadata": meta})
    return reference.read(api, 1, dvp_changeover.REFERENCE)


def defaults(chart: str) -> dict[str, Any]:
    """Return the values of a chart."""
    text = (charts.folder(ROOT, chart) / "values.yaml").read_text()
    return dict(yaml.safe_load(text))


def planned(observed: Observed) -> Any:
    """Return the plan, whose values every schema accepts."""
    result = dvp_changeover.plan(observed)
    assert result is not None
    values = charts.merged(defaults(dvp_changeover.CHART), result.values)
    assert charts.refused(ROOT, dvp_changeover.CHART, values) == []
    for component in charts.UMBRELLAS[dvp_changeover.CHART]:
        own = charts.merged(defaults(component), values[component])
        whole = own | {"global": values["global"]}
        assert charts.refused(ROOT, component, whole) == [], component
    return result


def test_without_the_reference_there_is_nothing_to_migrate() -> None:
    assert dvp_changeover.plan(Observed(())) is None


def test_the_module_of_either_generation_needs_no_names() -> None:
    """Secrets, project and cluster UUID are found by the chart's defaults."""
    result = planned(observe({}))
    assert result.namespace == HOME
    assert result.values == {
        "global": {
            "imageRegistry": "REGISTRY",
            "controlPlaneNodes": 3,
            "deckhouse": {"enabled": True, "names": False},
        },
        "components": dict.fromkeys(
            (
                "dvp-ccm",
                "capdvp",
                "csi-controller",
                "csi-node",
                "cloud-data-discoverer",
            ),
            True,
        ),
        "dvp-ccm": {
            "leaderElection": {
                "resourceName": "cloud-controller-manager",
                "resourceNamespace": "kube-system",
            },
            "controllers": [
                "cloud-node-controller",
                "cloud-node-lifecycle-controller",
                "service-lb-controller",
            ],
            "verbosity": 4,
        },
        "cloud-data-discoverer": {"storageClasses": {"manage": False}},
        "csi-controller": {
            "csiDriver": {"nodeAllocatableUpdatePeriodSeconds": 0},
            "sidecars": {"timeout": "600s"},
        },
    }


def test_other_secrets_are_named_for_each_component() -> None:
    result = planned(
        observe({"csi-controller": ("csi-parent", "kubernetesConfigBase64")})
    )
    assert result.values["global"]["parent"] == {
        "secretNames": {
            "dvp-ccm": "dvp-credentials",
            "capdvp": "dvp-credentials-capdvp",
            "csi-controller": "csi-parent",
            "cloud-data-discoverer": "dvp-credentials",
        },
        "key": "kubernetesConfigBase64",
    }


def test_a_managed_control_plane_has_no_hosts_to_select() -> None:
    values = planned(observe({}, hosts=0)).values
    selected = {
        name
        for name in dvp_changeover.COMPONENTS.values()
        if "nodeSelector" in values.get(name, {})
    }
    assert selected == set(dvp_changeover.COMPONENTS.values()) - {"csi-node"}


def test_a_proxy_is_that_of_the_chart() -> None:
    """As Deckhouse renders it; the schemas accept the printed value."""
    hosts = "127.0.0.1,169.254.169.254,cluster.local,10.111.0.0/16,fd00::/48"
    url = "http://proxy.internal:3128"
    env = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": hosts}
    both = {**env, **{name.lower(): value for name, value in env.items()}}
    result = planned(observe({}, env=both))
    assert result.values["global"]["proxy"] == {
        "httpProxy": url,
        "httpsProxy": url,
        "noProxy": ["10.111.0.0/16", "fd00::/48"],
    }
    assert not [row for row in result.differences if "proxy" in row.subject]


def test_a_proxy_with_a_password_is_a_difference_for_each_component() -> None:
    """All but csi-node, which has no proxy."""
    env = {"HTTPS_PROXY": "http://user:s3cr3t@proxy.internal:3128"}
    result = planned(observe({}, env=env))
    assert "proxy" not in result.values["global"]
    (row,) = (row for row in result.differences if "proxy" in row.subject)
    print(row)
    assert all(
        (f"Deployment {app}" in row.before) == (app != "csi-node") for app in APPS
    )
    assert "s3cr3t" not in f"{result!r}"


def test_entries_that_the_chart_adds_are_those_of_its_template() -> None:
    library = charts.folder(ROOT, dvp_changeover.CHART) / "charts/library/templates"
    (direct,) = re.findall(
        r"\$direct := list (.*) }}", (library / "_globals.tpl").read_text()
    )
    assert tuple(re.findall(r'"(.*?)"', direct)) == http_proxy.ALWAYS_DIRECT


def test_accepted_values_are_those_of_the_schema() -> None:
    folder = charts.folder(ROOT, dvp_changeover.CHART)
    schema = json.loads((folder / "values.schema.json").read_text())
    fields = schema["properties"]["global"]["properties"]["proxy"]["properties"]
    url = f"^(.*@.*|{http_proxy.URL.pattern})?$"
    assert {fields[name]["pattern"] for name in ("httpProxy", "httpsProxy")} == {url}
    assert fields["noProxy"]["items"]["pattern"] == f"^{http_proxy.HOST.pattern}$"


def test_steps_stop_the_reference_and_start_it_again() -> None:
    """Prints them; objects of the reference are neither deleted nor renamed."""
    result = planned(observe({}))
    commands = [word for _, words in result.steps for word in words]
    print(*commands, sep="\n")
    for app in APPS:
        about = [word for word in commands if f" {app} " in word]
        assert len(about) == 2, app
    assert not [word for word in commands if "delete" in word]
    (install,) = (word for word in commands if "helm install" in word)
    assert install.endswith("--skip-crds --take-ownership")
    workloads = [row.after for row in result.differences if "workload" in row.subject]
    assert sorted(workloads) == [
        "DaemonSet csi-node-dvp",
        "Deployment capdvp",
        "Deployment cloud-data-discoverer-dvp",
        "Deployment csi-controller-dvp",
        "Deployment dvp-ccm",
    ]


@pytest.mark.parametrize("module", ["cloud-provider-openstack", ""])
def test_another_module_is_not_that_of_dvp(module: str) -> None:
    api = fake_api.FakeApi(lambda: NOW)
    item = workload("csi-controller", "x", "y")
    item["metadata"]["labels"]["module"] = module
    api.put(resources.DEPLOYMENTS, item)
    assert reference.read(api, 1, dvp_changeover.REFERENCE).programs == ()


def test_this_chart_with_the_names_of_deckhouse_is_not_the_reference() -> None:
    api = fake_api.FakeApi(lambda: NOW)
    own = workload("csi-controller", "dvp-credentials", "kubernetesConfigBase64")
    own["metadata"]["labels"]["app.kubernetes.io/name"] = "csi-controller-dvp"
    api.put(resources.DEPLOYMENTS, own)
    assert reference.read(api, 1, dvp_changeover.REFERENCE).programs == ()
