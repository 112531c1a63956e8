"""What the real helm renders from the values of `mooring render osdpl`.

Run with the lab's own charts and, if MOORING_OPENSTACK_HELM names one, with those of a
checkout of openstack-helm; the tests do not know which set they look at.
"""

import base64
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.doctor import model as doctor_model
from lib.doctor import rights
from lib.helm import cache, model
from lib.lab import errors as lab_errors
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.osdpl import chart_sources
from lib.osdpl.values import graph, public_secrets

CHECKOUT = "MOORING_OPENSTACK_HELM"
RUN = "import sys; from mooring.commands import main; main.main()"
CLOUD = """
apiVersion: lcm.mirantis.com/v1alpha1
kind: OpenStackDeployment
metadata: {name: cloud, namespace: openstack}
spec:
  openstack_version: gazpacho
  preset: core
  size: tiny
  public_domain_name: cloud.example.com
  persistent_volume_storage_class: network
  features: {neutron: {tunnel_interface: ens3}, nova: {live_migration_interface: ens3}}
  nodes:
    rack::a:
      services:
        compute:
          libvirt:
            libvirt_libvirt: {values: {conf: {libvirt: {log_filters: on-rack-a}}}}
          nova:
            nova_compute: {values: {conf: {nova: {DEFAULT: {my_ip: on-rack-a}}}}}
        networking:
          neutron:
            neutron_ovs-agent:
              values:
                conf: {plugins: {openvswitch_agent: {agent: {extensions: on-rack-a}}}}
"""
ON_RACK_A = {
    "openstack-libvirt": "libvirt-libvirt",
    "openstack-nova": "nova-compute",
    "openstack-neutron": "neutron-ovs-agent",
}
"""Begin of the names of the DaemonSets with values for nodes, by release."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CHARTS = {name: chart for pairs in graph.RELEASES.values() for name, chart in pairs}

Manifest = dict[str, Any]


@pytest.fixture(scope="module", params=["lab", "checkout"])
def source(request: pytest.FixtureRequest, where: places.Places) -> str:
    """Return the source of a chart set."""
    if request.param == "lab":
        return chart_sources.write_folder(where)
    checkout = os.environ.get(CHECKOUT, "")
    if not checkout:
        pytest.skip(f"{CHECKOUT} is not set: only the lab's chart set was used")
    return checkout


@pytest.fixture(scope="module")
def outputs(
    source: str, where: places.Places, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pathlib.Path, pathlib.Path]:
    """Return the folders of two runs of the command."""
    folder = tmp_path_factory.mktemp("render")
    file = folder / "cloud.yaml"
    file.write_text(yaml.safe_dump(cloud(source)))
    outputs = (folder / "first", folder / "second")
    for output in outputs:
        words = [str(file), "--charts", source, "--output-dir", str(output)]
        program = str(programs.path(where, "helm"))
        path = os.pathsep.join(entry for entry in sys.path if entry)
        ended = subprocess.run(
            [sys.executable, "-c", RUN, "render", "osdpl", *words, "--helm", program],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
    return outputs


def cloud(source: str) -> Manifest:
    """Return the OpenStackDeployment with the version of a source's charts."""
    (document,) = documents(CLOUD)
    releases = {"releases": {"version": version_of(source)}}
    document["spec"]["common"] = {"openstack": releases, "infra": releases}
    return document


def version_of(source: str) -> str:
    """Return the version of the charts of a folder."""
    text = (pathlib.Path(source) / "keystone" / "Chart.yaml").read_text()
    return str(documents(text)[0]["version"])


@pytest.fixture(scope="module")
def manifests(
    outputs: tuple[pathlib.Path, pathlib.Path],
) -> Mapping[str, list[Manifest]]:
    """Return the decoded manifests by release."""
    return {
        name: documents((outputs[0] / name / "manifests.yaml").read_text())
        for name in CHARTS
    }


@pytest.fixture(scope="module")
def values(outputs: tuple[pathlib.Path, pathlib.Path]) -> Mapping[str, Manifest]:
    """Return the values by release."""
    return {
        name: documents((outputs[0] / name / "values.yaml").read_text())[0]
        for name in CHARTS
    }


def documents(text: str) -> list[Manifest]:
    """Return the documents of manifests."""
    return [document for document in yaml.load_all(text, LOADER) if document]


