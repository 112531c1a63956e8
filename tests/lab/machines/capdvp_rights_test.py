"""Verb by verb: capdvp has the rights that it uses, in its cluster and in the parent.

Both audit logs are compared with the role of the chart and with the list of rights that
`mooring doctor` reviews and docs/dvp.md prints. A right that no row of the scenario
uses needs a reason in `UNUSED`.
"""

import collections
import functools
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.cloud.dvp import needs, ownership
from lib.kube import client, events, resources
from lib.lab import places
from lib.lab.dvp import kinds
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from lib.lab.run import ports, tls, waiting
from tests.harness.dvp import parent_fixtures
from tests.harness.dvp.dvp_parent import (
    CLUSTER,
    CLUSTER_LABEL,
    HOSTNAME_LABEL,
    MANAGED,
    DvpParent,
)
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
    DvpChild,
)

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

SECOND, SECOND_PORT = f"{NAME}-second", 64
NEEDS = needs.COMPONENTS[NAME]
Right = tuple[str, str, str]
"""API group, resource with its subresource, verb."""
LATE = "only when a watch has not shown the own last write for 5 s"
UNUSED_IN_CHILD: Mapping[Right, str] = {
    (INFRASTRUCTURE, DVP_CLUSTERS.plural, "get"): LATE,
    (INFRASTRUCTURE, DVP_MACHINES.plural, "get"): LATE,
}
UNUSED_IN_PARENT: Mapping[Right, str] = {
    (kinds.GROUP, "virtualdisksnapshots", "watch"): "the lab does not serve the kind",
}
LATE_S = 10
"""Time limit of a deletion, of the second replica."""
KEEPER = "example.com/keeps"
"""Finalizer of another client: the object is read after capdvp has released it."""
ORPHANED = "dvp.deckhouse.io/orphaned-"
NEVER = {"liveMigrationPolicy": "Never"}
Json = dict[str, Any]


class RightsStage:
    """A child and its parent, whose user has the rights of capdvp alone."""

    def __init__(self, child: DvpChild, parent: DvpParent) -> None:
        self.child = child
        self.parent = parent
        self.in_parent = parent.objects(child.project)
        self.recorded_s = 0.0

    def reason(self, name: str) -> str:
        """Reason of the condition Ready of a machine."""
        conditions = self.child.status(DVP_MACHINES, name).get("conditions", [])
        rows = [row["reason"] for row in conditions if row["type"] == "Ready"]
        return str(rows[0]) if rows else ""

    def until(self, name: str, reason: str) -> None:
        """Wait until the condition Ready of a machine has a reason."""
        waiting.until(f"{name}: {reason}", lambda: self.reason(name) == reason)

    def delete(self, *names: str) -> None:
        """Delete machines, and wait until they are absent."""
        objects = self.child.objects
        for name in names:
            objects.delete(DVP_MACHINES, name, None)
        for name in names:
            absent = functools.partial(self.is_absent, name)
            waiting.until(f"{name} is deleted", absent)

    def is_absent(self, name: str) -> bool:
        """Report whether a machine does not exist."""
        return self.child.objects.get(DVP_MACHINES, name) is None


@pytest.fixture(scope="module")
def stage(
    where: places.Places, api: client.Api, project: Project, parent: DvpParent
) -> Iterator[RightsStage]:
    rules = [
        {
            "apiGroups": [need.resource.group],
            "resources": [need.resource.plural],
            "verbs": list(need.verbs),
        }
        for need in NEEDS
        if need.resource.namespaced
    ]
    parent.objects(project).patch(resources.ROLES, projects.USER, rules=rules)
    child = DvpChild(where, api, project)
    child.install()
    try:
        child.start(metrics=True)
        yield RightsStage(child, parent)
    finally:
        child.stop(NAME, SECOND)


def live(stage: RightsStage) -> None:
    """A cluster, a template, and a machine with volumes, one attached by hand."""
    child = stage.child
    child.create_cluster()
    child.provision_cluster()
    child.create_template("small")
    child.create_machine("one")
    stage.until("one", "VMRunning")
    attached = {ownership.ATTACHED_VM: "one"}
    for name, labels in (("pvc-1", attached), ("pvc-2", attached), ("pvc-3", {})):
        attach(stage, name, labels)


