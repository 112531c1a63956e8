"""The accounts of a child's components in the parent, and their permissions. Pure.

Each component has a ServiceAccount in the project with exactly the verbs that it uses;
several components may share one account, as they share the Secret dvp-credentials.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

PREFIX = "mooring-"
"""Of the names of accounts, Roles and ClusterRoles."""
VIRTUALIZATION = "virtualization.deckhouse.io"
_RBAC = "rbac.authorization.k8s.io"
_WATCH = ("get", "list", "watch")
_FOLLOW = ("list", "watch")
_WRITE = ("get", "list", "watch", "create", "patch", "delete")

Manifest = Mapping[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class ParentRule:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    def manifest(self) -> Manifest:
        """Return the rule as a Role contains it."""
        return {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Permissions:
    """Permissions of one component: in the project, and on kinds of the cluster."""

    project: tuple[ParentRule, ...]
    cluster: tuple[ParentRule, ...] = ()


COMPONENTS: Mapping[str, Permissions] = {
    "dvp-ccm": Permissions(
        (
            ParentRule(VIRTUALIZATION, ("virtualmachines",), (*_WATCH, "patch")),
            ParentRule("", ("services",), _WRITE),
            ParentRule("network.deckhouse.io", ("servicewithhealthchecks",), _WRITE),
        )
    ),
    "csi-controller": Permissions(
        (
            ParentRule(VIRTUALIZATION, ("virtualmachines",), _FOLLOW),
            ParentRule(
                VIRTUALIZATION,
                ("virtualdisks", "virtualmachineblockdeviceattachments"),
                _WRITE,
            ),
        )
    ),
    "cloud-data-discoverer": Permissions(
        (ParentRule(VIRTUALIZATION, ("virtualdisks",), ("list",)),),
        (ParentRule("storage.k8s.io", ("storageclasses",), ("get", "list")),),
    ),
    "capdvp": Permissions(
        (
            ParentRule(VIRTUALIZATION, ("virtualmachines",), _WRITE),
            ParentRule(
                VIRTUALIZATION, ("virtualdisks",), (*_WRITE, "deletecollection")
            ),
            ParentRule(
                VIRTUALIZATION,
                ("virtualmachineblockdeviceattachments",),
                (*_FOLLOW, "delete", "deletecollection"),
            ),
            ParentRule(
                VIRTUALIZATION, ("virtualimages", "virtualdisksnapshots"), _FOLLOW
            ),
            ParentRule("", ("secrets",), _WRITE),
        ),
        (
            ParentRule(
                VIRTUALIZATION,
                ("virtualmachineclasses", "clustervirtualimages"),
                _FOLLOW,
            ),
            ParentRule("storage.k8s.io", ("storageclasses",), _FOLLOW),
        ),
    ),
}
"""csi-node has no account: it never calls the parent. docs/dvp.md lists the verbs."""


def manifests(
    namespace: str, components: Sequence[str], account: str = ""
) -> tuple[Manifest, ...]:
    """Return accounts, Roles, ClusterRoles and bindings.

    namespace: the project. account: the one account of all components; empty: each has
    its own.
    """
    shown: dict[str, Manifest] = {}
    for component in components:
        name = account or account_of(component)
        shown.setdefault(name, _account(namespace, name))
    for component in components:
        name = account or account_of(component)
        for manifest in _roles(namespace, component, name):
            shown[f"{manifest['kind']}/{_name(manifest)}"] = manifest
    return tuple(shown.values())


def account_of(component: str) -> str:
    """Return the name of the account that a component has for itself."""
    return f"{PREFIX}{component}"


def kubeconfig(
    server: str, authority: str, account: tuple[str, str], token: str
) -> Manifest:
    """Return a kubeconfig of an account. authority: in PEM; account: namespace, name.

    Everything is inside, so that it works in any Pod.
    """
    namespace, name = account
    encoded = base64.b64encode(authority.encode()).decode()
    trusted = {"certificate-authority-data": encoded} if authority else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "parent",
        "clusters": [{"name": "parent", "cluster": {"server": server, **trusted}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [
            {
                "name": "parent",
                "context": {"cluster": "parent", "user": name, "namespace": namespace},
            }
        ],
    }


def _name(manifest: Manifest) -> str:
    about = manifest["metadata"]
    return str(about["name"]) if isinstance(about, Mapping) else ""


def _account(namespace: str, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
        # Tokens are requested; no Pod of the parent uses the account.
        "automountServiceAccountToken": False,
    }


def _roles(namespace: str, component: str, account: str) -> Iterator[Manifest]:
    permissions, role = COMPONENTS[component], account_of(component)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    inside = {"namespace": namespace}
    yield _role("Role", {"name": role, **inside}, permissions.project)
    yield _binding("Role", role, {"name": _bound(role, account), **inside}, subject)
    if permissions.cluster:
        yield _role("ClusterRole", {"name": role}, permissions.cluster)
        # Bindings of several projects must have different names.
        name = f"{_bound(role, account)}-{namespace}"
        yield _binding("ClusterRole", role, {"name": name}, subject)


def _bound(role: str, account: str) -> str:
    """Return the name of a binding; one per account."""
    return role if role == account else f"{account}-{role.removeprefix(PREFIX)}"


def _role(kind: str, about: Manifest, rules: Sequence[ParentRule]) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": dict(about),
        "rules": [rule.manifest() for rule in rules],
    }


def _binding(kind: str, role: str, about: Manifest, subject: Manifest) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(about),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [dict(subject)],
    }
