import base64
from typing import Any

from lib.lab.capi import core_manifests

AUTHORITY = b"certificate"
BUNDLE = base64.b64encode(AUTHORITY).decode()
URL = "https://127.0.0.1:1"
Json = dict[str, Any]


def bound(kind: str, name: str, role: str) -> Json:
    return {
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"name": role},
        "subjects": [
            {"kind": "ServiceAccount", "name": "manager", "namespace": "system"}
        ],
    }


RBAC: list[Json] = [
    {"kind": "Kustomization"},
    bound("ClusterRoleBinding", "manager-rolebinding", "manager-role"),
    {"kind": "ClusterRole", "metadata": {"name": "manager-role"}, "rules": [1]},
    {
        "kind": "ClusterRole",
        "metadata": {"name": "aggregated-manager-role"},
        "aggregationRule": {},
    },
    {"kind": "Role", "metadata": {"name": "leader-election-role"}, "rules": [2]},
    bound("RoleBinding", "leader-election-rolebinding", "leader-election-role"),
    {"kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": "system"}},
]


def test_the_manager_has_the_aggregated_role() -> None:
    placed = core_manifests.access(RBAC)
    by_kind = {each["kind"]: each for each in placed}
    names = {(each["kind"], each["metadata"]["name"]) for each in placed}
    assert [each["kind"] for each in placed][:2] == ["Namespace", "ServiceAccount"]
    assert ("ClusterRole", core_manifests.ROLE) in names
    binding = by_kind["ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == core_manifests.ROLE
    subject = {
        "kind": "ServiceAccount",
        "name": core_manifests.ACCOUNT,
        "namespace": core_manifests.NAMESPACE,
    }
    assert binding["subjects"] == [subject]
    label = "cluster.x-k8s.io/aggregate-to-manager"
    labelled = [
        each["metadata"]["name"]
        for each in placed
        if label in each["metadata"]["labels"]
    ]
    assert labelled == ["capi-manager-role"]


def test_objects_with_a_namespace_are_in_that_of_the_manager() -> None:
    placed = {each["kind"]: each for each in core_manifests.access(RBAC)}
    for kind in ("Role", "RoleBinding", "ServiceAccount"):
        assert placed[kind]["metadata"]["namespace"] == core_manifests.NAMESPACE
    assert placed["RoleBinding"]["roleRef"]["name"] == "capi-leader-election-role"
    assert "namespace" not in placed["ClusterRoleBinding"]["metadata"]


def test_definitions_are_converted_at_the_url() -> None:
    document = {"metadata": {"name": "clusters"}, "spec": {"versions": [1, 2]}}
    [placed] = core_manifests.definitions([document], URL, AUTHORITY)
    reached = placed["spec"]["conversion"]["webhook"]["clientConfig"]
    assert reached == {"url": f"{URL}/convert", "caBundle": BUNDLE}
    assert placed["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] == "v1beta2"
    assert document["spec"] == {"versions": [1, 2]}


def test_webhooks_keep_their_paths_and_lose_the_service() -> None:
    service = {"name": "webhook-service", "namespace": "system", "path": "/validate-x"}
    document = {
        "metadata": {"name": "validating-webhook-configuration"},
        "webhooks": [{"name": "v", "clientConfig": {"service": service}}],
    }
    [placed] = core_manifests.webhooks([document], URL, AUTHORITY)
    assert placed["metadata"]["name"] == "capi-validating-webhook-configuration"
    [webhook] = placed["webhooks"]
    expected = {"url": f"{URL}/validate-x", "caBundle": BUNDLE}
    assert webhook["clientConfig"] == expected
