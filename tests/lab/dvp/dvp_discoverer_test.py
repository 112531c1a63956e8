"""The packaged cloud-data-discoverer with a parent of DVP and a real child API server.

It has the rights of its chart in the child, and those of docs/dvp.md in the parent.
"""

import base64
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.kube import client, resources
from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import discoverer
from lib.lab.daemons.discoverer import Daemon
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import DISKS
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane, kube_objects
from lib.lab.run import processes, waiting
from tests.harness.dvp import dvp_manager, dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.faulty_parent import FaultyParent
from tests.harness.faults.tcp_proxy import TcpProxy
from tests.harness.kube import audit

SYSTEM = "kube-system"
INPUT = ("d8-provider-cluster-configuration", "cloud-provider-discovery-data.json")
INSTALLED: Mapping[str, object] = {
    "layout": "Standard",
    "zones": ["a", "b"],
    "storageClasses": [
        {"name": "only-installed", "reclaimPolicy": "Retain", "isDefault": True},
        {"name": projects.STORAGE, "reclaimPolicy": "Retain"},
    ],
}
SKIPPED, KEPT = "not-for-children", "archive"
FLAGS = (
    "--cloud=dvp",
    "--manage-storage-classes",
    "--discovery-period=1s",
    "--orphaned-disk-min-age=3s",
)
PROVISIONER, PARAMETER = "csi.dvp.deckhouse.io", "dvpStorageClass"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
CLUSTER_ROLE = "lab-project-user"
CYCLES = 4
ORPHANED = "cloud_data_discovery_orphaned_disk_info"
REQUEST_ERROR = "cloud_data_discovery_cloud_request_error"
CLASSES = resources.STORAGE_CLASSES
GRANTED: tuple[tuple[Resource, tuple[str, ...]], ...] = (
    (DISKS, ("list",)),
    (CLASSES, ("get", "list")),
)
"""Rights in the parent, as docs/dvp.md lists them."""
Json = dict[str, Any]


class Discovery:
    """A parent with classes and disks, and what is published in the child."""

    def __init__(self, parent: DvpParent, project: Project, api: client.Api) -> None:
        self.parent, self.project = parent, project
        self.objects = parent.objects(project)
        self.child = kube_objects.Objects(api, SYSTEM)

    def add_class(self, name: str, **more: Any) -> None:
        """Create a class of the parent."""
        meta = {"annotations": more.pop("annotations", {})}
        fields = {"volumeBindingMode": "Immediate", "allowVolumeExpansion": True}
        self.objects.make(CLASSES, name, meta, provisioner="x", **(fields | more))

    def add_disk(self, name: str, cluster: str = dvp_parent.CLUSTER) -> None:
        """Create a disk as csi-controller creates it."""
        labels = {
            **dvp_parent.MANAGED,
            dvp_parent.CLUSTER_LABEL: cluster,
            dvp_parent.HOSTNAME_LABEL: "",
            "virtualDiskName": name,
        }
        claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": "1Gi"}
        spec = {"persistentVolumeClaim": claim}
        self.objects.make(DISKS, name, {"labels": labels}, spec=spec)
        self.parent.wait_phase(DISKS, self.project, name, "Ready")

    def seed(self) -> None:
        """Create classes, disks, a VM, and PersistentVolumes for one of the disks."""
        skip = {"cloud-provider.deckhouse.io/skip-storage-class": "True"}
        self.add_class(SKIPPED, annotations=skip)
        self.add_class(KEPT, reclaimPolicy="Retain", allowVolumeExpansion=False)
        for name in ("pvc-known", "pvc-lost"):
            self.add_disk(name)
        self.add_disk("pvc-theirs", dvp_parent.OTHER_CLUSTER)
        self.parent.machine(self.project, "node-1")
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": PROVISIONER, "volumeHandle": "pvc-known"},
        }
        self.child.make(resources.PERSISTENT_VOLUMES, "pvc-known", spec=spec)

    def published(self) -> Json:
        """Return the discovery document of the child."""
        name, key = discoverer.DATA
        secret = self.child.get(resources.SECRETS, name) or {}
        text = secret.get("data", {}).get(key, "")
        return dict(json.loads(base64.b64decode(text) or "{}"))

    def expected(self) -> Json:
        """Return the document that the parent's classes result in, by the facts."""
        stored: Any = INSTALLED["storageClasses"]
        entries = {row["name"]: {**row} for row in stored}
        for row in entries.values():
            row.pop("isDefault", None)
        for item in self.objects.all(CLASSES):
            entries[item["metadata"]["name"]] = entry(item)
        return {
            "apiVersion": "deckhouse.io/v1",
            "kind": "DVPCloudDiscoveryData",
            "layout": "Standard",
            "zones": ["a", "b"],
            "storageClasses": [entries[name] for name in sorted(entries)],
        }

    def classes(self) -> dict[str, Json]:
        """Return the StorageClasses of the child that the discoverer keeps."""
        return {
            item["metadata"]["name"]: item
            for item in self.child.all(CLASSES)
            if item["provisioner"] == PROVISIONER
        }

    def default(self) -> list[str]:
        """Return the names of the default classes of the child."""
        return [
            name
            for name, item in self.classes().items()
            if item["metadata"].get("annotations", {}).get(IS_DEFAULT) == "true"
        ]

    def cycles(self) -> int:
        """Return how often the disks of the parent were listed."""
        rows = self.parent.requests(self.project)
        return sum(row.resource == DISKS.plural for row in rows)

    def wait_for_cycles(self, number: int) -> None:
        """Return after some more cycles."""
        until = self.cycles() + number
        waiting.until(f"{number} cycles", lambda: self.cycles() >= until)


