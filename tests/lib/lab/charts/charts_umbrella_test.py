"""Rules of the umbrella charts and of the charts that they contain."""

import functools
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.lab.charts import charts

ROOT = pathlib.Path()
OPENSTACK, DVP = charts.UMBRELLAS
SNAPSHOTS = {
    f"{snapshot.chart}-{snapshot.name}": snapshot
    for snapshot in charts.SNAPSHOTS
    if snapshot.chart in charts.UMBRELLAS
}
OF_OPENSTACK = tuple(name for name in SNAPSHOTS if name.startswith(OPENSTACK))
OF_DVP = tuple(name for name in SNAPSHOTS if name.startswith(DVP))
COMPONENTS = [
    (umbrella, component)
    for umbrella, components in charts.UMBRELLAS.items()
    for component in components
]
PARTS = (
    "Chart.yaml",
    "values.yaml",
    "values.schema.json",
    "templates/*",
    "files/*",
    "crds/*",
)
"""Files of a component that an umbrella contains."""
LEFT_OUT = {(DVP, "cloud-data-discoverer"): "crds/"}
"""Of an umbrella and component: kinds of which the cloud has no objects."""
MANAGERS = {OPENSTACK: "openstack-ccm", DVP: "dvp-ccm"}
MAIN = {
    "capdvp": "capdvp",
    "cloud-data-discoverer": "cloud-data-discoverer",
    "csi-controller": "controller",
    "csi-node": "node",
    "dvp-ccm": "dvp-ccm",
    "openstack-ccm": "openstack-ccm",
}
"""The component's own container, by component."""
SIDECARS = {
    "kube-rbac-proxy": "cloud-data-discoverer",
    "livenessprobe": "csi-controller csi-node",
    "node-driver-registrar": "csi-node",
}
"""Containers with the modes sidecar and builtin, and components that can run them."""
EXPECTED_SIDECARS = {
    f"{OPENSTACK}-deckhouse": set(SIDECARS),
    f"{OPENSTACK}-one-host": {"livenessprobe", "node-driver-registrar"},
    f"{DVP}-deckhouse": set(SIDECARS),
    f"{DVP}-own-secrets": {"livenessprobe", "node-driver-registrar"},
}
"""In the other snapshots there are none."""


@functools.cache
def values(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].all_values(ROOT)


@functools.cache
def objects(name: str) -> list[dict[str, Any]]:
    return SNAPSHOTS[name].objects(ROOT)


def workloads(name: str) -> dict[str, dict[str, Any]]:
    """Return the spec of the workload of each component."""
    return {
        item["metadata"]["labels"]["app.kubernetes.io/name"].removesuffix("-dvp"): item[
            "spec"
        ]
        for item in objects(name)
        if item["kind"] in ("Deployment", "DaemonSet")
    }


def pods(name: str) -> dict[str, dict[str, Any]]:
    """Return the spec of the pods of each component."""
    return {key: spec["template"]["spec"] for key, spec in workloads(name).items()}


