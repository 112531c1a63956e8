"""What the real helm renders from the values of `mooring render osdpl`.

Run with the lab's own charts and, if MOORING_OPENSTACK_HELM names one, with those of a
checkout of openstack-helm; the tests do not know which set they look at.
"""

import base64
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lib.doctor import model as doctor_model
from lib.doctor import rights
from lib.osdpl.values import graph
from tests.harness.osdpl import cloud_manifests, judge, rendering
from tests.harness.osdpl.cloud_manifests import CloudManifests, Pods
from tests.harness.osdpl.rendering import CHARTS, Rendered

ON_RACK_A = {
    "openstack-libvirt": "libvirt-libvirt",
    "openstack-nova": "nova-compute",
    "openstack-neutron": "neutron-ovs-agent",
}
"""Begin of the names of the DaemonSets with values for nodes, by release."""
Manifest = dict[str, Any]


def of_release(cloud: CloudManifests, release: str) -> list[Pods]:
    """Return the pods of a release."""
    return [pods for pods in cloud.pods if pods.owner.release == release]


def leaves(tree: Manifest) -> Iterator[Any]:
    """Return the values of a tree."""
    for value in tree.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


def test_two_runs_are_equal(rendered: Rendered, tmp_path: pathlib.Path) -> None:
    second = rendering.render(rendered.where, rendered.source, tmp_path).output
    first = rendered.output
    assert sorted(path.name for path in first.iterdir()) == sorted(CHARTS)
    for name in CHARTS:
        for file in ("values.yaml", "manifests.yaml"):
            assert (first / name / file).read_bytes() == (
                second / name / file
            ).read_bytes(), f"{name}/{file}"


def test_labels_and_replicas_are_those_of_the_values(rendered: Rendered) -> None:
    print(f"{'release':24} pods images selectors")
    for name in CHARTS:
        values = rendered.values[name]
        labels = set(leaves(values["labels"]))
        counts = set(leaves((values.get("pod") or {}).get("replicas", {})))
        all_pods = of_release(rendered.cloud, name)
        images = {row["image"] for pods in all_pods for row in pods.containers}
        selectors = {key for pods in all_pods for key in pods.spec["nodeSelector"]}
        for pods in all_pods:
            if pods.owner.kind in ("Deployment", "StatefulSet"):
                assert pods.owner.spec["replicas"] in counts, pods.owner.name
        print(f"{name:24} {len(all_pods):4} {len(images):6}", *sorted(selectors))
        assert images
        assert selectors <= labels, selectors - labels


def test_values_of_nodes_reach_pods_on_these_nodes_only(rendered: Rendered) -> None:
    """A second DaemonSet mounts them; the first one keeps off these nodes."""
    for release, prefix in ON_RACK_A.items():
        rows = {}
        for pods in of_release(rendered.cloud, release):
            name = pods.owner.name
            if pods.owner.kind == "DaemonSet" and name.startswith(prefix):
                has_value = "on-rack-a" in mounted_texts(rendered.cloud, pods)
                rows[name] = (node_rules(pods), has_value)
            elif not node_rules(pods):
                assert "on-rack-a" not in mounted_texts(rendered.cloud, pods), name
        print(release, rows)
        assert sorted(rows.values()) == [
            ([("rack", "In", ("a",))], True),
            ([("rack", "NotIn", ("a",))], False),
        ]