def entry(item: Json) -> Json:
    """Return the entry of a class of the parent, without empty fields."""
    annotations = item["metadata"].get("annotations", {})
    key = "cloud-provider.deckhouse.io/skip-storage-class"
    is_skipped = annotations.get(key, "").lower() == "true"
    whole = {
        "name": item["metadata"]["name"],
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": item.get("reclaimPolicy", "Delete"),
        "allowVolumeExpansion": item.get("allowVolumeExpansion", False),
        "isEnabled": not is_skipped,
        "isDefault": annotations.get(IS_DEFAULT) == "true" and not is_skipped,
    }
    return {name: value for name, value in whole.items() if value}


@pytest.fixture(scope="module")
def discovery(
    parent: DvpParent, project: Project, where: places.Places, api: client.Api
) -> Iterator[Discovery]:
    """Fill parent and child; leave the project's user the documented rights alone."""
    new = Discovery(parent, project, api)
    discoverer.install(where, INSTALLED)
    rights = discoverer.permissions(reader=False)
    control_plane.apply_manifests(where, rights)
    new.seed()
    role = new.objects.get(resources.ROLES, projects.USER) or {}
    whole = new.objects.get(resources.CLUSTER_ROLES, CLUSTER_ROLE) or {}
    (disks, classes) = ([rule(kind, verbs)] for kind, verbs in GRANTED)
    new.objects.patch(resources.ROLES, projects.USER, rules=disks)
    new.objects.patch(resources.CLUSTER_ROLES, CLUSTER_ROLE, rules=classes)
    yield new
    new.objects.patch(resources.ROLES, projects.USER, rules=role["rules"])
    new.objects.patch(resources.CLUSTER_ROLES, CLUSTER_ROLE, rules=whole["rules"])
    for name in (SKIPPED, KEPT):
        new.objects.delete(CLASSES, name)
    new.child.delete(resources.PERSISTENT_VOLUMES, "pvc-known")
    for name in new.classes():
        new.child.delete(CLASSES, name)