def containers(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield component and container."""
    for component, pod in pods(name).items():
        for container in pod["containers"]:
            yield component, container


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the texts of a component's files, by their paths in its folder."""
    return {
        str(file.relative_to(folder)): file.read_text()
        for pattern in PARTS
        for file in folder.glob(pattern)
        if file.name != "BUILD"
    }


@pytest.mark.parametrize("umbrella", charts.UMBRELLAS)
def test_there_are_five_typical_sets_of_values(umbrella: str) -> None:
    assert len(charts.of(umbrella)) == 5
    usual = (charts.folder(ROOT, umbrella) / "values.yaml").read_text()
    assert values(f"{umbrella}-defaults") == yaml.safe_load(usual)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_values_of_the_snapshots_are_valid(name: str) -> None:
    assert charts.refused(ROOT, SNAPSHOTS[name].chart, values(name)) == []


@pytest.mark.parametrize(("umbrella", "component"), COMPONENTS)
def test_the_umbrella_contains_each_component_as_it_is(
    umbrella: str, component: str
) -> None:
    """By a link, or as a folder of links to a part of it."""
    contained = parts(charts.folder(ROOT, umbrella) / "charts" / component)
    left_out = LEFT_OUT.get((umbrella, component))
    expected = {
        name: text
        for name, text in parts(charts.folder(ROOT, component)).items()
        if left_out is None or not name.startswith(left_out)
    }
    assert contained == expected
    print(f"{component:24} {len(contained)} files")


@pytest.mark.parametrize("umbrella", charts.UMBRELLAS)
def test_its_dependencies_are_the_versions_of_the_components(umbrella: str) -> None:
    chart = charts.folder(ROOT, umbrella)
    head = yaml.safe_load((chart / "Chart.yaml").read_text())
    needed = {item["name"]: item for item in head["dependencies"]}
    assert set(needed) == {*charts.UMBRELLAS[umbrella], charts.LIBRARY}
    for name, dependency in needed.items():
        own = yaml.safe_load((charts.folder(ROOT, name) / "Chart.yaml").read_text())
        assert dependency["version"] == own["version"], name
        expected = None if name == charts.LIBRARY else f"components.{name}"
        assert dependency.get("condition") == expected


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_components_are_those_of_the_values(name: str) -> None:
    enabled = {key for key, is_on in values(name)["components"].items() if is_on}
    assert set(pods(name)) == enabled
    assert enabled


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_registry_and_pull_secrets_are_the_same_for_all(name: str) -> None:
    shared = values(name)["global"]
    deckhouse = ["deckhouse-registry"] * shared["deckhouse"]["enabled"]
    expected = shared["imagePullSecrets"] or deckhouse
    for component, pod in pods(name).items():
        secrets = [item["name"] for item in pod.get("imagePullSecrets", ())]
        assert secrets == expected, component
    for component, container in containers(name):
        if container["name"] == MAIN[component]:
            image = f"{shared['imageRegistry']}/{component}:0.1.0"
            assert container["image"] == image
        elif shared["sidecarRegistry"]:
            assert container["image"].startswith(f"{shared['sidecarRegistry']}/")


@pytest.mark.parametrize("name", OF_OPENSTACK)
def test_one_secret_serves_all_that_call_the_cloud(name: str) -> None:
    """csi-node does not: no credentials are on the Nodes."""
    shared = values(name)["global"]
    by_default = ("cloud-config", "cloud.conf")
    if shared["deckhouse"]["enabled"]:
        by_default = ("cloud-controller-manager", "cloud-config")
    own = (shared["cloudConfig"]["secretName"], shared["cloudConfig"]["key"])
    expected = tuple(a or b for a, b in zip(own, by_default, strict=True))
    for component, pod in pods(name).items():
        secrets = {
            volume["secret"]["secretName"]
            for volume in pod["volumes"]
            if "secret" in volume
        }
        flags = [
            argument
            for container in pod["containers"]
            for argument in container["args"]
            if argument.startswith("--cloud-config=")
        ]
        if component == "csi-node":
            assert (secrets, flags) == (set(), [])
        else:
            assert secrets == {expected[0]}, component
            assert flags == [f"--cloud-config=/etc/config/{expected[1]}"]


@pytest.mark.parametrize("name", OF_DVP)
def test_credentials_of_the_parent_are_where_they_are_used(name: str) -> None:
    """One Secret, one per component, or those of Deckhouse; prints them.

    Variables that are not set are keys of the same Secret.
    """
    shared = values(name)["global"]
    parent, by_default = shared["parent"], "dvp-credentials"
    is_apart = parent["capdvpKubeconfig"] or shared["deckhouse"]["enabled"]
    for component, pod in pods(name).items():
        secrets = [
            volume["secret"]["secretName"]
            for volume in pod["volumes"]
            if "secret" in volume
        ]
        if component == "csi-node":
            assert secrets == []
            continue
        own = f"{by_default}-capdvp" if is_apart and component == "capdvp" else ""
        named = parent["secretNames"].get(component) or parent["secretName"]
        expected = named or own or by_default
        print(f"{name:32} {component:24} {secrets}")
        assert secrets == [expected]
        (container,) = (
            item for item in pod["containers"] if item["name"] == MAIN[component]
        )
        env = {item["name"]: item for item in container["env"]}
        for variable, value, key in (
            ("DVP_NAMESPACE", parent["namespace"], "namespace"),
            ("CLUSTER_UUID", shared["clusterID"], "clusterUUID"),
        ):
            reference = {"secretKeyRef": {"name": expected, "key": key}}
            source = {"value": value} if value else {"valueFrom": reference}
            assert env[variable] == {"name": variable, **source}
        key = "kubeconfig" if named else "kubernetesConfigBase64"
        assert f"--parent-kubeconfig=/etc/parent/{key}" in container["args"]
    created = [
        item["metadata"]["name"] for item in objects(name) if item["kind"] == "Secret"
    ]
    expected_names = [
        by_default + suffix
        for field, suffix in (("kubeconfig", ""), ("capdvpKubeconfig", "-capdvp"))
        if parent[field]
    ]
    assert created == expected_names


@pytest.mark.parametrize("name", OF_DVP)
def test_zones_are_those_of_the_values(name: str) -> None:
    """Failure domains of capdvp, and zones of the discovery data."""
    zones = values(name)["global"]["zones"]
    by_component = dict(containers(name))
    flag = f"--zones={','.join(zones)}"
    assert (flag in by_component["capdvp"]["args"]) is bool(zones)
    env = {
        variable["name"]: variable.get("value")
        for component, container in containers(name)
        if component == container["name"] == "cloud-data-discoverer"
        for variable in container["env"]
    }
    assert json.loads(env["MODULE_CONFIG"] or "") == ({"zones": zones} if zones else {})


@pytest.mark.parametrize("name", OF_OPENSTACK)
def test_one_cluster_id_marks_volumes_and_load_balancers(name: str) -> None:
    expected = values(name)["global"]["clusterID"]
    observed = {}
    for component, container in containers(name):
        if component in ("openstack-ccm", "csi-controller"):
            for argument in container["args"]:
                if re.match("--cluster(-id)?=", argument):
                    observed[component] = argument.partition("=")[2]
        for variable in container.get("env", ()):
            if variable["name"] == "CLUSTER_UUID":
                observed[component] = variable["value"]
    print(name, observed)
    assert set(observed.values()) <= {expected}
    assert len(observed) == 3 or not expected


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_node_selector_is_added_to_that_of_each_component(name: str) -> None:
    shared = values(name)["global"]["nodeSelector"]
    for component, pod in pods(name).items():
        text = (charts.folder(ROOT, component) / "values.yaml").read_text()
        own = yaml.safe_load(text)["nodeSelector"]
        assert pod["nodeSelector"] == {**own, **shared}, component


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_address_of_the_api_server(name: str) -> None:
    """In each container that calls it; host and port are those of the values."""
    shared = values(name)["global"]["kubeApiServer"]
    for component, container in containers(name):
        env = {item["name"]: item for item in container.get("env", ())}
        host = env.get("KUBERNETES_SERVICE_HOST")
        port = env.get("KUBERNETES_SERVICE_PORT")
        if not (shared["host"] or shared["fromHostIP"]) or component == "csi-node":
            assert (host, port) == (None, None)
        elif container["name"] not in ("livenessprobe", "kube-rbac-proxy"):
            assert host is not None, container["name"]
            assert port is not None, container["name"]
            assert port["value"] == str(shared["port"])
            assert host.get("value", "") == shared["host"]


SEEDS = (
    "127.0.0.1",
    "::1",
    "localhost",
    "169.254.169.254",
    "$(KUBERNETES_SERVICE_HOST)",
    ".svc",
    ".cluster.local",
)
"""Hosts that are always reached directly."""
PROXIED = {f"{OPENSTACK}-one-host", f"{DVP}-own-secrets"}
"""Snapshots with a proxy."""


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_variables_of_the_proxy(name: str) -> None:
    """In the component's own container, if it calls the cloud or the parent; in both
    cases of letters, and behind the host that NO_PROXY refers to. Prints the names."""
    shared = values(name)["global"]["proxy"]
    hosts = ",".join((*SEEDS, *shared["noProxy"]))
    urls = {"HTTP_PROXY": shared["httpProxy"], "HTTPS_PROXY": shared["httpsProxy"]}
    expected = {key: url for key, url in urls.items() if url}
    if expected:
        expected["NO_PROXY"] = hosts
    expected |= {key.lower(): value for key, value in expected.items()}
    for component, container in containers(name):
        names = [item["name"] for item in container.get("env", ())]
        env = {
            item["name"]: item["value"]
            for item in container.get("env", ())
            if item["name"].lower().endswith("_proxy")
        }
        print(f"{name:36} {container['name']:24} {sorted(env)}")
        if component == "csi-node" or container["name"] != MAIN[component]:
            assert env == {}
            continue
        assert env == expected, component
        if env and "KUBERNETES_SERVICE_HOST" in names:
            assert names.index("KUBERNETES_SERVICE_HOST") < names.index("NO_PROXY")
            assert names.index("KUBERNETES_SERVICE_HOST") < names.index("no_proxy")


def test_a_set_of_values_of_each_umbrella_has_a_proxy() -> None:
    observed = {
        name for name in SNAPSHOTS if values(name)["global"]["proxy"]["httpsProxy"]
    }
    assert observed == PROXIED


@pytest.mark.parametrize("umbrella", charts.UMBRELLAS)
@pytest.mark.parametrize(
    ("field", "value", "is_valid"),
    [
        ("httpsProxy", "http://proxy.internal:3128", True),
        ("httpsProxy", "https://proxy.internal", True),
        ("httpProxy", "http://192.0.2.1:3128/", True),
        ("httpProxy", "http://[2001:db8::1]:3128", True),
        ("httpProxy", "proxy.internal:3128", False),
        ("httpsProxy", "socks5://proxy.internal:1080", False),
        ("httpsProxy", "http://proxy.internal:3128/path", False),
        ("httpsProxy", "http://", False),
        ("noProxy", ["10.111.0.0/16", "fd00::/48", "::1", ".corp", "corp:8443"], True),
        ("noProxy", ["*"], False),
        ("noProxy", ["*.corp"], False),
        ("noProxy", ["a,b"], False),
        ("noProxy", [""], False),
        ("noProxy", "10.111.0.0/16", False),
    ],
)
def test_bounds_of_the_proxy(
    umbrella: str, field: str, value: object, is_valid: bool
) -> None:
    """What the programs would not understand is rejected; credentials by a template."""
    usual = values(f"{umbrella}-defaults")
    changed = charts.merged(usual, {"global": {"proxy": {field: value}}})
    wrong = charts.refused(ROOT, umbrella, changed)
    print(f"{field:12} {value!s:64} {wrong}")
    assert (
        [row.split(".")[:3] for row in wrong] == []
        if is_valid
        else [["global", "proxy", field]]
    )


@pytest.mark.parametrize("umbrella", charts.UMBRELLAS)
def test_the_row_of_the_proxy_is_that_of_the_library(umbrella: str) -> None:
    """Its description alone differs between the charts."""
    schemas = [
        json.loads((charts.folder(ROOT, chart) / "values.schema.json").read_text())
        for chart in (umbrella, "csi-controller")
    ]
    rows = [
        schemas[0]["properties"]["global"]["properties"]["proxy"],
        schemas[1]["properties"]["proxy"],
    ]
    for row in rows:
        del row["description"]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_replicas_follow_the_hosts_of_the_control_plane(name: str) -> None:
    """One host, one replica; never more replicas than hosts."""
    workload = workloads(name).get(MANAGERS[SNAPSHOTS[name].chart])
    hosts = values(name)["global"]["controlPlaneNodes"]
    assert workload is not None
    assert workload["replicas"] == (hosts or 2)
    affinity = workload["template"]["spec"].get("affinity")
    assert (affinity is not None) == (workload["replicas"] > 1)
    rolling = workload["strategy"]["rollingUpdate"]
    assert rolling["maxUnavailable"] == (2 if workload["replicas"] > 2 else 1)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_each_sidecar_runs_in_its_mode(name: str) -> None:
    """Prints container and mode; no snapshotter in any of them."""
    observed = {container["name"] for _, container in containers(name)}
    for sidecar in SIDECARS:
        mode = "sidecar" if sidecar in observed else "builtin"
        print(f"{name:16} {sidecar:24} {mode}")
    assert observed & set(SIDECARS) == EXPECTED_SIDECARS.get(name, set())
    for component, container in containers(name):
        if container["name"] in SIDECARS:
            assert component in SIDECARS[container["name"]].split()


@pytest.mark.parametrize("snapshot", charts.SNAPSHOTS)
def test_there_is_no_snapshotter(snapshot: charts.Snapshot) -> None:
    text = snapshot.file(ROOT).read_text().lower()
    assert "snapshotter" not in text
    assert "volumesnapshot" not in text


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_container_that_serves_has_a_probe(name: str) -> None:
    """Of its own port, or of the sidecar's beside it."""
    for component, container in containers(name):
        if container["name"] != MAIN[component]:
            continue
        asked = container["livenessProbe"]["httpGet"]["port"]
        served = {
            port[key]
            for other, item in containers(name)
            if other == component
            for port in item.get("ports", ())
            for key in ("containerPort", "name")
        }
        assert asked in served, component


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_ports_on_a_host_are_different(name: str) -> None:
    """All of these pods may run on one host."""
    claimed = [
        port["containerPort"]
        for component, pod in pods(name).items()
        if pod.get("hostNetwork")
        for container in pod["containers"]
        for port in container.get("ports", ())
    ]
    print(name, sorted(claimed))
    assert len(claimed) == len(set(claimed))


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_pods_may_do_little_on_their_hosts(name: str) -> None:
    """Each container but that of csi-node, which mounts."""
    for component, container in containers(name):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"], component
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        mounts = (component, container["name"]) == ("csi-node", "node")
        assert security.get("privileged", False) is mounts
        assert security["allowPrivilegeEscalation"] is mounts
    for component, pod in pods(name).items():
        if component != "csi-node":
            assert pod["securityContext"] == {
                "runAsNonRoot": True,
                "runAsUser": 64535,
                "runAsGroup": 64535,
            }


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_names_of_objects_are_unique(name: str) -> None:
    """Charts share templates, so a copy of another chart's object would be lost."""
    names = [
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
        for item in objects(name)
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("umbrella", charts.UMBRELLAS)
def test_autoscalers_know_the_containers_of_their_pods(umbrella: str) -> None:
    """Each component has its own policies, although all have one template."""
    name = f"{umbrella}-production"
    autoscalers = [
        item for item in objects(name) if item["kind"] == "VerticalPodAutoscaler"
    ]
    by_component = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in objects(name)
        if item["kind"] in ("Deployment", "DaemonSet")
    }
    assert {item["metadata"]["name"] for item in autoscalers} == set(by_component)
    for item in autoscalers:
        target = item["spec"]["targetRef"]
        policies = item["spec"]["resourcePolicy"]["containerPolicies"]
        pod = by_component[target["name"]]
        expected = {container["name"] for container in pod["containers"]}
        assert {policy["containerName"] for policy in policies} == expected
        is_node = target["name"].startswith("csi-node")
        kind = "DaemonSet" if is_node else "Deployment"
        assert target["kind"] == kind


PUBLISHED = "discovery-data-secret"
"""Flag of cloud-data-discoverer; without it the Secret is that of the reference."""


def claims(name: str) -> Iterator[tuple[str, ...]]:
    """Yield what a release has to itself in a cluster: objects, ports, Leases."""
    for item in objects(name):
        meta = item["metadata"]
        yield (item["kind"], meta.get("namespace", ""), meta["name"])
        leases = [
            lease
            for rule in item.get("rules") or ()
            if rule.get("resources") == ["leases"]
            for lease in rule.get("resourceNames", ())
        ]
        yield from (("Lease", meta.get("namespace", ""), lease) for lease in leases)
    for component, pod in pods(name).items():
        yield from claims_of_a_host(pod)
        flags = {
            argument.lstrip("-").partition("=")[0]: argument.partition("=")[2]
            for container in pod["containers"]
            for argument in container["args"]
        }
        if lease := flags.get("leader-elect-resource-name"):
            yield ("Lease", charts.SYSTEM, lease)
        if component == "cloud-data-discoverer":
            secret = flags.get(PUBLISHED, "d8-cloud-provider-discovery-data")
            yield ("Secret", charts.SYSTEM, secret)


def claims_of_a_host(pod: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield ports and sockets."""
    if pod.get("hostNetwork"):
        for container in pod["containers"]:
            for port in container.get("ports", ()):
                yield ("port of the host", "", str(port["containerPort"]))
    for volume in pod["volumes"]:
        path = volume.get("hostPath", {}).get("path", "")
        if "csi-plugins" in path:
            yield ("socket", "", path)


HYBRIDS = [
    (f"{OPENSTACK}-{first}", f"{DVP}-{second}")
    for first, second in (("defaults", "defaults"), ("one-host", "own-secrets"))
]


@pytest.mark.parametrize(("openstack", "dvp"), HYBRIDS)
def test_both_umbrellas_in_one_namespace_have_nothing_in_common(
    openstack: str, dvp: str
) -> None:
    """No object, Lease, port, socket, CSIDriver; selectors match one workload each."""
    openstack_claims, dvp_claims = set(claims(openstack)), set(claims(dvp))
    for kind in sorted({row[0] for row in openstack_claims | dvp_claims}):
        rows = [
            sum(row[0] == kind for row in side)
            for side in (openstack_claims, dvp_claims)
        ]
        print(f"{kind:24} {rows[0]:3} of OpenStack {rows[1]:3} of DVP")
    assert {SNAPSHOTS[name].namespace for name in (openstack, dvp)} == {charts.SYSTEM}
    assert {"Lease", "port of the host", "socket", "CSIDriver"} <= {
        row[0] for row in openstack_claims
    }
    assert openstack_claims & dvp_claims == set()
    apps = [
        spec["selector"]["matchLabels"]["app"]
        for name in (openstack, dvp)
        for spec in workloads(name).values()
    ]
    assert len(apps) == len(set(apps)) == 9


def test_kinds_of_both_umbrellas_are_different() -> None:
    """CRDs; a kind is that of one of them."""
    kinds: dict[str, str] = {}
    for umbrella in charts.UMBRELLAS:
        folder = charts.folder(ROOT, umbrella)
        for file in (*folder.glob("crds/*.yaml"), *folder.glob("charts/*/crds/*.yaml")):
            crd = yaml.safe_load(file.read_text())["metadata"]["name"]
            assert kinds.setdefault(crd, umbrella) == umbrella
    print(kinds)
    assert len(kinds) == 7
