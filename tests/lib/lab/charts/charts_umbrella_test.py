"""Rules of the chart cloud-provider-openstack and of the copies that it contains."""

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lib.lab.charts import charts

ROOT = pathlib.Path()
CHART = charts.folder(ROOT, charts.UMBRELLA)
SNAPSHOTS = charts.of(charts.UMBRELLA)
MAIN = {
    "cloud-data-discoverer": "cloud-data-discoverer",
    "csi-controller": "controller",
    "csi-node": "node",
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
    "balancers-only": set(),
    "defaults": set(),
    "deckhouse": set(SIDECARS),
    "one-host": {"livenessprobe", "node-driver-registrar"},
    "production": set(),
}


def values(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].all_values(ROOT)


def pods(name: str) -> dict[str, dict[str, Any]]:
    """Return the spec of the pods of each component."""
    workloads = SNAPSHOTS[name].workloads(ROOT)
    return {key: spec["template"]["spec"] for key, spec in workloads.items()}


def containers(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield component and container."""
    for component, pod in pods(name).items():
        for container in pod["containers"]:
            yield component, container


def test_there_are_five_typical_sets_of_values() -> None:
    assert len(SNAPSHOTS) == 5
    assert values("defaults") == yaml.safe_load((CHART / "values.yaml").read_text())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_values_of_the_snapshots_are_valid(name: str) -> None:
    assert charts.refused(ROOT, charts.UMBRELLA, values(name)) == []


@pytest.mark.parametrize("component", charts.COMPONENTS)
def test_the_umbrella_carries_each_component_as_it_is(component: str) -> None:
    """`mooring lab charts` writes the copies; the library is in the umbrella itself."""
    copy = charts.carried(ROOT, charts.UMBRELLA, component)
    carried = {
        str(file.relative_to(copy)): file.read_text()
        for file in copy.rglob("*")
        if file.is_file()
    }
    assert carried == charts.component(ROOT, component)
    print(f"{component:24} {len(carried)} files")


def test_its_dependencies_are_the_versions_of_the_components() -> None:
    head = yaml.safe_load((CHART / "Chart.yaml").read_text())
    needed = {item["name"]: item for item in head["dependencies"]}
    assert set(needed) == {*charts.COMPONENTS, charts.LIBRARY}
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


@pytest.mark.parametrize("name", SNAPSHOTS)
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


@pytest.mark.parametrize("name", SNAPSHOTS)
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


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_replicas_follow_the_hosts_of_the_control_plane(name: str) -> None:
    """One host, one replica; never more replicas than hosts."""
    workload = SNAPSHOTS[name].workloads(ROOT).get("openstack-ccm")
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
    assert observed & set(SIDECARS) == EXPECTED_SIDECARS[name]
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
            port["containerPort"]
            for other, item in containers(name)
            if other == component
            for port in item.get("ports", ())
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
        for item in SNAPSHOTS[name].objects(ROOT)
    ]
    assert len(names) == len(set(names))


def test_autoscalers_know_the_containers_of_their_pods() -> None:
    """Each component has its own policies, although all have one template."""
    autoscalers = SNAPSHOTS["production"].objects(ROOT, "VerticalPodAutoscaler")
    by_component = pods("production")
    assert {item["metadata"]["name"] for item in autoscalers} == set(by_component)
    for item in autoscalers:
        target = item["spec"]["targetRef"]
        policies = item["spec"]["resourcePolicy"]["containerPolicies"]
        pod = by_component[target["name"]]
        expected = {container["name"] for container in pod["containers"]}
        assert {policy["containerName"] for policy in policies} == expected
        kind = "DaemonSet" if target["name"] == "csi-node" else "Deployment"
        assert target["kind"] == kind