def attach(stage: RightsStage, name: str, labels: Mapping[str, str]) -> None:
    """Attach a volume to the VM of the machine."""
    disk = {"persistentVolumeClaim": {"size": "1Gi"}}
    stage.in_parent.make(kinds.DISKS, name, spec=disk)
    device = {"kind": "VirtualDisk", "name": name}
    spec = {"virtualMachineName": "one", "blockDeviceRef": device}
    usual = {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: "one"}
    about = {"labels": {**usual, **labels}}
    attachment, project_ = f"vmbda-{name}", stage.child.project
    stage.in_parent.make(kinds.ATTACHMENTS, attachment, about, spec=spec)
    stage.parent.wait_phase(kinds.ATTACHMENTS, project_, attachment, "Attached")


def adopt(stage: RightsStage) -> None:
    """A machine of the reference: its VM, disks and Secret get the own labels."""
    stage.parent.machine(stage.child.project, "old")
    labels = {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: "old"}
    stage.in_parent.make(
        resources.SECRETS,
        "cloud-init-old",
        {"labels": labels},
        type="provisioning.virtualization.deckhouse.io/cloud-init",
    )
    stage.child.create_machine("old", providerID="dvp://old")

    def is_adopted(kind: Any, name: str) -> bool:
        about = (stage.in_parent.get(kind, name) or {"metadata": {}})["metadata"]
        return "mooring.io/owner-uid" in about.get("labels", {})

    for kind, name in (
        (kinds.MACHINES, "old"),
        (kinds.DISKS, "old-boot"),
        (resources.SECRETS, "cloud-init-old"),
    ):
        adopted = functools.partial(is_adopted, kind, name)
        waiting.until(f"{name}: adopted", adopted)


def meet_others(stage: RightsStage) -> None:
    """Names of a Secret and of a disk are taken by objects that no watch shows."""
    stage.in_parent.make(resources.SECRETS, "cloud-init-taken")
    stage.child.create_machine("taken")
    stage.until("taken", "VMNotOwned")
    disk = {"persistentVolumeClaim": {"size": "1Gi"}}
    stage.in_parent.make(kinds.DISKS, "held-boot", spec=disk)
    stage.child.create_machine("held")
    stage.until("held", "VMNotOwned")


def record_an_event(stage: RightsStage) -> None:
    """A machine with an invalid field has an Event."""
    stage.child.create_machine("bad", **NEVER)
    stage.until("bad", "InvalidMachineSpec")
    stage.recorded_s = time.monotonic()


def repeat_an_event(stage: RightsStage) -> None:
    """The count of an Event that is recorded again is patched, once a minute."""
    left_s = stage.recorded_s + events.COUNT_EVERY_S + 1 - time.monotonic()
    time.sleep(max(0.0, left_s))
    objects = stage.child.objects
    valid = {"liveMigrationPolicy": "AlwaysSafe", "vmClassName": "late"}
    objects.patch(DVP_MACHINES, "bad", spec=valid)
    stage.until("bad", "PrerequisiteNotReady")
    objects.patch(DVP_MACHINES, "bad", spec=NEVER)
    stage.until("bad", "InvalidMachineSpec")


def require_images(stage: RightsStage) -> None:
    """Images of the other two kinds, which do not exist."""
    for kind in ("VirtualImage", "VirtualDiskSnapshot"):
        name = f"of-{kind.lower()}"
        image = {"kind": kind, "name": "absent"}
        stage.child.create_machine(name, bootDiskImageRef=image)
        waiting.until(f"{name} waits", functools.partial(stage.reason, name))


def read_metrics(stage: RightsStage) -> None:
    """A client of /metrics is authenticated, and its access reviewed."""
    settings = yaml.safe_load(stage.child.kubeconfig.read_text())
    token = settings["users"][0]["user"]["token"]
    url = f"https://{ports.LOOPBACK}:{stage.child.metrics_port}/metrics"
    asked = urllib.request.Request(  # - loopback
        url, headers={"Authorization": f"Bearer {token}"}
    )
    context = tls.unverified()  # self-signed, in memory
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, timeout=30, context=context)
    assert refused.value.code == 403


