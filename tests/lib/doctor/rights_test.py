"""The rights of a manifest, and how one asks whether they are there."""

import json

import pytest

from lib.doctor import rights
from lib.doctor.model import DaemonAccount, Right
from lib.kube import resources

MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, namespace: ns}
---
kind: ClusterRole
metadata: {name: a}
rules:
  - {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
  - {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
  - {nonResourceURLs: [/metrics], verbs: [get]}
---
kind: Role
metadata: {name: a, namespace: ns}
rules:
  - {apiGroups: [""], resources: [secrets], resourceNames: [s], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: a}
"""


def test_every_combination_is_one_right() -> None:
    """Groups, resources, names and verbs are multiplied out; a Role is of its place."""
    assert rights.parse(MANIFEST) == (
        Right("create", "", "events"),
        Right("patch", "", "events"),
        Right("create", "events.k8s.io", "events"),
        Right("patch", "events.k8s.io", "events"),
        Right("patch", "", "nodes", "status"),
        Right("get", "", "secrets", "", "ns", "s"),
    )


def test_the_manifest_of_the_chart_is_shipped() -> None:
    """All that its one ClusterRole says, and nothing twice."""
    parsed = rights.parse(rights.manifest("openstack-ccm"))
    print("\n".join(map(str, parsed)))
    assert Right("delete", "", "nodes") in parsed
    assert Right("update", "coordination.k8s.io", "leases") in parsed
    assert len(set(parsed)) == len(parsed)


@pytest.mark.parametrize(
    "text", ["", "a: [", "- 1", "kind: Role", "kind: Role\nrules: 7"]
)
def test_what_holds_no_rights_is_refused(text: str) -> None:
    with pytest.raises(rights.ManifestError):
        rights.parse(text)


def test_the_question_is_about_oneself_or_about_an_account() -> None:
    right = Right("get", "g", "things", "status", "ns", "n")
    own = json.loads(rights.review(right, None))
    assert own["kind"] == "SelfSubjectAccessReview"
    assert rights.kind_of_review(None) == resources.SELF_SUBJECT_ACCESS_REVIEWS
    attributes = {
        "verb": "get",
        "group": "g",
        "resource": "things",
        "subresource": "status",
        "namespace": "ns",
        "name": "n",
    }
    assert own["spec"] == {"resourceAttributes": attributes}
    account = DaemonAccount("kube-system", "ccm")
    others = json.loads(rights.review(right, account))
    assert others["kind"] == "SubjectAccessReview"
    assert others["spec"]["user"] == "system:serviceaccount:kube-system:ccm"
    assert "system:serviceaccounts:kube-system" in others["spec"]["groups"]


def test_only_a_clear_yes_allows() -> None:
    assert rights.is_allowed(b'{"status": {"allowed": true}}')
    assert not rights.is_allowed(b'{"status": {"denied": true}}')


def test_only_the_rights_of_one_role() -> None:
    """Roles that are aggregated to those of others are not the component's own."""
    text = rights.manifest("capdvp")
    own, every = set(rights.parse(text, "capdvp")), set(rights.parse(text))
    assert {right.verb for right in every - own} == {
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
    }
    assert own < every
