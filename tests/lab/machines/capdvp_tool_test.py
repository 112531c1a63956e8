"""The tool for operators on machines of DVP: what is left, and what is missing.

Each leftover in the parent has a row: how it came about, and what `mooring orphans`
reports of it.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import click.testing
import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.dvp import kinds
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane, kube_objects
from lib.lab.run import waiting
from mooring.commands import main
from tests.harness.dvp import dvp_manager, parent_fixtures
from tests.harness.dvp.dvp_parent import (
    CLUSTER,
    CLUSTER_LABEL,
    HOSTNAME_LABEL,
    MANAGED,
    OTHER_CLUSTER,
    DvpParent,
)
from tests.harness.machines.cluster_objects import DVP_MACHINES
from tests.harness.machines.dvp_child import SPACE, SPEC, DvpChild

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

SECRET_TYPE = "provisioning.virtualization.deckhouse.io/cloud-init"
UID_LABEL, KEY_ANNOTATION = "mooring.io/owner-uid", "mooring.io/machine"
CREATED = (kinds.MACHINES, kinds.DISKS, resources.SECRETS)
ORPHANS = ("orphans", "--kind=machine", "--min-age=0s", "--output=json")
Json = dict[str, Any]


class Stage:
    """A child with a machine that capdvp has created, and its parent."""

    def __init__(self, child: DvpChild, parent: DvpParent) -> None:
        self.child = child
        self.parent = parent
        self.in_parent: kube_objects.Objects = parent.objects(child.project)

    def put_vm(self, name: str, uid: str = "") -> None:
        """Create a VM and its boot disk in the parent, as they are left.

        uid: of the machine object; empty: they are of the reference.
        """
        self.parent.machine(self.child.project, name)
        if uid:
            about = {
                "labels": {UID_LABEL: uid},
                "annotations": {KEY_ANNOTATION: f"{SPACE}/{name}"},
            }
            self.in_parent.patch(kinds.MACHINES, name, metadata=about)
            self.in_parent.patch(kinds.DISKS, f"{name}-boot", metadata=about)

    def run(self, *words: str) -> click.testing.Result:
        """Run the tool against child and parent."""
        return run_tool(self.child.where, self.child.project, *words)

    def existing(self) -> set[str]:
        """Kind and name of all objects of the parent's project."""
        return {
            f"{kind.kind} {document['metadata']['name']}"
            for kind in CREATED
            for document in self.in_parent.all(kind)
        }


def run_tool(
    where: places.Places, project: Project, *words: str
) -> click.testing.Result:
    reach = (
        "--cloud=dvp",
        f"--cloud-config={project.kubeconfig}",
        f"--kubeconfig={control_plane.admin_kubeconfig(where)}",
    )
    env = {**dvp_manager.environment(project), "NO_COLOR": "1", "COLUMNS": "400"}
    return click.testing.CliRunner().invoke(main.commands, [*words, *reach], env=env)


@pytest.fixture(scope="module")
def stage(
    where: places.Places, api: client.Api, project: Project, parent: DvpParent
) -> Iterator[Stage]:
    child = DvpChild(where, api, project)
    child.install()
    try:
        child.start()
        child.create_cluster()
        child.provision_cluster()
        child.create_machine("alive")
        waiting.until("a machine", lambda: child.is_provisioned(DVP_MACHINES, "alive"))
        yield Stage(child, parent)
    finally:
        child.stop()


def lost(stage: Stage) -> None:
    """The machine object was deleted without its finalizer."""
    stage.put_vm("lost", "uid-lost")


def released(stage: Stage) -> None:
    """The deletion timed out; a finalizer of another client keeps the object."""
    about = {
        "finalizers": ["example.com/other"],
        "annotations": {"dvp.deckhouse.io/orphaned-vm": "released"},
    }
    objects = stage.child.objects
    spec = {**SPEC, "providerID": "dvp://released"}
    uid = objects.make(DVP_MACHINES, "released", about, spec=spec)["metadata"]["uid"]
    objects.delete(DVP_MACHINES, "released", None)
    stage.put_vm("released", uid)


def of_reference(stage: Stage) -> None:
    """The reference has no label of the machine object."""
    stage.put_vm("old")


def lone_secret(stage: Stage) -> None:
    """Bootstrap data whose VM was deleted."""
    labels = {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: "ghost"}
    stage.in_parent.make(
        resources.SECRETS,
        "cloud-init-ghost",
        {"labels": labels},
        type=SECRET_TYPE,
    )


