"""capdvp with the roles of its chart: a Machine becomes a VM, and leaves nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.dvp import kinds
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp import dvp_parent, parent_fixtures
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.kube import audit
from tests.harness.machines.capdvp_replicas import child_rights
from tests.harness.machines.cluster_objects import (
    DVP_CLUSTERS,
    DVP_MACHINES,
    INFRASTRUCTURE,
)
from tests.harness.machines.dvp_child import (
    ACCOUNT,
    NAME,
    SECRET,
    TEMPLATES,
    DvpChild,
)

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

SHAPE = {
    "capacity": {"cpu": "1", "memory": "256Mi"},
    "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
}
OF_DVP = (
    *(kinds.MACHINES, kinds.DISKS, kinds.ATTACHMENTS),
    resources.SECRETS,
)


def owned(parent: DvpParent, project: Project, uuid: str) -> list[str]:
    """Kind and name of each object of the parent with the label of a cluster."""
    objects = parent.objects(project)
    return sorted(
        f"{kind.kind} {item['metadata']['name']}"
        for kind in OF_DVP
        for item in objects.all(kind)
        if (item["metadata"].get("labels") or {}).get(dvp_parent.CLUSTER_LABEL) == uuid
    )


def ghost(parent: DvpParent, project: Project, uuid: str) -> None:
    """Create the Secret of a machine that does not exist."""
    labels = {
        "deckhouse.io/managed-by": "deckhouse",
        dvp_parent.CLUSTER_LABEL: uuid,
        "dvp.deckhouse.io/hostname": f"ghost-{uuid[-1]}",
    }
    name = f"cloud-init-ghost-{uuid[-1]}"
    type_ = "provisioning.virtualization.deckhouse.io/cloud-init"
    parent.objects(project).make(
        resources.SECRETS, name, {"labels": labels}, type=type_
    )


@pytest.fixture(scope="module")
def child(
    where: places.Places, api: client.Api, project: Project
) -> Iterator[DvpChild]:
    opened = DvpChild(where, api, project)
    opened.install()
    try:
        opened.start()
        yield opened
    finally:
        opened.stop()


def test_a_machine_from_objects_to_a_vm_and_back(
    child: DvpChild, parent: DvpParent, project: Project
) -> None:
    rows: list[tuple[str, float]] = []

    def until(what: str, is_met: Any) -> None:
        rows.append((what, waiting.until(what, is_met)))

    child.create_cluster()
    until("cluster", lambda: child.is_provisioned(DVP_CLUSTERS, "one"))
    infrastructure = child.objects.get(DVP_CLUSTERS, "one")
    assert infrastructure is not None
    endpoint = infrastructure["spec"]["controlPlaneEndpoint"]
    assert endpoint["port"] == child.where.port("apiserver")
    assert child.status(DVP_CLUSTERS, "one")["failureDomains"][0]["name"] == "zone-a"
    child.create_template("small")
    until("template", lambda: child.status(TEMPLATES, "small") == SHAPE)
    child.create_machine("one")

    def reasons() -> list[str]:
        conditions = child.status(DVP_MACHINES, "one").get("conditions", [])
        return [row["reason"] for row in conditions if row["type"] == "Ready"]

    until("waits", lambda: reasons() == ["WaitingForClusterInfrastructure"])
    assert owned(parent, project, dvp_parent.CLUSTER) == []
    child.provision_cluster()
    until("VM", lambda: child.is_provisioned(DVP_MACHINES, "one"))
    machine = child.objects.get(DVP_MACHINES, "one")
    assert machine is not None
    assert machine["spec"]["providerID"] == "dvp://one"
    types = [row["type"] for row in machine["status"]["addresses"]]
    assert types == ["Hostname", "InternalDNS", "InternalIP", "ExternalIP"]
    assert machine["status"]["ready"] is True
    created = owned(parent, project, dvp_parent.CLUSTER)
    print(", ".join(created))
    assert created == [
        "Secret cloud-init-one",
        "VirtualDisk one-additional-disk-0",
        "VirtualDisk one-boot",
        "VirtualMachine one",
    ]
    assert SECRET not in json.dumps(machine)
    assert SECRET not in (child.where.log / f"{NAME}.log").read_text()
    before = _writes(child, parent, project)
    print(f"writes so far: {before[0]} of the child, {before[1]} of the parent")
    child.stop()
    child.start()
    _quiet(child, parent, project)
    assert _writes(child, parent, project) == before
    for uuid in (dvp_parent.CLUSTER, dvp_parent.OTHER_CLUSTER):
        ghost(parent, project, uuid)
    child.objects.delete(DVP_CLUSTERS, "one", None)
    child.objects.delete(DVP_MACHINES, "one", None)
    until("machine gone", lambda: child.objects.get(DVP_MACHINES, "one") is None)
    until("cluster gone", lambda: child.objects.get(DVP_CLUSTERS, "one") is None)
    assert owned(parent, project, dvp_parent.CLUSTER) == []
    assert owned(parent, project, dvp_parent.OTHER_CLUSTER) != []
    for what, took_s in rows:
        print(f"{what:16} {took_s:6.1f} s")
    _check_rights(child)


def _writes(child: DvpChild, parent: DvpParent, project: Project) -> tuple[int, int]:
    reads = ("get", "list", "watch")
    parent.settled(project)
    return (
        sum(row.verb not in reads for row in child.requests()),
        sum(row.verb not in reads for row in parent.requests(project)),
    )


def _quiet(child: DvpChild, parent: DvpParent, project: Project) -> None:
    """Wait until capdvp has had the time to reconcile everything."""
    waiting.until(
        "the cloud is read after the restart",
        lambda: any(row.verb == "list" for row in parent.requests(project)),
    )
    log = child.where.log / f"{NAME}.log"
    waiting.until("leader", lambda: log.read_text().count("became leader") >= 2)
    parent.settled(project)


def _check_rights(child: DvpChild) -> None:
    """No request was refused; each used verb is granted, and each granted one used."""
    rows = audit.rows(child.where, ACCOUNT)
    refused = [row for row in rows if row.code == 403]
    assert refused == []
    used = {
        (row.group, "/".join(filter(None, (row.resource, row.subresource))), row.verb)
        for row in rows
    }
    granted = child_rights()
    for right in sorted(granted):
        print(f"{'used' if right in used else 'not used':8} {' '.join(right)}")
    rare = {
        # When a watch is late; of a follower; for Events; for clients of the metrics.
        ("coordination.k8s.io", "leases", "watch"),
        (INFRASTRUCTURE, DVP_CLUSTERS.plural, "get"),
        (INFRASTRUCTURE, DVP_MACHINES.plural, "get"),
        ("", "events", "create"),
        ("", "events", "patch"),
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    assert used <= granted
    assert granted - used <= rare
