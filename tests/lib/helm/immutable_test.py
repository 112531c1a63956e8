"""Fields that cannot be changed: one row per kind and field, with a change that can."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.helm import immutable
from lib.helm.immutable import FieldChange

Document = dict[str, Any]
POD = {"spec": {"containers": [{"name": "x", "image": "x:1"}]}}
SPECS: Mapping[str, Document] = {
    "Job": {"spec": {"template": POD, "backoffLimit": 1}},
    "StatefulSet": {
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "x",
            "replicas": 1,
            "template": POD,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        }
    },
    "Deployment": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}},
    "DaemonSet": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}},
    "Service": {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    "PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    },
    "ConfigMap": {"immutable": True, "data": {"a": "b"}},
    "Secret": {"type": "Opaque", "data": {"a": "Yg=="}},
    "RoleBinding": {"roleRef": {"name": "x"}, "subjects": [{"name": "x"}]},
    "ClusterRoleBinding": {"roleRef": {"name": "x"}, "subjects": [{"name": "x"}]},
}
IMAGE = "spec.template.spec.containers"
# Kind, path that is changed, the new value, the field that is named ("" if none is).
ROWS: tuple[tuple[str, str, object, str], ...] = (
    ("Job", IMAGE, [{"name": "x", "image": "x:2"}], "spec.template"),
    ("Job", "spec.completions", 2, "spec.completions"),
    ("Job", "spec.backoffLimit", 2, ""),
    ("StatefulSet", "spec.volumeClaimTemplates", [], "spec.volumeClaimTemplates"),
    ("StatefulSet", "spec.selector.matchLabels.a", "c", "spec.selector"),
    ("StatefulSet", "spec.serviceName", "y", "spec.serviceName"),
    ("StatefulSet", "spec.podManagementPolicy", "Parallel", "spec.podManagementPolicy"),
    ("StatefulSet", "spec.replicas", 2, ""),
    ("StatefulSet", IMAGE, [], ""),
    ("Deployment", "spec.selector.matchLabels.a", "c", "spec.selector"),
    ("Deployment", IMAGE, [], ""),
    ("DaemonSet", "spec.selector.matchLabels.a", "c", "spec.selector"),
    ("DaemonSet", IMAGE, [], ""),
    ("Service", "spec.clusterIP", None, "spec.clusterIP"),
    ("Service", "spec.clusterIP", "10.0.0.1", "spec.clusterIP"),
    ("Service", "spec.loadBalancerClass", "x", "spec.loadBalancerClass"),
    ("Service", "spec.ports", [{"port": 81}], ""),
    ("Service", "spec.type", "ExternalName", ""),
    ("PersistentVolumeClaim", "spec.storageClassName", "x", "spec.storageClassName"),
    ("PersistentVolumeClaim", "spec.accessModes", ["x"], "spec.accessModes"),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "2Gi", ""),
    ("ConfigMap", "data.a", "c", "data"),
    ("ConfigMap", "immutable", False, "immutable"),
    ("Secret", "type", "x", "type"),
    ("Secret", "data.a", "eA==", ""),
    ("RoleBinding", "roleRef.name", "y", "roleRef"),
    ("RoleBinding", "subjects", [], ""),
    ("ClusterRoleBinding", "roleRef.name", "y", "roleRef"),
    ("ClusterRoleBinding", "subjects", [], ""),
)


def document(kind: str) -> Document:
    own = copy.deepcopy(SPECS[kind])
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **own}


def put(tree: Document, path: str, value: object) -> Document:
    *above, last = path.split(".")
    node = tree
    for key in above:
        node = node[key]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return tree


def text(*documents: Document) -> str:
    return "\n---\n".join(yaml.safe_dump(item) for item in documents)


@pytest.mark.parametrize(("kind", "path", "value", "field"), ROWS)
def test_a_field(kind: str, path: str, value: object, field: str) -> None:
    before, after = document(kind), put(document(kind), path, value)
    expected = (FieldChange(kind, "x", field),) if field else ()
    observed = immutable.changes([text(before)], text(after))
    print(kind, path, observed and immutable.remedy(observed[0]))
    assert observed == expected
    assert immutable.changes([json.dumps(before, indent=1)], text(after)) == expected
    assert immutable.changes([text(before)], text(before)) == ()


def test_each_kind_has_rows_that_can_and_that_cannot_be_changed() -> None:
    rows = {(kind, bool(field)) for kind, _, _, field in ROWS}
    missing = {
        (kind, is_named)
        for kind in immutable.KINDS
        for is_named in (True, False)
        if (kind, is_named) not in rows
    }
    assert missing == {("ConfigMap", False)}, "an immutable one has no such field"


def test_a_mutable_config_map_can_be_changed() -> None:
    before, after = (put(document("ConfigMap"), "immutable", None) for _ in range(2))
    assert immutable.changes([text(before)], text(put(after, "data.a", "c"))) == ()


def test_the_jobs_of_hooks_are_left_to_helm() -> None:
    before, after = document("Job"), put(document("Job"), IMAGE, [])
    for item in (before, after):
        item["metadata"]["annotations"] = {immutable.HOOK: "post-install"}
    assert immutable.changes([text(before)], text(after)) == ()


def test_what_is_added_or_removed_is_no_change() -> None:
    job, service = document("Job"), document("Service")
    assert immutable.changes([text(job)], text(service)) == ()
    assert immutable.changes([], text(job)) == ()


def test_a_failed_revision_does_not_hide_what_is_deployed() -> None:
    """The Job may be of either: the newer revision may not have reached it."""
    before, after = document("Job"), put(document("Job"), IMAGE, [])
    observed = immutable.changes([text(after), text(before)], text(after))
    assert observed == (FieldChange("Job", "x", "spec.template"),)


def test_a_claim_is_never_to_be_deleted() -> None:
    words = immutable.remedy(FieldChange("PersistentVolumeClaim", "x", "spec"))
    assert "delete the" not in words
    words = immutable.remedy(FieldChange("StatefulSet", "x", "spec"))
    assert "--cascade=orphan" in words