def rule(kind: Resource, verbs: tuple[str, ...]) -> Json:
    """Return a rule of a role."""
    about = {"apiGroups": [kind.group], "resources": [kind.plural]}
    return {**about, "verbs": list(verbs)}


@pytest.fixture(scope="module")
def proxied(
    parent: DvpParent, project: Project
) -> Iterator[tuple[TcpProxy, pathlib.Path]]:
    """Run a proxy in front of the parent, and a kubeconfig that names it."""
    with parent.proxied(project) as pair:
        yield pair


@pytest.fixture(scope="module")
def daemon(
    discovery: Discovery,
    where: places.Places,
    proxied: tuple[TcpProxy, pathlib.Path],
) -> Iterator[Daemon]:
    env = dvp_manager.environment(discovery.project)
    words = (*FLAGS, f"--parent-kubeconfig={proxied[1]}")
    pex = pexes.beside(discoverer.NAME)
    with discoverer.running(where, pex, discoverer.NAME, env, words) as running:
        discovery.wait_for_cycles(1)
        yield running


def failing(daemon: Daemon) -> frozenset[str]:
    """Return the steps that fail."""
    return daemon.raised("mooring_discovery_step_error", "step")


def test_classes_are_published_and_kept(daemon: Daemon, discovery: Discovery) -> None:
    """The Secret by the merge rules; a StorageClass for each that is enabled."""
    waiting.until("the document", lambda: discovery.published() == discovery.expected())
    print(json.dumps(discovery.published(), indent=1))
    names = {projects.STORAGE, projects.STORAGE_AT_ONCE, projects.STORAGE_FIXED, KEPT}
    waiting.until("the classes", lambda: set(discovery.classes()) == names)
    for name, item in sorted(discovery.classes().items()):
        print(name, item["parameters"], item["volumeBindingMode"])
        assert item["parameters"] == {PARAMETER: name}
        assert item["volumeBindingMode"] == "WaitForFirstConsumer"
    kept = discovery.classes()[KEPT]
    assert (kept["reclaimPolicy"], kept["allowVolumeExpansion"]) == ("Retain", False)
    assert discovery.classes()[projects.STORAGE]["allowVolumeExpansion"] is True
    waiting.until("a default", lambda: discovery.default() == [projects.STORAGE])
    assert failing(daemon) == set()
    assert daemon.ask("/healthz") == (200, "ok")


def test_a_disk_without_a_volume_is_reported(
    daemon: Daemon, discovery: Discovery
) -> None:
    """Neither one of a PersistentVolume, nor of a VM, nor of another child."""
    expected = (({"id": "pvc-lost", "name": "pvc-lost"}, 1.0),)
    waiting.until("the orphan", lambda: daemon.samples(ORPHANED) == expected)
    present = {disk["metadata"]["name"] for disk in discovery.objects.all(DISKS)}
    assert present == {"pvc-known", "pvc-lost", "pvc-theirs", "node-1-boot"}


def test_a_cycle_is_two_requests(
    daemon: Daemon, discovery: Discovery, where: places.Places
) -> None:
    """By the audit logs: nothing is watched, and nothing is written at rest."""
    waiting.until("settled", lambda: discovery.default() == [projects.STORAGE])
    before, wrote = discovery.parent.requests(discovery.project), writes(where)
    cycles = discovery.cycles()
    discovery.wait_for_cycles(CYCLES)
    rows = discovery.parent.requests(discovery.project)[len(before) :]
    listed = [f"{row.verb} {row.resource}" for row in rows]
    counts = {text: listed.count(text) for text in sorted(set(listed))}
    print(f"{discovery.cycles() - cycles} cycles: {counts}")
    assert set(counts) == {"list storageclasses", "list virtualdisks"}
    assert abs(counts["list storageclasses"] - counts["list virtualdisks"]) <= 1
    assert writes(where) == wrote
    assert failing(daemon) == set()


