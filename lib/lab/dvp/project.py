"""A project of a parent: the namespace of a child, its user and their rights."""

import base64
import dataclasses
import json
import pathlib
from collections.abc import Sequence

import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab.dvp import kinds
from lib.lab.kube import cluster, pki

USER = "child"
TIMEOUT_S = 20.0
STORAGE = "replicated"
"""A StorageClass that binds at the first consumer, the default one."""
STORAGE_AT_ONCE = "local-immediate"
"""A StorageClass that binds immediately."""
STORAGE_FIXED = "local-fixed"
"""A StorageClass whose volumes cannot be expanded."""
CLASS = "generic"
IMAGE = "base"

_ALL = (
    *("get", "list", "watch", "create", "update", "patch"),
    *("delete", "deletecollection"),
)
RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (kinds.GROUP, ("virtualmachines",), _ALL),
    (kinds.GROUP, ("virtualdisks",), _ALL),
    (kinds.GROUP, ("virtualmachineblockdeviceattachments",), _ALL),
    (kinds.GROUP, ("virtualimages",), ("get", "list", "watch")),
    (kinds.GROUP, ("virtualdisksnapshots",), ("get", "list", "watch")),
    (kinds.GROUP, ("virtualmachineipaddresses",), _ALL),
    (kinds.GROUP, ("virtualmachineoperations",), ("get", "list", "watch", "create")),
    ("", ("services", "secrets"), _ALL),
    (kinds.NETWORK_GROUP, ("servicewithhealthchecks",), _ALL),
)
"""Rights of a user in a project: API group, resources, verbs."""

CLUSTER_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("storage.k8s.io", ("storageclasses",), ("get", "list", "watch")),
    (
        kinds.GROUP,
        ("virtualmachineclasses", "clustervirtualimages"),
        ("get", "list", "watch"),
    ),
)
"""Rights outside of projects."""


@dataclasses.dataclass(frozen=True, slots=True)
class Project:
    """One project. kubeconfig: of its user, with a token and the namespace."""

    namespace: str
    kubeconfig: pathlib.Path

    def encoded(self) -> str:
        """Return the kubeconfig as the variable of the reference's daemons has it."""
        return base64.b64encode(self.kubeconfig.read_bytes()).decode()


def base() -> Sequence[kinds.Json]:
    """Return what every parent has: StorageClasses, a class, an image, a role."""
    waits = {"volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True}
    at_once = {"volumeBindingMode": "Immediate", "allowVolumeExpansion": True}
    fixed = {"volumeBindingMode": "Immediate", "allowVolumeExpansion": False}
    return [
        _storage_class(STORAGE, waits, is_default=True),
        _storage_class(STORAGE_AT_ONCE, at_once),
        _storage_class(STORAGE_FIXED, fixed),
        {
            "apiVersion": f"{kinds.GROUP}/v1alpha2",
            "kind": kinds.CLASSES.kind,
            "metadata": {"name": CLASS},
            "spec": {"cpu": {"type": "Host"}},
        },
        {
            "apiVersion": kinds.CLUSTER_IMAGES.api_version,
            "kind": kinds.CLUSTER_IMAGES.kind,
            "metadata": {"name": IMAGE},
            "spec": {
                "dataSource": {
                    "type": "HTTP",
                    "http": {"url": "https://lab.invalid/base.qcow2"},
                }
            },
        },
        _cluster_role(),
    ]


def _storage_class(
    name: str, fields: dict[str, object], *, is_default: bool = False
) -> kinds.Json:
    key = "storageclass.kubernetes.io/is-default-class"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {key: "true"} if is_default else {},
        },
        "provisioner": "lab.invalid/parent-simulator",
        "reclaimPolicy": "Delete",
        **fields,
    }


def _rules(
    rules: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...],
) -> list[kinds.Json]:
    return [
        {"apiGroups": [group], "resources": list(plurals), "verbs": list(verbs)}
        for group, plurals, verbs in rules
    ]


def _cluster_role() -> kinds.Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "lab-project-user"},
        "rules": _rules(CLUSTER_RULES),
    }


def _documents(namespace: str) -> list[kinds.Json]:
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": USER, "namespace": namespace}
    inside = {"name": USER, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": inside,
            "rules": _rules(RULES),
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": USER},
            "subjects": [subject],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"lab-project-{namespace}"},
            "roleRef": {
                "apiGroup": rbac,
                "kind": "ClusterRole",
                "name": "lab-project-user",
            },
            "subjects": [subject],
        },
    ]


def ensure(
    api: client.Api, admin: pathlib.Path, namespace: str, folder: pathlib.Path
) -> Project:
    """CreateObject a project unless it is there, and a kubeconfig of its user.

    admin: kubeconfig that describes the parent. folder: of the kubeconfigs.

    Raises:
        KubeError: the parent refused or did not answer.
    """
    meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    try:
        body = json.dumps(meta).encode()
        api.create(resources.NAMESPACES, body, timeout_s=TIMEOUT_S)
    except kube_errors.AlreadyExists:
        pass
    cluster.create_all(api, yaml.safe_dump_all(_documents(namespace)))
    target = folder / f"{namespace}.kubeconfig"
    rotate(api, admin, namespace, target)
    return Project(namespace, target)


def rotate(
    api: client.Api, admin: pathlib.Path, namespace: str, target: pathlib.Path
) -> None:
    """Write the kubeconfig of a project's user with a new token.

    Raises:
        KubeError: the parent refused or did not answer.
    """
    account = (namespace, USER)
    cluster.service_account_kubeconfig(api, admin, account, target)


def revoke(api: client.Api, namespace: str) -> None:
    """Make all tokens of a project's user invalid: its account is made again.

    Raises:
        KubeError: the parent refused or did not answer.
    """
    api.delete(resources.SERVICE_ACCOUNTS, USER, namespace, timeout_s=TIMEOUT_S)
    cluster.create_all(api, yaml.safe_dump_all(_documents(namespace)[:1]))


def write(target: pathlib.Path, text: str) -> None:
    """Write a kubeconfig for its owner alone."""
    pki.write_secret(target, text.encode())
