"""capdvp in one or several replicas, with the rights of its chart and its pages."""

import functools
import pathlib
from collections.abc import Iterable, Sequence

import psutil
import yaml

from lib.cloud.dvp import needs
from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import capdvp_objects
from lib.lab.dvp.project import Project
from lib.lab.kube import admin_api, cluster, control_plane
from lib.lab.run import ports, processes
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent

NAME = "capdvp"
ACCOUNT = ("kube-system", NAME)
"""Namespace and name of its ServiceAccount in the child."""
MANIFEST = pathlib.Path("charts/capdvp/files/rbac.yaml")
_FIRST_PORT = 50
"""Distance of the probes of the first replica from the first port of the child."""

Right = tuple[str, str, str]
"""API group, resource with its subresource, verb."""
Rule = tuple[str, tuple[str, ...], tuple[str, ...]]
"""API group, resources, verbs."""


def _needs(*, is_namespaced: bool) -> Sequence[Rule]:
    return tuple(
        (need.resource.group, (need.resource.plural,), need.verbs)
        for need in needs.COMPONENTS[NAME]
        if need.resource.namespaced is is_namespaced
    )


PARENT_RULES = _needs(is_namespaced=True)
"""Rights in the project of the parent."""
PARENT_CLUSTER_RULES = _needs(is_namespaced=False)
"""Rights on resources of the parent itself."""

_RBAC = "rbac.authorization.k8s.io"


def rights(rules: Iterable[Rule]) -> set[Right]:
    """Return every right of some rules."""
    return {
        (group, resource, verb)
        for group, plurals, verbs in rules
        for resource in plurals
        for verb in verbs
    }


def child_rights() -> set[Right]:
    """Return the rights that the chart gives capdvp itself in the child."""
    roles = [
        document
        for document in yaml.safe_load_all(MANIFEST.read_text())
        if document["kind"] in ("ClusterRole", "Role")
        and document["metadata"]["name"] == NAME
    ]
    return rights(
        (group, tuple(rule["resources"]), tuple(rule["verbs"]))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
    )


def parent_kubeconfig(
    parent: DvpParent, project: Project, target: pathlib.Path
) -> tuple[str, str]:
    """Create a user of the project for capdvp alone; return its namespace and name.

    It has the documented rights and no others. target: file of its kubeconfig.
    """
    account = (project.namespace, NAME)
    cluster.create_documents(
        parent.api, _parent_user(project.namespace), capdvp_objects.KINDS
    )
    admin = control_plane.admin_kubeconfig(parent.where)
    cluster.service_account_kubeconfig(parent.api, admin, account, target)
    return account


def _parent_user(namespace: str) -> list[dict[str, object]]:
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    inside = {"name": NAME, "namespace": namespace}
    outside = {"name": f"{NAME}-{namespace}"}
    documents: list[dict[str, object]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside}
    ]
    for prefix, meta, rules in (
        ("", inside, PARENT_RULES),
        ("Cluster", outside, PARENT_CLUSTER_RULES),
    ):
        role = f"{prefix}Role"
        rows = [
            {"apiGroups": [group], "resources": list(plurals), "verbs": list(verbs)}
            for group, plurals, verbs in rules
        ]
        reference = {"apiGroup": _RBAC, "kind": role, "name": meta["name"]}
        api = {"apiVersion": f"{_RBAC}/v1", "metadata": meta}
        documents.append({**api, "kind": role, "rules": rows})
        bound = {"roleRef": reference, "subjects": [subject]}
        documents.append({**api, "kind": f"{role}Binding", **bound})
    return documents


def child_kubeconfig(where: places.Places, api: client.Api) -> pathlib.Path:
    """Return the file of a kubeconfig of the ServiceAccount of the chart."""
    target = where.state / f"{NAME}.kubeconfig"
    admin = control_plane.admin_kubeconfig(where)
    cluster.service_account_kubeconfig(api, admin, ACCOUNT, target)
    return target


class CapdvpReplicas:
    """Processes of capdvp, named capdvp-1, capdvp-2 and so on. where: of the child.

    kubeconfig: of the child. parent: kubeconfig of the parent. more: further flags.
    """

    def __init__(
        self,
        where: places.Places,
        project: Project,
        kubeconfig: pathlib.Path,
        parent: pathlib.Path,
        more: Sequence[str] = (),
    ) -> None:
        self._where = where
        self._env = {**pexes.environment(where), **dvp_manager.environment(project)}
        self._words = (
            *pexes.command(pexes.beside(NAME)),
            f"--kubeconfig={kubeconfig}",
            f"--parent-kubeconfig={parent}",
            "--leader-elect=true",
            f"--leader-election-namespace={ACCOUNT[0]}",
            "--metrics-bind-address=0",
            "--logging-format=json",
            "--v=4",
            *more,
        )
        self._names: list[str] = []

    def start(self, count: int = 1) -> None:
        """Start so many replicas, unless they run; return once they are ready."""
        self._names = [f"{NAME}-{number + 1}" for number in range(count)]
        for name in self._names:
            self._launch(name)
        for name in self._names:
            is_ready = functools.partial(self._is_ready, name)
            processes.wait_for(self._where, name, is_ready)

    def _port(self, name: str) -> int:
        return self._where.port_base + _FIRST_PORT + self._names.index(name)

    def _launch(self, name: str) -> None:
        address = f"{ports.LOOPBACK}:{self._port(name)}"
        probes = f"--health-probe-bind-address={address}"
        processes.start(self._where, name, [*self._words, probes], self._env)

    def _is_ready(self, name: str) -> bool:
        return admin_api.serves(self._port(name), "/readyz")

    def process(self, name: str = f"{NAME}-1") -> psutil.Process:
        """Return the process of a replica that runs."""
        process = processes.find(self._where, name)
        assert process is not None, f"{name} has ended"
        return process

    def kill(self, name: str) -> None:
        """Kill a replica, as a failure of its machine does."""
        process = processes.find(self._where, name)
        if process is not None:
            process.kill()
            process.wait(10)

    def restart(self) -> None:
        """Kill all replicas, and start them again."""
        for name in self._names:
            self.kill(name)
        self.start(len(self._names))

    def log(self) -> str:
        """Return what all replicas have logged."""
        return "".join(
            (self._where.log / f"{name}.log").read_text() for name in self._names
        )

    def stop(self) -> None:
        """Stop all replicas; fine when none runs."""
        processes.stop(self._where, self._names)
