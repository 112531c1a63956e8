"""Rights that the chart grants to the accounts of its pods, against those they use."""

import collections
from collections.abc import Mapping, Sequence

from lib.kube import resources
from tests.harness.kube import audit, roles
from tests.harness.pods import installed_node

Right = tuple[str, str, str]
"""Group, resource (with its subresource) and verb."""
Reasons = Mapping[tuple[str, str, str], str]
"""Why a test needs no such request, by account (empty: any), verb and resource."""

METRICS = "no client requests metrics"
LATE = "an object is read when its watch is late"
SIDECARS = "tests/lab/csi/csi_sidecars_test.py compares the verbs of sidecars"
COMMON: Reasons = {
    ("", "create", "tokenreviews"): METRICS,
    ("", "create", "subjectaccessreviews"): METRICS,
    ("", "patch", "events"): "no Event is repeated",
}


def of_sidecars(account: str) -> Reasons:
    """Return the reasons for what the CSI sidecars do not need for one claim."""
    return {
        (account, verb, name): SIDECARS
        for verb, name in (
            ("get", "persistentvolumes"),
            ("list", "persistentvolumes"),
            ("delete", "persistentvolumes"),
            ("list", "persistentvolumeclaims"),
            ("update", "persistentvolumeclaims"),
            ("list", "csinodes"),
            ("list", "nodes"),
            ("list", "storageclasses"),
            ("list", "volumeattachments"),
            ("get", "volumeattributesclasses"),
            ("list", "volumeattributesclasses"),
            ("watch", "volumeattributesclasses"),
        )
    }


def check_used(
    node: installed_node.InstalledNode,
    namespace: str,
    accounts: Sequence[str],
    reasons: Reasons,
) -> None:
    """Print each right of each account with its number of requests.

    Raises:
        AssertionError: a request was rejected, or a right is unused without a reason.
    """
    unused = []
    for account in accounts:
        rows = [x for x in audit.rows(node.where, (namespace, account)) if x.resource]
        assert [row for row in rows if row.code == 403] == []
        used = collections.Counter(map(_right, rows))
        for right in sorted(granted(node, namespace, account) | set(used)):
            print(f"{account:28} {' '.join(right):70} {used[right]:5}")
            if not used[right]:
                unused.append((account, right[2], right[1]))
    missing = []
    for account, verb, resource in unused:
        reason = reasons.get((account, verb, resource)) or reasons.get(
            ("", verb, resource)
        )
        print(f"unused: {account} {verb} {resource}: {reason}")
        missing += [] if reason else [(account, verb, resource)]
    assert missing == []


def _right(row: audit.Row) -> Right:
    resource = "/".join(filter(None, (row.resource, row.subresource)))
    return row.group, resource, row.verb


def granted(
    node: installed_node.InstalledNode, namespace: str, account: str
) -> set[Right]:
    """Return the rights of the roles that are bound to an account."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    rights: set[Right] = set()
    for binding_kind in (resources.CLUSTER_ROLE_BINDINGS, resources.ROLE_BINDINGS):
        for binding in node.system.all(binding_kind):
            if subject not in binding.get("subjects", ()):
                continue
            name = binding["roleRef"]["name"]
            kinds = (resources.CLUSTER_ROLES, resources.ROLES)
            (kind,) = (x for x in kinds if x.kind == binding["roleRef"]["kind"])
            role = node.system.get(kind, name)
            assert role is not None
            rights |= {right[:3] for right in roles.rights([role])}
    return rights