ROWS: dict[str, tuple[Callable[[Stage], None], tuple[str, ...], str]] = {
    "machine object deleted by force": (
        lost,
        ("VirtualDisk lost-boot", "VirtualMachine lost"),
        "DeckhouseMachine machines/lost does not exist",
    ),
    "released after the time limit": (
        released,
        ("VirtualDisk released-boot", "VirtualMachine released"),
        "DeckhouseMachine machines/released was released",
    ),
    "of the reference": (
        of_reference,
        ("VirtualDisk old-boot", "VirtualMachine old"),
        "DeckhouseMachine old does not exist",
    ),
    "Secret of a VM that was deleted": (
        lone_secret,
        ("Secret cloud-init-ghost",),
        "DeckhouseMachine ghost does not exist",
    ),
}


def listed(rows: list[Json]) -> dict[str, str]:
    """Name and reason of each row of the tool's document."""
    return {row["name"]: row["reason"] for row in rows}


def test_leftovers_of_machines_are_found_and_deleted(stage: Stage) -> None:
    for arrange, _, _ in ROWS.values():
        arrange(stage)
    # Look-alikes: of Terraform, of another cluster in the project, a volume of CSI.
    stage.parent.machine(stage.child.project, "master-0", name="master-0-abc123")
    stage.parent.machine(stage.child.project, "theirs", cluster=OTHER_CLUSTER)
    volume = {"persistentVolumeClaim": {"size": "1Gi"}}
    labels = {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: ""}
    stage.in_parent.make(kinds.DISKS, "pvc-1", {"labels": labels}, spec=volume)
    before = stage.existing()
    result = stage.run(*ORPHANS)
    assert result.exit_code == 3, result.output
    document = json.loads(result.stdout)
    orphans = listed(document["orphans"])
    names: set[str] = set()
    for what, (_, expected, reason) in ROWS.items():
        print(f"{what:34} {', '.join(expected)}: {reason}")
        for name in expected:
            short = name.rpartition(" ")[2]
            assert reason in orphans.get(short, f"{name} is not listed"), orphans
            names.add(short)
    assert set(orphans) == names
    assert document["unknown"] == []
    not_owned = listed(document["not_owned"])
    print("not owned:", not_owned)
    assert set(not_owned) == {"master-0-abc123", "master-0-abc123-boot"}
    deleted = stage.run(*ORPHANS, "--delete", "--yes")
    assert deleted.exit_code == 0, deleted.output
    gone = {name for _, expected, _ in ROWS.values() for name in expected}
    assert before - stage.existing() == gone
    assert stage.run(*ORPHANS).exit_code == 0


GOOD = (
    r"OK .* Cluster API serves v1beta2; 4 CRDs with \S+/v1beta2",
    r"OK .* capdvp 0\.1\.0 runs as kube-system/capdvp",
    r"OK .* system:serviceaccount:kube-system:capdvp has all \d+ permissions",
    r"OK .* capdvp: all 33",
)
CRD = "deckhousemachines.infrastructure.cluster.x-k8s.io"
CONTRACT = "cluster.x-k8s.io/v1beta2"


def deployment() -> Json:
    """Return the spec of a Deployment of the chart, as far as the doctor reads it."""
    labels = {"app.kubernetes.io/name": "capdvp"}
    container = {"name": "capdvp", "image": "registry.invalid/capdvp:0.1.0"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"selector": {"matchLabels": labels}, "template": template}


def test_the_doctor_checks_capdvp_in_child_and_parent(stage: Stage) -> None:
    system = kube_objects.Objects(stage.child.api, "kube-system")
    labels = {"labels": {"app.kubernetes.io/name": "capdvp"}}
    system.make(resources.DEPLOYMENTS, "capdvp", labels, spec=deployment())
    good = stage.run("doctor", "ccm").output
    print(good)
    for line in GOOD:
        assert re.search(line, good), line
    role = system.get(resources.CLUSTER_ROLES, "capdvp")
    assert role is not None
    system.patch(resources.CLUSTER_ROLES, "capdvp", rules=role["rules"][1:])
    system.patch(resources.DEFINITIONS, CRD, metadata={"labels": {CONTRACT: None}})
    try:
        bad = stage.run("doctor", "ccm").output
    finally:
        system.patch(resources.CLUSTER_ROLES, "capdvp", rules=role["rules"])
        system.patch(
            resources.DEFINITIONS, CRD, metadata={"labels": {CONTRACT: "v1alpha1"}}
        )
    print(*[line for line in bad.splitlines() if "Cluster API" in line], sep="\n")
    assert f'CRD {CRD}: label {CONTRACT} is ""' in bad
    for verb in ("get", "list", "watch", "patch"):
        assert f"kube-system:capdvp cannot {verb} deckhousemachines." in bad
