"""dvp-ccm has the rights of its list in the parent, and uses each of them.

Two runs with the same user, whose Role has these rights and no others: the parent
serves Services alone, then ServiceWithHealthchecks too.
"""

import collections
import pathlib
from collections.abc import Iterator

import pytest

from lib.cloud.dvp import needs
from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import CHECKED_SERVICES, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.services.services import WEB, Services

NEEDS = needs.COMPONENTS[needs.MANAGER]
KEPT, DELETED = "kept-1", "deleted-1"
RUNS = {"plain": resources.SERVICES, "checked": CHECKED_SERVICES}
"""Name of the Service of a run, and what it becomes in the parent."""


@pytest.fixture()
def minimal(parent: DvpParent, project: Project) -> Iterator[None]:
    """Leave the project's user only the rights of dvp-ccm."""
    objects = parent.objects(project)
    rules = [
        {
            "apiGroups": [need.resource.group],
            "resources": [need.resource.plural],
            "verbs": list(need.verbs),
        }
        for need in NEEDS
    ]
    objects.patch(resources.ROLES, projects.USER, rules=rules)
    yield
    parent.forget_checked_services()


@pytest.mark.usefixtures("minimal")
def test_each_verb_that_is_granted_is_used(
    parent: DvpParent,
    project: Project,
    where: places.Places,
    api: client.Api,
    tmp_path: pathlib.Path,
) -> None:
    """Services are created, changed and deleted; a Node's VM is deleted."""
    parent.machines(project, (KEPT, DELETED))
    kubelets = dvp_manager.Kubelets(api)
    kubelets.boot(KEPT, DELETED)
    env = dvp_manager.environment(project)
    child = dvp_manager.account(where, api, tmp_path)
    flags = ["--leader-elect=false"]
    words = dvp_manager.arguments(where, project.kubeconfig, flags, child)
    try:
        for name in RUNS:
            with dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env):
                serve(parent, project, api, name)
                if name == "plain":
                    lose_a_machine(parent, project, api, kubelets)
            parent.serve_checked_services()
    finally:
        kubelets.end()
    check(parent, project)


def serve(parent: DvpParent, project: Project, api: client.Api, name: str) -> None:
    """Create, change and delete a Service; its object in the parent follows."""
    kind, services = RUNS[name], Services(api, "rights")
    objects = parent.objects(project)

    def ports() -> list[set[int]]:
        return [
            {port["port"] for port in document["spec"]["ports"]}
            for document in objects.all(kind)
        ]

    services.make(name)
    waiting.until(f"{name}: created", lambda: ports() == [{80}])
    waiting.until(f"{name}: address", lambda: ingress(services, name))
    services.change(name, ports=[WEB, {"port": 443, "name": "tls"}])
    waiting.until(f"{name}: changed", lambda: ports() == [{80, 443}])
    services.delete([name])
    waiting.until(f"{name}: deleted", lambda: services.get(name) is None)
    assert ports() == []


def ingress(services: Services, name: str) -> object:
    document = services.get(name) or {}
    return document.get("status", {}).get("loadBalancer", {}).get("ingress")


def lose_a_machine(
    parent: DvpParent,
    project: Project,
    api: client.Api,
    kubelets: dvp_manager.Kubelets,
) -> None:
    """Delete a VM; its Node is deleted once direct reads confirm that it is absent."""
    nodes = dvp_manager.SeenNodes(api)
    nodes.until("initialised", lambda: not nodes.is_new(DELETED))
    parent.objects(project).delete(MACHINES, DELETED)
    kubelets.fall_silent(DELETED)
    nodes.until("the Node is deleted", lambda: nodes.get(DELETED) is None)


def check(parent: DvpParent, project: Project) -> None:
    """Print verb by verb what was granted and how often it was used."""
    # Watches are complete in the log: the daemon has ended.
    rows = [row for row in parent.requests(project) if row.resource]
    used = collections.Counter((row.group, row.resource, row.verb) for row in rows)
    granted = {
        (need.resource.group, need.resource.plural, verb)
        for need in NEEDS
        for verb in need.verbs
    }
    for right in sorted(granted | set(used)):
        print(f"{' '.join(right):62} {right in granted!s:6} {used[right]:4}")
    assert not [row for row in rows if row.code == 403]
    assert set(used) == granted
