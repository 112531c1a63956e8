"""Permissions in the chart of a component, and the check that they are granted."""

import pathlib
from collections.abc import Iterator, Mapping

import msgspec
import yaml

from lib.doctor.model import DaemonAccount, Right
from lib.kube import resources
from lib.process import decoding

_ROLES = ("Role", "ClusterRole")


class ManifestError(Exception):
    """The text is no RBAC manifest."""


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ("",)


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Document(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _Metadata = _Metadata()
    rules: tuple[_Rule, ...] | None = ()


def manifest(component: str) -> str:
    """Return the RBAC manifest of a component's chart, which is shipped with us."""
    # Two rooms up from this file in a checkout, a sandbox and an unpacked PEX alike.
    root = pathlib.Path(__file__).parents[2]
    return (root / "charts" / component / "files" / "rbac.yaml").read_text()


def parse(text: str, role: str = "") -> tuple[Right, ...]:
    """Return every right that the Roles and ClusterRoles of a manifest hold, once.

    A ClusterRole is taken to be bound in the whole cluster, a Role in its namespace.
    role: name of those of the component; empty: any.

    Raises:
        ManifestError: it is not YAML, or holds none.
    """
    try:
        documents = [
            msgspec.convert(document, type=_Document)
            for document in yaml.safe_load_all(text)
            if document is not None
        ]
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ManifestError(f"it is no manifest ({error})") from error
    rights = [
        right
        for document in documents
        if document.kind in _ROLES and role in ("", document.metadata.name)
        for right in _of_role(document)
    ]
    if not rights:
        raise ManifestError("it holds no Role and no ClusterRole with rules")
    return tuple(dict.fromkeys(rights))


def _of_role(role: _Document) -> Iterator[Right]:
    for rule in role.rules or ():
        for group in rule.api_groups:
            for whole in rule.resources:
                resource, _, subresource = whole.partition("/")
                for name in rule.resource_names:
                    for verb in rule.verbs:
                        where = role.metadata.namespace
                        yield Right(verb, group, resource, subresource, where, name)


def kind_of_review(account: DaemonAccount | None) -> resources.Resource:
    """Return what to create to ask for a right: our own, or that of an account."""
    if account is None:
        return resources.SELF_SUBJECT_ACCESS_REVIEWS
    return resources.SUBJECT_ACCESS_REVIEWS


def review(right: Right, account: DaemonAccount | None) -> bytes:
    """Write the question whether we, or an account, have a right.

    Source: Kubernetes authorization/v1 ResourceAttributes; the groups of a
    ServiceAccount are those that the API server's token authenticator gives it.
    """
    kind = kind_of_review(account)
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    spec: dict[str, object] = {
        "resourceAttributes": {key: value for key, value in attributes.items() if value}
    }
    if account is not None:
        spec["user"] = str(account)
        spec["groups"] = [
            "system:serviceaccounts",
            f"system:serviceaccounts:{account.namespace}",
            "system:authenticated",
        ]
    body: Mapping[str, object] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "spec": spec,
    }
    return msgspec.json.encode(body)


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status


def is_allowed(answer: bytes) -> bool:
    """Read the answer to `review`.

    Raises:
        msgspec.DecodeError: it is malformed.
    """
    return decoding.decode(answer, _Review).status.allowed