def node_rules(pods: Pods) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return what pods require of the labels of their node, besides the selector."""
    node = (pods.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        (rule["key"], rule["operator"], tuple(rule["values"]))
        for term in required.get("nodeSelectorTerms", ())
        for rule in term["matchExpressions"]
    ]


def mounted_texts(cloud: CloudManifests, pods: Pods) -> str:
    """Return the content of all that pods mount."""
    objects = [
        cloud.by_name[reference]
        for reference in judge.of_pods(pods.spec)
        if reference[0] in ("Secret", "ConfigMap")
    ]
    return "\n".join(
        text for entry in objects for text in cloud_manifests.texts(entry).values()
    )


def test_hooks_wait_for_gates_only(rendered: Rendered) -> None:
    """helm returns when hook Jobs end: they must not wait for a release without a gate.

    So each run of helm ends once its gates are open, and one slot is enough, also for
    neutron, nova, openvswitch and libvirt, whose pods wait for each other.
    """
    cloud = rendered.cloud
    print(f"{'release':24} hooks waits for")
    for release in CHARTS:
        gates = graph.gates(release, graph.RELEASES)
        behind = {cloud.by_name[str(gate.kind), gate.name].release for gate in gates}
        hooks = [
            pods
            for pods in of_release(cloud, release)
            if "helm.sh/hook"
            in (pods.owner.manifest["metadata"].get("annotations") or {})
        ]
        needed = {
            cloud.by_name["Service", service].release
            for pods in hooks
            for container in pods.spec.get("initContainers") or []
            for service in judge.names(cloud.env(container), "DEPENDENCY_SERVICE")
        } - {release}
        print(f"{release:24} {len(hooks):5} {' '.join(sorted(needed))}")
        assert needed <= behind, f"{release}: {needed - behind}"


def test_each_role_can_be_granted(rendered: Rendered) -> None:
    """Nobody grants more than he holds: osdpl-controller holds each verb of the charts.

    Source: Kubernetes, Using RBAC Authorization, privilege escalation prevention.
    """
    held = rights.parse(rights.manifest("osdpl-controller"))
    missing = set()
    for kind in ("Role", "ClusterRole"):
        roles = [entry.manifest for entry in rendered.cloud.of_kind(kind)]
        granted = {verb_of(right) for right in rights.parse(yaml.safe_dump_all(roles))}
        print(f"{len(roles)} of kind {kind} grant {len(granted)} verbs")
        missing |= granted - {
            verb_of(right)
            for right in held
            if not right.name and (kind == "Role" or not right.namespace)
        }
    assert missing == set()


REGISTRY = "registry.example.com"


def test_each_chart_makes_a_pull_secret_for_its_pods(
    rendered: Rendered, tmp_path: pathlib.Path
) -> None:
    """With one account for all charts, whose password is in a Secret."""
    template = pathlib.Path(rendered.source, "keystone/templates/secret-registry.yaml")
    if not template.is_file():
        pytest.skip("the lab's own charts make no pull secrets")
    password = {"value_from": {"secret_key_ref": {"name": "registry", "key": "key"}}}
    account = {"username": "robot", "password": password}
    accounts = dict.fromkeys(set(CHARTS.values()), account)
    registry = {
        "host_fqdn_override": {"default": REGISTRY},
        "auth": {"enabled": True, **accounts},
    }
    values = {"endpoints": {"oci_image_registry": registry}}
    own = rendering.render(rendered.where, rendered.source, tmp_path, values=values)
    token = base64.b64encode(b"robot:placeholder-registry-key").decode()
    expected = {"auths": {REGISTRY: {"auth": token}}}
    for release in CHARTS:
        secrets = {
            entry.name: json.loads(cloud_manifests.texts(entry)[".dockerconfigjson"])
            for entry in own.cloud.of_kind("Secret")
            if entry.release == release
            and entry.manifest.get("type") == "kubernetes.io/dockerconfigjson"
        }
        assert list(secrets.values()) == [expected], release
        used = {
            row["name"]
            for entry in own.cloud.of_kind("ServiceAccount")
            if entry.release == release
            for row in entry.manifest.get("imagePullSecrets") or ()
        }
        print(f"{release:24}", *secrets)
        assert used == set(secrets), release


def verb_of(right: doctor_model.Right) -> tuple[str, str, str, str]:
    """Return a permission without where it holds."""
    return (right.verb, right.group, right.resource, right.subresource)
