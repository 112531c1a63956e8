"""Manual changes to the objects of releases, found by comparing them with the cluster.

Rules: nothing is written; a dry run of the API server returns what an object would be
if helm applied its release again. Results are paths of fields, never their values:
these may be secret. Fields that no release sets are not compared.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lib.helm import immutable, manifest
from lib.helm import model as helm
from lib.kube import client, errors, resources
from lib.kube.resources import Resource
from lib.osdpl.reconcile import caches

TIMEOUT_S = 20.0
PATHS_MAX = 10
"""Fields of one object that are shown."""
_QUERY = {"dryRun": "All", "fieldManager": "helm", "force": "true"}
_UNSTABLE = ("managedFields", "resourceVersion", "generation", "creationTimestamp")

_RESOURCES: Mapping[str, Resource] = {
    resource.kind: resource
    for resource in (
        *(resources.DEPLOYMENTS, resources.STATEFUL_SETS, resources.DAEMON_SETS),
        *(resources.SERVICES, resources.CONFIG_MAPS, resources.SECRETS),
        *(resources.SERVICE_ACCOUNTS, resources.ROLES, resources.ROLE_BINDINGS),
        *(resources.CLUSTER_ROLES, resources.CLUSTER_ROLE_BINDINGS),
        Resource("batch", "v1", "cronjobs", "CronJob", True),
        Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True),
    )
}
"""Kinds that are compared; Jobs end, and claims hold data."""

_LABELS = {"app.kubernetes.io/managed-by": "Helm"}
"""Added by helm to each object, as the annotations with release and namespace.

Source: helm.sh/helm/v4 pkg/action, validate.go."""


@dataclasses.dataclass(frozen=True, slots=True)
class LiveChange:
    """An object of a release that differs from it. change: "deleted", or paths."""

    release: str
    kind: str
    name: str
    change: str


def changes(api: client.Api, kept: caches.Caches) -> Iterator[LiveChange]:
    """Yield the objects of deployed releases that were changed or deleted.

    Raises:
        HelmError: a release cannot be read. KubeError: the cluster cannot be read.
    """
    for name, revision in sorted(kept.revisions().items()):
        release = kept.release(revision)
        if release is None or revision.status is not helm.Status.DEPLOYED:
            continue
        for document in manifest.objects(release.manifest, tuple(_RESOURCES)):
            metadata = document.get("metadata") or {}
            if immutable.HOOK in (metadata.get("annotations") or {}):
                continue
            applied = _as_applied(document, revision)
            change = _change(api, revision.namespace, applied)
            if change:
                kind, object_name = str(document["kind"]), str(metadata.get("name"))
                yield LiveChange(name, kind, object_name, change)


def _as_applied(
    document: Mapping[str, Any], revision: helm.Revision
) -> Mapping[str, Any]:
    """Return a document with the labels and annotations that helm adds."""
    metadata = document["metadata"]
    owner = {
        caches.RELEASE: revision.name,
        "meta.helm.sh/release-namespace": revision.namespace,
    }
    labels = {**(metadata.get("labels") or {}), **_LABELS}
    annotations = {**(metadata.get("annotations") or {}), **owner}
    return {
        **document,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
    }


def _change(api: client.Api, namespace: str, document: Mapping[str, Any]) -> str:
    """Return how an object differs from its document; empty: it does not."""
    resource = _RESOURCES[document["kind"]]
    name = document["metadata"]["name"]
    where = document["metadata"].get("namespace") or namespace
    space = where if resource.namespaced else None
    try:
        before = json.loads(api.read(resource, name, space, timeout_s=TIMEOUT_S))
    except errors.NotFound:
        return "deleted"
    after = json.loads(
        api.patch(
            resource,
            name,
            msgspec.json.encode(document),
            space,
            content_type=client.APPLY_PATCH,
            query=_QUERY,
            timeout_s=TIMEOUT_S,
        )
    )
    paths = list(differences(_stable(before), _stable(after)))
    more = f" and {len(paths) - PATHS_MAX} more" if len(paths) > PATHS_MAX else ""
    return f"changed: {', '.join(paths[:PATHS_MAX])}{more}" if paths else ""


def _stable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without what each write changes."""
    metadata = {
        key: value
        for key, value in document.get("metadata", {}).items()
        if key not in _UNSTABLE
    }
    rest = {key: value for key, value in document.items() if key != "status"}
    return {**rest, "metadata": metadata}


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two documents differ; lists of one length by item."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            below = f"{path}.{key}" if path else str(key)
            yield from differences(before.get(key), after.get(key), below)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield path
            return
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif before != after:
        yield path
