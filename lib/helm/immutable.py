"""What an upgrade would change although the API server does not allow it. Pure.

Rules: only the manifests are compared, never what helm or the API server answer.
Objects that helm creates in hooks are left to it.

Source: Kubernetes API validation, ValidateStatefulSetUpdate, ValidateJobUpdate,
ValidateServiceUpdate and the others of the kinds below.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lib.helm import manifest

HOOK = "helm.sh/hook"
Document = Mapping[str, Any]
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class FieldChange:
    """A change of a field that cannot be changed. field: such as spec.selector."""

    kind: str
    name: str
    field: str


def _at(document: Document, path: str) -> Any:
    node: Any = document
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return None if node in ("", [], {}) else node


def _fields(*paths: str) -> Callable[[Document, Document], Iterator[str]]:
    """Return a function that yields those of some fields that differ."""

    def compare(before: Document, after: Document) -> Iterator[str]:
        for path in paths:
            if _at(before, path) != _at(after, path):
                yield path

    return compare


_STATEFUL_SET_MUTABLE = {
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
}
_CLAIM_MUTABLE = {"resources", "volumeAttributesClassName", "volumeName"}


def _all_but(mutable: set[str]) -> Callable[[Document, Document], Iterator[str]]:
    """Return a function that yields the fields of spec that differ, without some."""

    def compare(before: Document, after: Document) -> Iterator[str]:
        names = {*(before.get("spec") or {}), *(after.get("spec") or {})}
        yield from _fields(*(f"spec.{name}" for name in sorted(names - mutable)))(
            before, after
        )

    return compare


def _service(before: Document, after: Document) -> Iterator[str]:
    """Yield the cluster IPs, which a Service loses only if its type changes."""
    if _at(after, "spec.type") == "ExternalName":
        return
    old = _at(before, "spec.clusterIP")
    is_headless = "None" in (old, _at(after, "spec.clusterIP"))
    if old is not None or is_headless:
        yield from _fields("spec.clusterIP")(before, after)
    yield from _fields("spec.loadBalancerClass")(before, after)


def _data(before: Document, after: Document) -> Iterator[str]:
    """Yield the data of a ConfigMap or Secret that is marked as immutable."""
    if before.get("immutable") is True:
        yield from _fields("immutable", "data", "binaryData", "stringData")(
            before, after
        )
    yield from _fields("type")(before, after)


_RULES: Mapping[str, Callable[[Document, Document], Iterator[str]]] = {
    "StatefulSet": _all_but(_STATEFUL_SET_MUTABLE),
    "Deployment": _fields("spec.selector"),
    "DaemonSet": _fields("spec.selector"),
    "Service": _service,
    "PersistentVolumeClaim": _all_but(_CLAIM_MUTABLE),
    "ConfigMap": _data,
    "Secret": _data,
    "RoleBinding": _fields("roleRef"),
    "ClusterRoleBinding": _fields("roleRef"),
}
_JOB = _fields(
    *("spec.template", "spec.selector", "spec.completions", "spec.completionMode")
)
KINDS = ("Job", *_RULES)


def changes(installed: Sequence[str], rendered: str) -> tuple[FieldChange, ...]:
    """Return what cannot be changed, Jobs included, in the order of the manifests.

    installed: manifests of the revisions of which objects may exist. rendered: the
    manifest that they are upgraded to, with hooks.

    Raises:
        YAMLError: a manifest is malformed.
    """
    after = dict(_objects(rendered))
    field_changes: dict[FieldChange, None] = {}
    for text in installed:
        for (kind, name), before in _objects(text):
            rule = _JOB if kind == "Job" else _RULES[kind]
            desired = after.get((kind, name))
            if desired is not None:
                for field in rule(before, desired):
                    field_changes[FieldChange(kind, name, field)] = None
    return tuple(field_changes)


def _objects(text: str) -> Iterator[tuple[Key, Document]]:
    for document in manifest.objects(text, KINDS):
        metadata = document.get("metadata") or {}
        if HOOK not in (metadata.get("annotations") or {}):
            yield (str(document["kind"]), str(metadata.get("name"))), document


def remedy(change: FieldChange) -> str:
    """Return what an administrator can do about a change, in one sentence."""
    thing = f"{change.kind} {change.name}"
    if change.kind == "PersistentVolumeClaim":
        return "restore the previous value: the claim holds data and is never deleted"
    if change.kind in ("StatefulSet", "Deployment", "DaemonSet"):
        return (
            f"restore the previous value, or delete the {thing} with"
            " --cascade=orphan: its pods and volumes stay, and it is created again"
        )
    return f"restore the previous value, or delete the {thing}: it is created again"