def pods(manifests: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    """Return each object with pods, and the spec of its pods."""
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        if manifest["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "containers" in (spec.get("template") or {}).get("spec", {}):
            yield manifest, spec["template"]["spec"]


def leaves(tree: Any) -> Iterator[Any]:
    """Return the values of a tree."""
    for value in tree.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


def test_two_runs_are_equal(outputs: tuple[pathlib.Path, pathlib.Path]) -> None:
    first, second = outputs
    assert sorted(path.name for path in first.iterdir()) == sorted(CHARTS)
    for name in CHARTS:
        for file in ("values.yaml", "manifests.yaml"):
            assert (first / name / file).read_bytes() == (
                second / name / file
            ).read_bytes(), f"{name}/{file}"


def test_no_public_secret_is_left(
    source: str, where: places.Places, manifests: Mapping[str, list[Manifest]]
) -> None:
    """Compare the Secrets with the charts' default values, and their render."""
    print(f"{'release':24} secrets defaults public")
    public: list[public_secrets.Finding] = []
    known: frozenset[str] = frozenset()
    for name, chart in CHARTS.items():
        texts = defaults(where, source, name, chart)
        known |= texts
        findings = public_secrets.find_texts(manifests[name], texts)
        count = len(list(public_secrets.secrets(manifests[name])))
        print(f"{name:24} {count:7} {len(texts):8} {len(findings):6}")
        public += findings
    assert {"password", "openstack-cookie"} <= known
    assert public == []


def defaults(
    where: places.Places, source: str, name: str, chart: str
) -> frozenset[str]:
    """Return the secrets of a chart's default values, and of what they render to.

    A checkout refers to its library chart by a path: helm wants it packed inside, as
    lib/helm does it. The defaults of the lab's charts do not render.
    """
    charts = cache.Charts(where.state / "default-charts")
    packed = charts.get(source, model.Pin(chart, version_of(source)))
    values = documents(helm.run(where, ("show", "values", packed.path)))[0]
    try:
        words = ("template", name, packed.path, "--namespace", "openstack")
        rendered = documents(helm.run(where, words))
    except lab_errors.LabError:
        rendered = []
    texts = {value for _, value in public_secrets.secrets(rendered)}
    return public_secrets.of_values(values) | texts


def images_of(source: str, chart: str) -> dict[str, str]:
    """Return the images of a chart by key."""
    text = (pathlib.Path(source) / chart / "values.yaml").read_text()
    tags: dict[str, str] = documents(text)[0]["images"]["tags"]
    return tags


def test_images_labels_and_replicas_are_those_of_the_values(
    source: str,
    manifests: Mapping[str, list[Manifest]],
    values: Mapping[str, Manifest],
) -> None:
    """Images that are not of OpenStack's version are those of the chart."""
    print(f"{'release':24} pods images selectors")
    for name in CHARTS:
        own = images_of(source, CHARTS[name])
        tags = set((own | values[name]["images"]["tags"]).values())
        labels = set(leaves(values[name]["labels"]))
        counts = set(
            leaves(values[name]["pod"].get("replicas", {}))
            if "pod" in values[name]
            else ()
        )
        images: set[str] = set()
        selectors: set[str] = set()
        found_pods = list(pods(manifests[name]))
        for manifest, spec in found_pods:
            containers = [*spec["containers"], *(spec.get("initContainers") or [])]
            images |= {container["image"] for container in containers}
            selectors |= set(spec.get("nodeSelector") or {})
            if manifest["kind"] in ("Deployment", "StatefulSet"):
                assert manifest["spec"]["replicas"] in counts, manifest["metadata"]
        print(f"{name:24} {len(found_pods):4} {len(images):6}", *sorted(selectors))
        assert images
        assert images <= tags, images - tags
        assert selectors <= labels, selectors - labels


def test_values_of_nodes_reach_pods_on_these_nodes_only(
    manifests: Mapping[str, list[Manifest]],
) -> None:
    """A second DaemonSet mounts them; the first one keeps off these nodes."""
    for release, prefix in ON_RACK_A.items():
        of_release = manifests[release]
        rows = {}
        for manifest, spec in pods(of_release):
            name = manifest["metadata"]["name"]
            if manifest["kind"] == "DaemonSet" and name.startswith(prefix):
                has_value = "on-rack-a" in mounted_texts(spec, of_release)
                rows[name] = (rules(spec), has_value)
        print(release, rows)
        assert sorted(rows.values()) == [
            ([("rack", "In", ("a",))], True),
            ([("rack", "NotIn", ("a",))], False),
        ]
        others = [spec for manifest, spec in pods(of_release) if not rules(spec)]
        assert not any("on-rack-a" in mounted_texts(x, of_release) for x in others)


def rules(spec: Manifest) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return what pods require of the labels of their node, besides the selector."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        (rule["key"], rule["operator"], tuple(rule["values"]))
        for term in required.get("nodeSelectorTerms", ())
        for rule in term["matchExpressions"]
    ]


def mounted_texts(spec: Manifest, manifests: list[Manifest]) -> str:
    """Return the content of all that pods mount."""
    names = set(references(spec))
    texts = []
    for manifest in manifests:
        if (manifest["kind"], manifest["metadata"]["name"]) in names:
            data = (manifest.get("data") or {}).values()
            if manifest["kind"] == "Secret":
                data = [base64.b64decode(text).decode() for text in data]
            texts += [*data, *(manifest.get("stringData") or {}).values()]
    return "\n".join(texts)


def test_mounted_objects_exist(manifests: Mapping[str, list[Manifest]]) -> None:
    """Each ConfigMap and Secret that a pod refers to is rendered by some release."""
    everything = [
        manifest for of_release in manifests.values() for manifest in of_release
    ]
    exist = {
        (manifest["kind"], manifest["metadata"]["name"]) for manifest in everything
    }
    missing = set()
    count = 0
    for manifest, spec in pods(everything):
        for reference in references(spec):
            count += 1
            if reference not in exist:
                missing.add((manifest["metadata"]["name"], *reference))
    print(f"{count} references, {len(missing)} missing")
    assert missing == set()


def references(spec: Manifest) -> Iterator[tuple[str, str]]:
    """Return the kind and name of what the pods of a spec can't start without."""
    for volume in spec.get("volumes") or []:
        config_map, secret = volume.get("configMap"), volume.get("secret")
        if config_map and not config_map.get("optional"):
            yield "ConfigMap", config_map["name"]
        if secret and not secret.get("optional"):
            yield "Secret", secret["secretName"]
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        for variable in container.get("env") or []:
            key = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if key:
                yield "Secret", key["name"]


def test_hooks_wait_for_gates_only(
    manifests: Mapping[str, list[Manifest]],
) -> None:
    """helm returns when hook Jobs end: they must not wait for a release without a gate.

    So each run of helm ends once its gates are open, and one slot is enough, also for
    neutron, nova, openvswitch and libvirt, whose pods wait for each other.
    """
    makers = {
        (manifest["kind"], manifest["metadata"]["name"]): release
        for release, of_release in manifests.items()
        for manifest in of_release
    }
    print(f"{'release':24} hooks waits for")
    for release in CHARTS:
        gates = graph.gates(release, graph.RELEASES)
        behind = {makers[(str(gate.kind), gate.name)] for gate in gates}
        hooks = [
            spec
            for manifest, spec in pods(manifests[release])
            if "helm.sh/hook" in (manifest["metadata"].get("annotations") or {})
        ]
        services = {service for spec in hooks for service in awaited(spec)}
        needed = {makers[("Service", service)] for service in services} - {release}
        print(f"{release:24} {len(hooks):5} {' '.join(sorted(needed))}")
        assert needed <= behind, f"{release}: {needed - behind}"


def awaited(spec: Manifest) -> Iterator[str]:
    """Return the Services that the init container of a pod waits for."""
    for container in spec.get("initContainers") or []:
        for variable in container.get("env") or []:
            if variable["name"] == "DEPENDENCY_SERVICE" and variable.get("value"):
                for service in variable["value"].split(","):
                    yield service.rpartition(":")[2]


def test_each_role_can_be_granted(manifests: Mapping[str, list[Manifest]]) -> None:
    """Nobody grants more than he holds: osdpl-controller holds each verb of the charts.

    Source: Kubernetes, Using RBAC Authorization, privilege escalation prevention.
    """
    held = rights.parse(rights.manifest("osdpl-controller"))
    missing = set()
    for kind in ("Role", "ClusterRole"):
        roles = [
            manifest
            for release in manifests.values()
            for manifest in release
            if manifest["kind"] == kind
        ]
        granted = {verb_of(right) for right in rights.parse(yaml.safe_dump_all(roles))}
        print(f"{len(roles)} of kind {kind} grant {len(granted)} verbs")
        missing |= granted - {
            verb_of(right)
            for right in held
            if not right.name and (kind == "Role" or not right.namespace)
        }
    assert missing == set()


def verb_of(right: doctor_model.Right) -> tuple[str, str, str, str]:
    """Return a permission without where it holds."""
    return (right.verb, right.group, right.resource, right.subresource)