def writes(where: places.Places) -> int:
    """Count the writes of the discoverer in the child."""
    rows = audit.rows(where, discoverer.ACCOUNT)
    return sum(row.verb not in ("get", "list", "watch", "create") for row in rows)


def test_a_deleted_class_is_removed(daemon: Daemon, discovery: Discovery) -> None:
    """The absence is confirmed by a read of the class; the default class follows."""
    discovery.objects.delete(CLASSES, KEPT)
    waiting.until("it is removed", lambda: KEPT not in discovery.classes())
    waiting.until(
        "and published", lambda: discovery.published() == discovery.expected()
    )
    assert failing(daemon) == set()


def test_the_parent_may_be_down_for_cycles(
    daemon: Daemon, discovery: Discovery, proxied: tuple[TcpProxy, pathlib.Path]
) -> None:
    """What was published stays; metrics show what fails; it is used again by itself."""
    before = (discovery.published(), set(discovery.classes()), discovery.default())
    with proxied[0].shut():
        waiting.until(
            "the failures are shown",
            lambda: failing(daemon) >= {"discovery_data", "orphaned_disks"},
        )
        steps = failing(daemon)
        types = daemon.raised(REQUEST_ERROR, "type")
        passes = daemon.passes()
        waiting.until("more attempts", lambda: daemon.passes() >= passes + 6)
        assert daemon.ask("/healthz") == (200, "ok")
        now = (discovery.published(), set(discovery.classes()), discovery.default())
        assert now == before
    seconds = waiting.until("the parent is used again", lambda: not failing(daemon))
    print(
        f"failing steps: {', '.join(sorted(steps))}; types: {', '.join(sorted(types))}"
    )
    print(f"used again after {seconds:.1f} s")
    assert types == {"discovery_data", "disks_meta"}
    now = (discovery.published(), set(discovery.classes()), discovery.default())
    assert now == before


def test_rights_are_those_that_are_documented(
    daemon: Daemon, discovery: Discovery, where: places.Places
) -> None:
    """In the parent exactly those; in the child none that the chart does not grant."""
    del daemon
    rows = discovery.parent.requests(discovery.project)
    used = {(row.resource, row.verb) for row in rows if row.resource}
    print("parent:", *sorted(f"{verb} {resource}" for resource, verb in used))
    assert used == {(kind.plural, verb) for kind, verbs in GRANTED for verb in verbs}
    assert not [row for row in rows if row.code in (401, 403)]
    child = audit.rows(where, discoverer.ACCOUNT)
    assert not [row for row in child if row.code in (401, 403)]
    granted = rights()
    needed = {(row.verb, row.resource) for row in child if row.resource}
    print("child:", *sorted(" ".join(pair) for pair in needed))
    assert needed <= granted
    unused = granted - needed
    print("granted and not used:", *sorted(" ".join(pair) for pair in unused))


def test_a_rotated_token_needs_no_restart(
    daemon: Daemon,
    discovery: Discovery,
    where: places.Places,
    proxied: tuple[TcpProxy, pathlib.Path],
) -> None:
    """The old token is invalid; that of the file is used at the next cycle."""
    process = processes.find(where, discoverer.NAME)
    assert process is not None
    with FaultyParent(discovery.parent, discovery.project, *proxied).revoked():
        waiting.until(
            "the failures are shown",
            lambda: failing(daemon) >= {"discovery_data", "orphaned_disks"},
        )
    seconds = waiting.until("the new token is used", lambda: not failing(daemon))
    print(f"new token used after {seconds:.1f} s")
    assert process.is_running(), "restarted"


def rights() -> set[tuple[str, str]]:
    """Return verb and resource of what the chart's roles allow in the child."""
    return {
        (verb, resource)
        for role in yaml.safe_load_all(discoverer.permissions(reader=False))
        if role["kind"] in ("Role", "ClusterRole")
        for row in role["rules"]
        for verb in row["verbs"]
        for resource in row["resources"]
    }
