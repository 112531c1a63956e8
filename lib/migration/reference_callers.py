"""What calls the reference, or waits for it, when its workloads are stopped.

An ExtensionConfig of Cluster API and a webhook configuration fail each call without
their program: then no MachineDeployment of the cluster changes its template any more.
A finalizer without its controller keeps an object for ever.

Source: kubernetes-sigs/cluster-api internal/runtime/client (no failure policy: Fail)
and core/reconcilers/machinedeployment (CanUpdateMachineSet, called at each rollout).
"""

import dataclasses
import json
import shlex
from collections.abc import Collection, Mapping

from lib.kube import called_services, client, listing, objects, recommended_labels
from lib.kube.called_services import ServiceCaller
from lib.kube.resources import Resource

_KEPT_ANNOTATIONS = "runtime.cluster.x-k8s.io/"
"""Prefix of the annotations that an ExtensionConfig needs: injection of its CA."""
_DECKHOUSE = "deckhouse.io"

Json = Mapping[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceCaller:
    """An object by which the reference is called. document: to create it again."""

    kind: str
    plural: str
    name: str
    document: Json


@dataclasses.dataclass(frozen=True, slots=True)
class FinalizedObject:
    """An object of Cluster API, with its finalizers."""

    plural: str
    kind: str
    namespace: str
    name: str
    finalizers: tuple[str, ...]


def read(
    api: client.Api, timeout_s: float, module: str, namespaces: Collection[str]
) -> tuple[ReferenceCaller, ...]:
    """Read what calls a module: by its label, or by a Service in its namespaces.

    A kind that is not served has no objects; of two versions one is read.

    Raises:
        KubeError: a list cannot be read.
    """
    kinds = (*called_services.EXTENSIONS, *called_services.WEBHOOKS)
    return tuple(
        _extension(api, kind, caller, timeout_s)
        for kind, caller in called_services.callers(api, kinds, timeout_s)
        if _is_of(caller, module, namespaces)
    )


def finalized(
    api: client.Api, timeout_s: float, kind: Resource
) -> tuple[FinalizedObject, ...]:
    """Return the objects of a kind with their finalizers.

    Raises:
        KubeError: they cannot be listed.
    """
    return tuple(
        FinalizedObject(
            kind.plural,
            kind.kind,
            row.metadata.namespace,
            row.metadata.name,
            row.metadata.finalizers,
        )
        for row in listing.read_served(api, kind, objects.Bare, timeout_s=timeout_s)
    )


def _is_of(caller: ServiceCaller, module: str, namespaces: Collection[str]) -> bool:
    labels = caller.metadata.labels
    if recommended_labels.NAME in labels:
        return False  # a chart of this project
    is_called = any(service.namespace in namespaces for service in caller.services)
    return labels.get("module") == module or is_called


def _extension(
    api: client.Api, kind: Resource, caller: ServiceCaller, timeout_s: float
) -> ReferenceCaller:
    about = caller.metadata
    body = json.loads(api.read(kind, about.name, timeout_s=timeout_s))
    kept = {
        key: value
        for key, value in about.annotations.items()
        if key.startswith(_KEPT_ANNOTATIONS)
    }
    metadata = {
        "name": about.name,
        "labels": dict(about.labels),
        **({"annotations": kept} if kept else {}),
    }
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        **{key: body[key] for key in ("spec", "webhooks") if key in body},
    }
    return ReferenceCaller(kind.kind, kind.plural, about.name, document)


# ---------------------------------------------------------------- commands: pure


def remove(extensions: Collection[ReferenceCaller]) -> tuple[str, ...]:
    """Return the commands that delete what would call programs that are stopped."""
    return tuple(f"kubectl delete {row.plural} {row.name}" for row in extensions)


def restore(extensions: Collection[ReferenceCaller]) -> tuple[str, ...]:
    """Return the commands that create it again, with its content in them."""
    documents = (json.dumps(row.document, sort_keys=True) for row in extensions)
    return tuple(f"echo {shlex.quote(text)} | kubectl apply -f -" for text in documents)


def foreign(finalizers: Collection[str], own: str) -> tuple[str, ...]:
    """Return the finalizers of the reference.

    The text of its newest version is not published: it is one of Deckhouse, or of the
    API group of the objects, and is not ours.
    """
    return tuple(name for name in finalizers if name != own and _is_of_module(name))


def _is_of_module(finalizer: str) -> bool:
    domain = finalizer.partition("/")[0]
    return domain.endswith((_DECKHOUSE, "infrastructure.cluster.x-k8s.io"))


def without(
    rows: Collection[FinalizedObject], names: Collection[str]
) -> tuple[str, ...]:
    """Return the commands that remove finalizers, whether or not an object has them.

    They write the list as it was read, without those.
    """
    return tuple(
        f"kubectl -n {row.namespace} patch {row.plural} {row.name} --type=merge -p "
        + shlex.quote(json.dumps({"metadata": {"finalizers": _left(row, names)}}))
        for row in rows
    )


def _left(row: FinalizedObject, names: Collection[str]) -> list[str]:
    return [name for name in row.finalizers if name not in names]
