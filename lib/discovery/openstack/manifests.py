"""Kubernetes objects as documents."""

import base64
from collections.abc import Mapping

LABELS: Mapping[str, str] = {
    "heritage": "deckhouse",
    "module": "cloud-provider-openstack",
}
"""On every object of the module. Source: Deckhouse, helm_lib_module_labels."""
MODULE_NAMESPACE = "d8-cloud-provider-openstack"
MACHINES_NAMESPACE = "d8-cloud-instance-manager"
SYSTEM_NAMESPACE = "kube-system"

Manifest = dict[str, object]


def secret(
    namespace: str,
    name: str,
    texts: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """Return an Opaque Secret; `texts` is its data, not yet encoded."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**LABELS, **(labels or {})},
        },
        "type": "Opaque",
        "data": {
            key: base64.b64encode(text.encode()).decode() for key, text in texts.items()
        },
    }


def for_machines(
    kind: tuple[str, str],
    name: str,
    spec: Mapping[str, object],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """Return an object beside the machines. kind: apiVersion and kind."""
    metadata: dict[str, object] = {
        "name": name,
        "namespace": MACHINES_NAMESPACE,
        "labels": {**LABELS, **(labels or {})},
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": metadata,
        "spec": dict(spec),
    }
