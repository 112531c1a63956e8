"""Each component gets its verbs and no others; the page of permissions has the same."""

import base64
import pathlib
import re
from typing import Any

import pytest

from lib.discovery.dvp import kubeconfig_text, parent_rbac

PAGE = pathlib.Path("docs/dvp.md")
ROW = re.compile(r"\| ([a-z-]+)(?:, \w+)? \| ([^|]+) \| ([^|]+) \|")


def rows() -> dict[str, dict[str, set[str]]]:
    """Return the page's table: verbs by component and resource."""
    section = (
        PAGE.read_text().split("## Permissions in the parent")[1].split("\n## ")[0]
    )
    table: dict[str, dict[str, set[str]]] = {}
    for component, resources, verbs in ROW.findall(section):
        if component in parent_rbac.COMPONENTS:
            for resource in re.sub(r"\([^)]*\)", "", resources).split(","):
                granted = table.setdefault(component, {})
                names = {verb.strip() for verb in verbs.split(",")}
                granted.setdefault(resource.strip(), set()).update(names)
    return table


def granted(component: str) -> dict[str, set[str]]:
    permissions = parent_rbac.COMPONENTS[component]
    return {
        resource: set(rule.verbs)
        for rule in (*permissions.project, *permissions.cluster)
        for resource in rule.resources
    }


@pytest.mark.parametrize("component", parent_rbac.COMPONENTS)
def test_the_page_has_the_same_verbs(component: str) -> None:
    """A verb that joins the one must join the other."""
    documented = rows()[component]
    for resource, verbs in sorted(granted(component).items()):
        print(f"{component:22} {resource:38} {', '.join(sorted(verbs))}")
    assert documented == granted(component)


def test_each_component_has_its_own_account() -> None:
    """Account, Role and binding; a ClusterRole only where a kind has no namespace."""
    manifests = parent_rbac.manifests("fleet", list(parent_rbac.COMPONENTS))
    kinds = [str(manifest["kind"]) for manifest in manifests]
    assert kinds.count("ServiceAccount") == kinds.count("Role") == 4
    assert kinds.count("ClusterRole") == kinds.count("ClusterRoleBinding") == 2
    for manifest in manifests:
        about: Any = manifest["metadata"]
        is_inside = not str(manifest["kind"]).startswith("Cluster")
        assert about.get("namespace") == ("fleet" if is_inside else None)


def test_components_can_share_an_account() -> None:
    """Bindings are named after it, so that a second child of the project has others."""
    names = ["dvp-ccm", "cloud-data-discoverer"]
    manifests = parent_rbac.manifests("fleet", names, "north")
    accounts = [m for m in manifests if m["kind"] == "ServiceAccount"]
    assert [m["metadata"] for m in accounts] == [
        {"name": "north", "namespace": "fleet"}
    ]
    bindings: Any = [m for m in manifests if str(m["kind"]).endswith("Binding")]
    assert [binding["metadata"]["name"] for binding in bindings] == [
        "north-dvp-ccm",
        "north-cloud-data-discoverer",
        "north-cloud-data-discoverer-fleet",
    ]
    assert {subject["name"] for b in bindings for subject in b["subjects"]} == {"north"}


def test_no_rule_is_a_wildcard() -> None:
    for component in parent_rbac.COMPONENTS:
        assert "*" not in str(granted(component))


def test_a_kubeconfig_needs_no_file() -> None:
    """It is valid where a configuration contains it."""
    document: Any = parent_rbac.kubeconfig(
        "https://parent.example:6443", "PEM", ("fleet", "north"), "s3cr3t"
    )
    text = str(document)
    assert list(kubeconfig_text.problems("kubeconfig", text)) == []
    cluster = document["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
