"""Values, differences and steps for DVP, by what the module left in a cluster."""

import datetime
import json
import pathlib
import re
import shlex
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.cloud.dvp.machines import capi_kinds
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
        about = [x for x in commands if f" {app} " in x and "kubectl" in x]
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


# ---------------------------------------------------------------- what is left behind

EXTENSIONS = resources.Resource(
    "runtime.cluster.x-k8s.io", "v1beta2", "extensionconfigs", "ExtensionConfig", False
)
WEBHOOKS = resources.Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)
CLUSTERS = capi_kinds.CLUSTERS
OURS = capi_kinds.CLUSTER_FINALIZER
THEIRS = "dvp.infrastructure.cluster.x-k8s.io/cluster"
USERS = "example.com/keep"


def second_generation() -> Observed:
    """Read the newest module: it serves a runtime extension, and has a finalizer."""
    api = fake_api.FakeApi(lambda: NOW)
    for app in APPS:
        kind = resources.DAEMON_SETS if app == "csi-node" else resources.DEPLOYMENTS
        document = workload(app, "dvp-credentials", "kubernetesConfigBase64")
        document["spec"]["replicas"] = 3
        api.put(kind, document)
    service = {"namespace": HOME, "name": "capdvp-webhook", "port": 9443}
    config = {"service": service, "caBundle": "Q0E="}
    meta: Any = {"name": "capdvp-extension-config"}
    api.put(EXTENSIONS, {"metadata": meta, "spec": {"clientConfig": config}})
    other = {"service": {"namespace": "other", "name": "other"}}
    meta = {"name": "other"}
    api.put(EXTENSIONS, {"metadata": meta, "spec": {"clientConfig": other}})
    labels = {"module": "cloud-provider-dvp"}
    hook: Any = {"name": "a.b.c", "clientConfig": config}
    meta = {"name": "capdvp-webhook", "labels": labels}
    api.put(WEBHOOKS, {"metadata": meta, "webhooks": [hook]})
    hook_of_others = {"name": "a.b.c", "clientConfig": other}
    api.put(WEBHOOKS, {"metadata": {"name": "others"}, "webhooks": [hook_of_others]})
    for name, finalizers in {"new": [USERS, THEIRS], "old": []}.items():
        meta = {"name": name, "namespace": HOME, "finalizers": finalizers}
        api.put(CLUSTERS, {"metadata": meta})
    return reference.read(api, 1, dvp_changeover.REFERENCE)


def commands(title: str, observed: Observed) -> tuple[str, ...]:
    """Return the commands of a step, by the begin of its title."""
    result = planned(observed)
    (step,) = (words for name, words in result.steps if name.startswith(title))
    return tuple(step)


def test_the_finalizer_is_that_of_capdvp() -> None:
    assert dvp_changeover._FINALIZER == OURS
    assert dvp_changeover.REFERENCE.clusters == CLUSTERS


def test_what_calls_the_reference_is_deleted_before_it_is_stopped() -> None:
    """Else each rollout of a MachineDeployment fails; others' objects stay."""
    stop = commands("Stop the reference", second_generation())
    assert stop[0].startswith("(umask 077; kubectl -n d8-cloud-provider-dvp get secret")
    assert stop[1:4] == (
        "kubectl -n d8-system scale deployment deckhouse --replicas=0",
        "kubectl delete extensionconfigs capdvp-extension-config",
        "kubectl delete validatingwebhookconfigurations capdvp-webhook",
    )
    assert not [command for command in stop if "other" in command]


def test_a_finalizer_of_the_reference_is_removed_and_one_of_users_stays() -> None:
    stop = commands("Stop the reference", second_generation())
    patches = [command for command in stop if "deckhouseclusters" in command]
    print(patches)
    assert len(patches) == 1
    assert patches[0].startswith(f"kubectl -n {HOME} patch deckhouseclusters new")
    assert THEIRS not in patches[0]
    assert USERS in patches[0]


def test_the_preview_reads_the_secret_of_the_module() -> None:
    """There is no Deployment of ours yet that names it; machines can be lost, too."""
    option = "--cloud=dvp --cloud-config-secret=d8-cloud-provider-dvp/dvp-credentials"
    assert commands("See what would change", second_generation()) == (
        f"mooring plan nodes {option}/kubernetesConfigBase64",
        f"mooring plan services {option}/kubernetesConfigBase64",
        f"mooring plan machines {option}/kubernetesConfigBase64",
        f"mooring doctor {option}/kubernetesConfigBase64",
    )


def test_the_rollback_restores_what_was_observed() -> None:
    """Extensions with their content, replicas, and finalizers without ours."""
    back = commands("Roll back", second_generation())
    print("\n".join(back))
    scaled = [command for command in back if f"{HOME} scale " in command]
    assert scaled
    assert back[-1] == "kubectl -n d8-system scale deployment deckhouse --replicas=1"
    assert all(command.endswith("--replicas=3") for command in scaled)
    applied = [command for command in back if command.endswith("kubectl apply -f -")]
    documents = [json.loads(shlex.split(command)[1]) for command in applied]
    assert [(d["kind"], d["metadata"]["name"]) for d in documents] == [
        ("ExtensionConfig", "capdvp-extension-config"),
        ("ValidatingWebhookConfiguration", "capdvp-webhook"),
    ]
    assert documents[0]["spec"]["clientConfig"]["caBundle"] == "Q0E="
    assert not {"uid", "resourceVersion"} & documents[0]["metadata"].keys()
    patches = [command for command in back if "deckhouseclusters" in command]
    assert [
        json.loads(shlex.split(p)[-1])["metadata"]["finalizers"] for p in patches
    ] == [
        [USERS, THEIRS],
        [],
    ]
    assert back.index(patches[0]) < back.index(scaled[0])


def test_differences_name_what_is_left_behind() -> None:
    rows = {row.subject: row for row in planned(second_generation()).differences}
    assert "ExtensionConfig capdvp-extension-config" in rows
    assert rows[f"DeckhouseCluster {HOME}/new"].before == f"finalizer {THEIRS}"
    assert f"DeckhouseCluster {HOME}/old" not in rows
