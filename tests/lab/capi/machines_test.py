"""Machines of a MachineDeployment on DVP, from the first to the last.

Real: the core of Cluster API with its webhooks, API servers of parent and child, capdvp
and dvp-ccm as they are packaged. Simulated: the parent's controllers, and the kubelets.
"""

import collections

from lib.lab.dvp.kinds import GROUP
from tests.harness.kube import audit
from tests.harness.machines import capdvp_replicas, cluster_objects, life
from tests.harness.machines.capi_stage import CapiStage

Right = capdvp_replicas.Right
MIB = 2**20
PROVIDER = "infrastructure.cluster.x-k8s.io"
OWNED = ((GROUP, "virtualmachines"), (GROUP, "virtualdisks"), ("", "secrets"))
NOT_USED_IN_PARENT = {
    # Adoption from the reference; policies of a VM that are changed in place.
    *((group, plural, "patch") for group, plural in OWNED),
    # An object of another owner has the name; a response was lost.
    *((group, plural, "get") for group, plural in OWNED[1:]),
    # Images and snapshots of the project are watched once a machine names one.
    *((GROUP, "virtualimages", verb) for verb in ("list", "watch")),
    *((GROUP, "virtualdisksnapshots", verb) for verb in ("list", "watch")),
    # Machines have one disk, and one volume; see capdvp_rights_test.
    (GROUP, "virtualdisks", "deletecollection"),
    (GROUP, "virtualmachineblockdeviceattachments", "deletecollection"),
}
"""Rights for what does not happen here."""
NOT_USED_IN_CHILD = {
    # When a watch is late.
    (PROVIDER, "deckhouseclusters", "get"),
    (PROVIDER, "deckhousemachines", "get"),
    # Of a second replica, which waits for the Lease.
    ("coordination.k8s.io", "leases", "watch"),
    # Of an Event that is repeated.
    ("", "events", "patch"),
    # Of clients of /metrics, which is not served here.
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}


def used(rows: tuple[audit.Row, ...]) -> set[Right]:
    return {(row.group, _resource(row), row.verb) for row in rows}


def _resource(row: audit.Row) -> str:
    return f"{row.resource}/{row.subresource}" if row.subresource else row.resource


def show(title: str, rows: tuple[audit.Row, ...]) -> None:
    counts = collections.Counter((_resource(row), row.verb, row.code) for row in rows)
    for (resource, verb, code), count in sorted(counts.items()):
        print(f"{title:8} {resource:40} {verb:8} {code} {count:5}")


def test_machines_live_and_end(stage: CapiStage) -> None:
    """Every action of `life.ACTIONS` is a row; the rights are those that are used."""
    lived = life.MachineLife(stage.fleet, stage.kubelets)
    capdvp = stage.capdvp()
    try:
        capdvp.start()
        lived.run(life.ACTIONS)
        process = capdvp.process()
        print(f"RSS of capdvp {process.memory_info().rss / MIB:.0f} MB")
        log = capdvp.log()
    finally:
        capdvp.stop()
    assert [row.action for row in lived.rows] == list(life.ACTIONS)
    assert not stage.duplicates()
    assert cluster_objects.TOKEN not in log
    check_rights(stage)


def check_rights(stage: CapiStage) -> None:
    """Every right is used, but for what does not happen here; none is missing."""
    in_parent = audit.rows(stage.parent.where, stage.account)
    in_child = audit.rows(stage.where, capdvp_replicas.ACCOUNT)
    show("parent", in_parent)
    show("child", in_child)
    of_parent = capdvp_replicas.rights(
        (*capdvp_replicas.PARENT_RULES, *capdvp_replicas.PARENT_CLUSTER_RULES)
    )
    assert of_parent - used(in_parent) <= NOT_USED_IN_PARENT
    assert capdvp_replicas.child_rights() - used(in_child) <= NOT_USED_IN_CHILD
    refused = [row for row in (*in_parent, *in_child) if row.code == 403]
    assert not refused
