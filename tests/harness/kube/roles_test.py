"""Roles are read as one row for each object and verb."""

from tests.harness.kube import roles

RULES = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["one"],
        "verbs": ["get", "update"],
    },
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]


def test_each_object_and_verb_is_a_row() -> None:
    assert roles.rights([{"rules": RULES[:1]}, {"rules": RULES[1:]}]) == {
        ("", "nodes", "get", ""),
        ("", "pods", "get", ""),
        ("", "secrets", "get", "one"),
        ("", "secrets", "update", "one"),
    }
