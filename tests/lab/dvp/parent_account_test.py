"""Accounts in a parent, made by `mooring render dvp`: exactly their permissions."""

import datetime
import json
import pathlib
import subprocess
from collections.abc import Mapping

import pytest

from lib.discovery.dvp import parent_rbac
from lib.kube import client, errors, kube_config, resources
from lib.lab.artifacts import programs
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane
from tests.harness.daemons import tool
from tests.harness.dvp.dvp_parent import DvpParent

TIMEOUT_S = 10.0
VERBS = (
    *("get", "list", "watch", "create", "update", "patch"),
    *("delete", "deletecollection"),
)
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RESOURCES = {
    (rule.group, resource): rule in permissions.project
    for permissions in parent_rbac.COMPONENTS.values()
    for rule in (*permissions.project, *permissions.cluster)
    for resource in rule.resources
}
"""By group and name; whether it has a namespace."""


@pytest.fixture(scope="module")
def applied(parent: DvpParent, project: Project) -> str:
    """Apply the permissions as an administrator does; return the project."""
    printed = tool.mooring(
        "render", "dvp", "--parent-rbac", "--namespace", project.namespace
    )
    assert printed.returncode == 0, printed.stderr
    kubectl = programs.path(parent.where, "kubectl")
    subprocess.run(
        [kubectl, f"--kubeconfig={admin(parent)}", "apply", "-f", "-"],
        input=printed.stdout,
        text=True,
        check=True,
        timeout=900,
    )
    return project.namespace


def admin(parent: DvpParent) -> pathlib.Path:
    return control_plane.admin_kubeconfig(parent.where)


def account(parent: DvpParent, namespace: str, *words: str) -> tool.Said:
    return tool.mooring(
        *("render", "dvp", "--parent-kubeconfig", "--namespace", namespace),
        *("--kubeconfig", str(admin(parent)), *words),
    )


def connect(printed: tool.Said) -> client.KubeClient:
    assert printed.returncode == 0, printed.stderr
    address = kube_config.load_text(printed.stdout, "printed kubeconfig")
    return client.KubeClient(address, user_agent="test", pool_size=2)


def is_allowed(
    api: client.KubeClient, namespace: str, resource: tuple[str, str], verb: str
) -> bool:
    attributes = {"group": resource[0], "resource": resource[1], "verb": verb}
    if RESOURCES[resource]:
        attributes["namespace"] = namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    encoded = json.dumps(body).encode()
    answer = api.request("POST", REVIEWS, body=encoded, timeout_s=TIMEOUT_S)
    return bool(json.loads(answer)["status"]["allowed"])


def granted(component: str) -> Mapping[tuple[str, str], set[str]]:
    permissions = parent_rbac.COMPONENTS[component]
    verbs: dict[tuple[str, str], set[str]] = {key: set() for key in RESOURCES}
    for rule in (*permissions.project, *permissions.cluster):
        for resource in rule.resources:
            verbs[rule.group, resource] |= set(rule.verbs)
    return verbs


@pytest.mark.parametrize("component", parent_rbac.COMPONENTS)
def test_an_account_may_do_what_its_component_does(
    parent: DvpParent, applied: str, component: str
) -> None:
    """The parent is asked for each verb on each resource of all components."""
    api = connect(account(parent, applied, "--component", component))
    observed = {
        resource: {verb for verb in VERBS if is_allowed(api, applied, resource, verb)}
        for resource in RESOURCES
    }
    for (_, name), verbs in observed.items():
        print(f"{component:22} {name:38} {', '.join(sorted(verbs)) or '-'}")
    assert observed == granted(component)


def test_a_kubeconfig_reads_and_is_refused(parent: DvpParent, applied: str) -> None:
    """Real requests, in the project and outside of it."""
    words = ("--component", "csi-controller")
    api = connect(account(parent, applied, *words))
    path = f"/apis/virtualization.deckhouse.io/v1alpha2/namespaces/{applied}"
    assert api.request("GET", f"{path}/virtualdisks", timeout_s=TIMEOUT_S)
    for refused in (
        resources.SECRETS.path(applied),
        "/apis/virtualization.deckhouse.io/v1alpha2/namespaces/default/virtualdisks",
    ):
        with pytest.raises(errors.Forbidden):
            api.request("GET", refused, timeout_s=TIMEOUT_S)


def test_the_token_expires(parent: DvpParent, applied: str) -> None:
    """Its time and how to rotate it are printed apart from the kubeconfig."""
    words = ("--component", "dvp-ccm", "--token-hours", "1")
    printed = account(parent, applied, *words)
    line = printed.stderr.splitlines()[0]
    print(line)
    text = line.partition("expires at ")[2].partition(". ")[0]
    until = datetime.datetime.fromisoformat(text)
    left = until - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(minutes=50) < left <= datetime.timedelta(minutes=60)
    assert "create secret generic" in printed.stderr
    token = kube_config.load_text(printed.stdout, "printed kubeconfig").authorization
    assert token is not None
    assert token.removeprefix("Bearer ") not in printed.stderr


def test_an_account_that_does_not_exist(parent: DvpParent, applied: str) -> None:
    """One sentence with the name, and no kubeconfig."""
    printed = account(parent, applied, "--account", "absent")
    print(printed.stderr)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert '"absent" not found' in printed.stderr
