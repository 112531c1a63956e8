"""The manifests of Cluster API's core, for a manager outside of the cluster. Pure.

What kustomize does in core/config/default of its repository is done here: names get a
prefix, the manager has the aggregated role, webhooks have a certificate. A Service and
cert-manager are replaced by a URL and the certificate of the lab's authority.

Source: core/config/default/kustomization.yaml of Cluster API 1.14.
"""

import base64
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

NAMESPACE = "capi-system"
ACCOUNT = "capi-manager"
ROLE = "capi-aggregated-manager-role"
"""Aggregated from the manager's own role and those of providers."""

_PREFIX = "capi-"
_LABELS = {"cluster.x-k8s.io/provider": "cluster-api"}
_CONTRACTS = {
    "cluster.x-k8s.io/v1beta1": "v1beta1",
    "cluster.x-k8s.io/v1beta2": "v1beta2",
}
_AGGREGATED = {"cluster.x-k8s.io/aggregate-to-manager": "true"}


def access(documents: Iterable[Mapping[str, Any]]) -> Sequence[Json]:
    """Return namespace, ServiceAccount and roles. documents: of core/config/rbac."""
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": _LABELS},
    }
    placed = [_placed(each) for each in documents if each["kind"] != "Kustomization"]
    return [space, *sorted(placed, key=lambda each: each["kind"] != "ServiceAccount")]


def _placed(document: Mapping[str, Any]) -> Json:
    """Return an object of the manager's access under its name in the cluster."""
    placed: Json = copy.deepcopy(dict(document))
    meta, kind = placed["metadata"], placed["kind"]
    meta["name"] = _PREFIX + meta["name"]
    meta["labels"] = {**meta.get("labels", {}), **_LABELS}
    if not kind.startswith("Cluster"):
        meta["namespace"] = NAMESPACE
    if kind == "ClusterRole" and "rules" in placed:
        meta["labels"].update(_AGGREGATED)
    if kind == "ClusterRoleBinding":
        placed["roleRef"]["name"] = ROLE
    elif kind == "RoleBinding":
        placed["roleRef"]["name"] = _PREFIX + placed["roleRef"]["name"]
    for subject in placed.get("subjects", ()):
        subject.update(name=_PREFIX + subject["name"], namespace=NAMESPACE)
    return placed


def definitions(
    documents: Iterable[Mapping[str, Any]], url: str, authority: bytes
) -> Sequence[Json]:
    """Return the CustomResourceDefinitions, converted by the webhook at a URL.

    documents: of core/config/crd/bases. authority: certificate, PEM.
    """
    return [_definition(each, url, authority) for each in documents]


def _definition(document: Mapping[str, Any], url: str, authority: bytes) -> Json:
    placed: Json = copy.deepcopy(dict(document))
    meta = placed["metadata"]
    meta["labels"] = {**meta.get("labels", {}), **_LABELS, **_CONTRACTS}
    placed["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": _reached(f"{url}/convert", authority),
        },
    }
    return placed


def webhooks(
    documents: Iterable[Mapping[str, Any]], url: str, authority: bytes
) -> Sequence[Json]:
    """Return the configurations of the admission webhooks at a URL.

    documents: of core/config/webhook/manifests.yaml. authority: certificate, PEM.
    """
    placed: list[Json] = [copy.deepcopy(dict(each)) for each in documents]
    for configuration in placed:
        meta = configuration["metadata"]
        meta["name"] = _PREFIX + meta["name"]
        meta["labels"] = {**meta.get("labels", {}), **_LABELS}
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = _reached(f"{url}{path}", authority)
    return placed


def _reached(url: str, authority: bytes) -> Json:
    return {"url": url, "caBundle": base64.b64encode(authority).decode()}