def take_over(stage: RightsStage) -> None:
    """A second replica leads once the first ends."""
    child = stage.child
    child.start(SECOND, SECOND_PORT, f"--deletion-timeout={LATE_S}s")
    log = child.where.log / f"{SECOND}.log"
    waiting.until(
        "a follower", lambda: "waiting for Lease" in log.read_text(errors="replace")
    )
    child.stop(NAME)
    waiting.until(
        "a new leader", lambda: "became leader" in log.read_text(errors="replace")
    )


def release_late(stage: RightsStage) -> None:
    """A VM does not end: the object is released, with annotations of what is left."""
    objects = stage.child.objects
    stage.child.create_machine("late")
    stage.until("late", "VMRunning")

    def metadata() -> Json:
        about: Json = (objects.get(DVP_MACHINES, "late") or {}).get("metadata", {})
        return about

    kept = [*metadata()["finalizers"], KEEPER]
    objects.patch(DVP_MACHINES, "late", metadata={"finalizers": kept})
    with stage.parent.holding("machine-gone late"):
        objects.delete(DVP_MACHINES, "late", None)
        took_s = waiting.until(
            "it is released", lambda: metadata()["finalizers"] == [KEEPER]
        )
        assert stage.in_parent.get(kinds.MACHINES, "late") is not None
    marked = {
        key.removeprefix(ORPHANED): value
        for key, value in metadata()["annotations"].items()
        if key.startswith(ORPHANED)
    }
    print(f"released after {took_s:.0f} s: {marked}")
    assert took_s >= LATE_S - 2
    assert marked.pop("vm") == "late"
    assert marked.pop("vm-timestamp")
    assert set(marked.values()) == {"late-boot", "late-additional-disk-0"}
    objects.patch(DVP_MACHINES, "late", metadata={"finalizers": None})
    waiting.until("it is deleted", lambda: stage.is_absent("late"))


def end(stage: RightsStage) -> None:
    """All machines and the cluster are deleted."""
    names = [m["metadata"]["name"] for m in stage.child.objects.all(DVP_MACHINES)]
    stage.delete(*names)
    objects = stage.child.objects
    objects.delete(DVP_CLUSTERS, "one", None)
    waiting.until("no cluster", lambda: objects.get(DVP_CLUSTERS, "one") is None)


SCENARIO = (
    *(live, record_an_event, adopt, meet_others),
    *(require_images, read_metrics, repeat_an_event, take_over, release_late, end),
)


def test_each_verb_that_is_granted_is_used(stage: RightsStage) -> None:
    for act in SCENARIO:
        print(f"{act.__name__:16} {act.__doc__}")
        act(stage)
    # A watch is in an audit log once it has ended.
    stage.child.stop(NAME, SECOND)
    stage.parent.settled(stage.child.project)
    in_child = audit.rows(stage.child.where, ACCOUNT)
    in_parent = stage.parent.requests(stage.child.project)
    wrong = [
        *compare("child", child_rights(), in_child, UNUSED_IN_CHILD),
        *compare("parent", granted_in_parent(), in_parent, UNUSED_IN_PARENT),
    ]
    assert not wrong


def granted_in_parent() -> set[Right]:
    return {
        (need.resource.group, need.resource.plural, verb)
        for need in NEEDS
        for verb in need.verbs
    }


def compare(
    where: str,
    granted: set[Right],
    rows: Iterable[audit.Row],
    unused: Mapping[Right, str],
) -> Iterator[str]:
    """Print a line for each right; yield what is wrong."""
    counts: collections.Counter[Right] = collections.Counter()
    for row in rows:
        if not row.resource:
            continue
        whole = "/".join(filter(None, (row.resource, row.subresource)))
        counts[row.group, whole, row.verb] += 1
        if row.code == 403:
            yield f"{where}: refused: {row.verb} {whole}"
    for right in sorted(granted | set(counts)):
        state = "granted" if right in granted else "NOT GRANTED"
        reason = unused.get(right, "") if not counts[right] else ""
        print(f"{where:6} {' '.join(right):70} {state:11} {counts[right]:4} {reason}")
        if right not in granted:
            yield f"{where}: used, not granted: {right}"
        elif not counts[right] and not reason:
            yield f"{where}: granted, not used: {right}"
