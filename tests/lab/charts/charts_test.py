"""The charts, installed, changed and removed by the real helm on a real API server.

Pods are made, and placed at most: there is neither a kubelet nor an image here. What
runs in them is started by other tests, under the rights that are compared here.
"""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import (
    ccm,
    charts,
    cluster,
    control_plane,
    csi,
    definitions,
    discoverer,
    errors,
    helm,
    places,
    processes,
    programs,
    progress,
)

ROOT = pathlib.Path()
T = TypeVar("T")
Document = Mapping[str, Any]
TIMEOUT_S = 10.0
PATIENCE_S = 60.0
FOREIGN = {
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
}
"""Kinds that a chart may ask for and a cluster may lack."""
NEEDS = """
apiVersion: v1
kind: Namespace
metadata: {name: d8-cloud-provider-openstack}
---
apiVersion: v1
kind: Namespace
metadata: {name: d8-monitoring}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: cluster-low}
value: 2000
"""
"""What Deckhouse has in each cluster and the charts build upon."""
RBAC = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
RIGHTS: dict[str, tuple[str, Callable[[Document], str]]] = {
    "cloud-data-discoverer": (
        charts.PLATFORM,
        lambda values: discoverer.permissions(
            manages_classes=values["storageClasses"]["manage"],
            creates_secret=values["createDiscoverySecret"],
            reader=False,
        ),
    ),
    "csi-controller": (
        charts.SYSTEM,
        lambda values: csi.manifest(reads_claims=values["pvcAnnotations"]),
    ),
    "openstack-ccm": (charts.SYSTEM, lambda values: ccm.manifest()),
}
"""By chart: what the tests of its program run it with, and where they do."""
READERS = {
    "openstack-ccm:metrics",
    "access-to-cloud-data-discoverer",
    "access-to-cloud-data-discoverer-role",
    "csi-controller:secrets",
}
"""Permissions for others than the program, or for what only the user can name."""
CSI_DRIVER = ("CSIDriver", "", "cinder.csi.openstack.org")
CSI_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
REFERENCE_DRIVER = """
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: cinder.csi.openstack.org}
spec:
  attachRequired: true
  podInfoOnMount: true
  volumeLifecycleModes: [Persistent, Ephemeral]
"""
"""Source: cloud-provider-openstack, manifests of cinder-csi-plugin."""
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
THREE = ("--set", "replicas=3")
REPLICAS = {"cloud-data-discoverer": 1, "csi-controller": 1, "openstack-ccm": 2}

OF_ITSELF = ("APIService", "Event")
"""What the cluster makes when something else is made, and clears away in its time."""

Name = tuple[str, str, str]
"""Kind, namespace, name."""
Kinds = Mapping[tuple[str, str], tuple[str, bool]]
"""By version and kind: the path of all of them, and whether they have namespaces."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """A control plane, and helm with all rights on it."""

    where: places.Places
    api: client.Api

    def helm(self, *words: str | pathlib.Path) -> str:
        """Run helm; LabError when it refuses."""
        admin = control_plane.admin_kubeconfig(self.where)
        return helm.run(self.where, words, admin)

    def get(self, path: str) -> Any:
        """Give what is at a path."""
        return json.loads(self.api.request("GET", path, timeout_s=TIMEOUT_S))

    def delete(self, path: str) -> None:
        """Delete what is at a path."""
        self.api.request("DELETE", path, timeout_s=TIMEOUT_S)

    def kinds(self) -> Kinds:
        """Give the path and the reach of each kind that can be listed.

        KubeError while some of them come or go.
        """
        groups = [one["preferredVersion"] for one in self.get("/apis")["groups"]]
        versions = ["v1", *(one["groupVersion"] for one in groups)]
        found = {}
        for version in versions:
            root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
            for one in self.get(root)["resources"]:
                if "list" in one["verbs"] and one["kind"] not in OF_ITSELF:
                    path = f"{root}/{one['name']}"
                    found[version, one["kind"]] = (path, one["namespaced"])
        return found

    def everything(self) -> set[Name]:
        """Name every object that somebody has made: kind, namespace, name."""
        return {
            (kind, one["metadata"].get("namespace", ""), one["metadata"]["name"])
            for (_, kind), (path, _) in self.kinds().items()
            for one in self.get(path)["items"]
        }

    def live(self, wanted: Document, kinds: Kinds) -> Any:
        """Give the object of a manifest as the API server has it."""
        collection, namespaced = kinds[wanted["apiVersion"], wanted["kind"]]
        root, _, plural = collection.rpartition("/")
        meta = wanted["metadata"]
        home = f"/namespaces/{meta['namespace']}" if namespaced else ""
        return self.get(f"{root}{home}/{plural}/{meta['name']}")


@pytest.fixture(scope="module")
def ground(apart: places.Places) -> Ground:
    """Give a control plane of our own: nothing of the charts is there yet."""
    programs.build(apart, [helm.GROUP], progress.Lines(sys.stderr))
    control_plane.apply_manifests(apart, NEEDS)
    return Ground(apart, cluster.connect(control_plane.admin_kubeconfig(apart)))


@pytest.fixture(scope="module")
def operators(ground: Ground) -> None:
    """Have the kinds of Prometheus' operator and of the autoscaler served.

    They stay: the tests that want a cluster without them stand before the others.
    """
    text = definitions.manifest(ground.where, progress.Lines(sys.stderr))
    control_plane.apply_manifests(ground.where, text)
    until(lambda: set(ground.kinds()) >= FOREIGN and bool(ground.everything()))


def until(condition: Callable[[], T]) -> T:
    """Wait and give what was found; kinds that come or go can't be listed for long."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(kube_errors.KubeError):
            found = condition()
            if found:
                return found
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.2)


def sets(chart: str) -> tuple[charts.Snapshot, charts.Snapshot]:
    """Give the two sets of values of a chart, that of its usual place first."""
    home, _ = RIGHTS[chart]
    first, second = sorted(
        (one for one in charts.SNAPSHOTS if one.chart == chart),
        key=lambda one: (one.namespace != home, one.name != "secure-port"),
    )
    return first, second


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """A chart that is installed into a namespace, under its own name."""

    ground: Ground
    chart: str
    home: str

    def run(self, verb: str, snapshot: charts.Snapshot, *more: str) -> None:
        """Install the chart with a set of values, or upgrade it to them."""
        chart = charts.folder(ROOT, self.chart)
        place = ("--namespace", self.home)
        values = ("--values", str(snapshot.values(ROOT)), *more)
        self.ground.helm(verb, self.chart, chart, *place, *values)

    def manifest(self) -> list[Document]:
        """Give what helm has made of it."""
        place = ("--namespace", self.home)
        text = self.ground.helm("get", "manifest", self.chart, *place)
        return [one for one in yaml.safe_load_all(text) if one]

    def check(self) -> set[Name]:
        """See that all of it is there as it was written; give its names."""
        names = set()
        kinds = until(self.ground.kinds)
        for one in self.manifest():
            live = self.ground.live(one, kinds)
            home = live["metadata"].get("namespace", "")
            name = (one["kind"], home, one["metadata"]["name"])
            changed = differing(one, live)
            print(f"{name[0]:24} {name[1]:28} {name[2]:44} {changed or 'taken'}")
            assert changed == []
            names.add(name)
        return names

    def check_rights(self, snapshot: charts.Snapshot) -> None:
        """See that the rights there are those of the program's own tests."""
        usual, text = RIGHTS[self.chart]
        moved = text(snapshot.all_values(ROOT)).replace(
            f"namespace: {usual}", f"namespace: {self.home}"
        )
        whole = (one for one in yaml.safe_load_all(moved) if one)
        wanted = [one for one in whole if one["kind"] in RBAC]
        kinds = until(self.ground.kinds)
        for one in wanted:
            live = self.ground.live(one, kinds)
            for field in ("rules", "roleRef"):
                assert live.get(field) == one.get(field), one["metadata"]["name"]
            assert differing(one, live) == []
            assert len(live.get("subjects", ())) == len(one.get("subjects", ()))
        told = {
            (one["kind"], one["metadata"]["name"])
            for one in self.manifest()
            if one["kind"] in RBAC and one["metadata"]["name"] not in READERS
        }
        mine = {(one["kind"], one["metadata"]["name"]) for one in wanted}
        assert told == {one for one in mine if one[0] in RBAC}

    def check_pods(self) -> None:
        """See that pods are made of the template: admission has nothing against it."""
        path = f"/api/v1/namespaces/{self.home}/pods"

        def made() -> int:
            found = [
                one["metadata"]["labels"] for one in self.ground.get(path)["items"]
            ]
            return sum(labels.get("app") == self.chart for labels in found)

        until(lambda: made() == REPLICAS[self.chart])

    def uninstall(self, before: set[Name]) -> None:
        """Remove it, and see that nothing is left but what helm keeps by rule."""
        self.ground.helm("uninstall", self.chart, "--namespace", self.home)
        crds = (charts.folder(ROOT, self.chart) / "crds").glob("*.yaml")
        read = [yaml.safe_load(file.read_text()) for file in crds]
        kept = {(one["kind"], "", one["metadata"]["name"]) for one in read}
        kept |= {CSI_DRIVER} if self.chart == "csi-controller" else set()
        with contextlib.suppress(AssertionError):
            until(lambda: self.ground.everything() <= before | kept)
        now = until(self.ground.everything)
        assert now - before <= kept
        assert before | kept <= now
        if CSI_DRIVER in kept - before:
            self.ground.delete(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")


def differing(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Name the fields of a manifest that the API server has not, or has otherwise."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [
            field
            for key, value in wanted.items()
            for field in differing(value, live.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(live, list):
        if len(wanted) != len(live):
            return [path]
        pairs = enumerate(zip(wanted, live, strict=True))
        return [
            field
            for number, (one, other) in pairs
            for field in differing(one, other, f"{path}[{number}]")
        ]
    # Go's JSON leaves an empty text out.
    return [] if wanted == live or (wanted, live) == ("", None) else [path]


def without_foreign_kinds(chart: str) -> tuple[str, str]:
    given = ["verticalPodAutoscaler=false"]
    if chart != "csi-controller":
        given += ["metrics.podMonitor=false", "metrics.alerts=false"]
    return ("--set", ",".join(given))


@pytest.mark.parametrize("chart", RIGHTS)
def test_installed_changed_and_gone(ground: Ground, chart: str) -> None:
    """Every object is taken as written; nothing is left of them in the end."""
    assert not set(until(ground.kinds)) & FOREIGN
    first, second = sets(chart)
    release = Release(ground, chart, first.namespace)
    before = until(ground.everything)
    release.run("install", first, *without_foreign_kinds(chart))
    had = release.check()
    release.check_rights(first)
    release.check_pods()
    release.run("upgrade", second, *without_foreign_kinds(chart))
    has = release.check()
    release.check_rights(second)
    assert not (had - has) & until(ground.everything)
    release.uninstall(before)


def driver_spec(ground: Ground) -> Any:
    return ground.get(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")["spec"]


def test_the_csi_driver_of_the_reference_stays_or_is_taken_over(ground: Ground) -> None:
    """Its modes are immutable; without it the node plugin registers nothing."""
    control_plane.apply_manifests(ground.where, REFERENCE_DRIVER)
    before = driver_spec(ground)
    first, _ = sets("csi-controller")
    release = Release(ground, first.chart, first.namespace)
    usual = without_foreign_kinds(first.chart)
    both = ("--set", "csiDriver.volumeLifecycleModes={Persistent,Ephemeral}")
    rows = [
        ("as usual", (), "exists and cannot be imported"),
        ("taken over", ("--take-ownership",), ""),
        ("taken over with its modes", ("--take-ownership", *both), ""),
        ("left to its owner", ("--set", "csiDriver.create=false"), ""),
    ]
    for title, more, refusal in rows:
        try:
            release.run("install", first, *usual, *more)
            said = ""
        except errors.LabError as error:
            said = str(error)
        print(f"{title:28} {said[:80] or 'installed'}")
        assert refusal in said if refusal else not said
        assert driver_spec(ground) == before
        with contextlib.suppress(errors.LabError):
            ground.helm("uninstall", first.chart, "--namespace", first.namespace)
        assert driver_spec(ground) == before
    ground.delete(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")


@pytest.mark.parametrize("chart", RIGHTS)
def test_without_the_kinds_of_others_nothing_is_made(
    ground: Ground, chart: str
) -> None:
    """Helm names the kind that is missing; the cluster is as it was."""
    first, _ = sets(chart)
    release = Release(ground, chart, first.namespace)
    before = until(ground.everything)
    wants = ("--set", "verticalPodAutoscaler=true", "--skip-crds")
    with pytest.raises(errors.LabError, match='kind "VerticalPodAutoscaler"'):
        release.run("install", first, *wants)
    assert until(ground.everything) == before


@pytest.mark.parametrize("chart", RIGHTS)
def test_with_the_kinds_of_others(ground: Ground, operators: None, chart: str) -> None:
    """Metrics, alerts and autoscaling as well; in Deckhouse's own namespace."""
    del operators
    first, second = sets(chart)
    release = Release(ground, chart, second.namespace)
    before = until(ground.everything)
    release.run("install", second)
    kinds = {kind for kind, _, _ in release.check()}
    release.check_rights(second)
    release.run("upgrade", first)
    kinds |= {kind for kind, _, _ in release.check()}
    known = {kind for _, kind in FOREIGN}
    assert kinds & known == (
        {"VerticalPodAutoscaler"} if chart == "csi-controller" else known
    )
    release.uninstall(before)


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("availability.yaml", "maxUnavailable: 1", "maxUnvailable: 1"),
        ("availability.yaml", "containerPolicies", "containersPolicies"),
        ("deployment.yaml", "revisionHistoryLimit", "revisionsHistoryLimit"),
        ("monitoring.yaml", "scrapeTimeout", "scrapeTimeOut"),
    ],
)
def test_a_field_that_nobody_knows_is_refused(
    ground: Ground,
    operators: None,
    tmp_path: pathlib.Path,
    file: str,
    right: str,
    wrong: str,
) -> None:
    """What is taken above was looked at strictly, by the real definitions."""
    del operators
    snapshot = next(one for one in charts.SNAPSHOTS if "beside" in one.name)
    copy = tmp_path / "chart"
    shutil.copytree(charts.folder(ROOT, snapshot.chart), copy)
    template = copy / "templates" / file
    assert right in template.read_text()
    template.write_text(template.read_text().replace(right, wrong))
    place = ("--namespace", snapshot.namespace)
    values = ("--values", snapshot.values(ROOT))
    with pytest.raises(errors.LabError, match=wrong.partition(":")[0]):
        ground.helm("install", "wrong", copy, *place, *values)
    with contextlib.suppress(errors.LabError):
        ground.helm("uninstall", "wrong", *place)


UNREACHABLE = "node.kubernetes.io/unreachable"
BOUNDED = [
    {
        "key": UNREACHABLE,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 3,
    }
]
EVICTION = [
    ("as the charts, but 3 s", BOUNDED, True),
    ("every taint without a limit", [{"operator": "Exists"}], False),
]


def bind(ground: Ground, path: str, name: str, node: str) -> None:
    """Place a pod as the scheduler does."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    text = json.dumps(body).encode()
    to = f"{path}/{name}/binding"
    ground.api.request("POST", to, body=text, timeout_s=TIMEOUT_S)


def test_pods_leave_a_host_that_does_not_answer(ground: Ground) -> None:
    """By the real controller of taints: it deletes them when their time is over.

    The time is shortened here; a test of the rendered charts looks at their own.
    """
    first, _ = sets("csi-controller")
    release = Release(ground, first.chart, first.namespace)
    path = f"/api/v1/namespaces/{first.namespace}/pods"
    mine = f"{path}?labelSelector=app={first.chart}"
    make_node(ground, "dead", is_control_plane=True)
    taint = {"key": UNREACHABLE, "effect": "NoExecute"}
    for title, tolerations, is_left in EVICTION:
        given = f"tolerations={json.dumps(tolerations)}"
        usual = without_foreign_kinds(first.chart)
        release.run("install", first, *usual, "--set-json", given)
        pod = until(lambda: ground.get(mine)["items"])[0]["metadata"]
        bind(ground, path, pod["name"], "dead")
        patch = json.dumps({"spec": {"taints": [taint]}}).encode()
        ground.api.patch(resources.NODES, "dead", patch, timeout_s=TIMEOUT_S)

        def is_deleted(uid: str = pod["uid"]) -> bool:
            found = {one["metadata"]["uid"]: one for one in ground.get(mine)["items"]}
            one = found.get(uid)
            return one is None or "deletionTimestamp" in one["metadata"]

        began = time.monotonic()
        while time.monotonic() - began < 12 and not is_deleted():
            time.sleep(0.2)
        print(f"{title:30} deleted: {is_deleted()} {time.monotonic() - began:.1f} s")
        assert is_deleted() is is_left
        ground.helm("uninstall", first.chart, "--namespace", first.namespace)
        ground.delete(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")
        with contextlib.suppress(kube_errors.NotFound):
            ground.delete(f"{path}/{pod['name']}?gracePeriodSeconds=0")
        until(lambda: not ground.get(mine)["items"])
        patch = json.dumps({"spec": {"taints": None}}).encode()
        ground.api.patch(resources.NODES, "dead", patch, timeout_s=TIMEOUT_S)
    ground.delete("/api/v1/nodes/dead")


def make_node(ground: Ground, name: str, *, is_control_plane: bool) -> None:
    """Register a host as its kubelet would when it has just been born.

    The admission adds that it is not ready; nobody runs there.
    """
    role = "node-role.kubernetes.io/control-plane"
    room = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "50Gi", "pods": "110"}
    taints = [(role, "")] * is_control_plane + [(UNINITIALIZED, "true")]
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                **({role: ""} if is_control_plane else {}),
            },
        },
        "spec": {
            "taints": [
                {"key": key, "value": value, "effect": "NoSchedule"}
                for key, value in taints
            ]
        },
        "status": {"capacity": room, "allocatable": room},
    }
    body = json.dumps(node).encode()
    ground.api.create(resources.NODES, body, timeout_s=TIMEOUT_S)


@pytest.fixture()
def scheduler(ground: Ground) -> Iterator[None]:
    """Run kube-scheduler."""
    shown = progress.Lines(sys.stderr)
    programs.build(ground.where, [control_plane.SCHEDULER_GROUP], shown)
    control_plane.start_scheduler(ground.where, shown)
    yield
    processes.stop(ground.where, [control_plane.SCHEDULER], patience_s=1)


def test_each_replica_has_a_host_of_the_control_plane(
    ground: Ground, scheduler: None
) -> None:
    """Placed by the real scheduler, on Nodes that only this program can initialise.

    Last of all: where there is no kubelet, pods that were placed do not go.
    """
    del scheduler
    for name in ("master-0", "master-1"):
        make_node(ground, name, is_control_plane=True)
    make_node(ground, "worker-0", is_control_plane=False)
    first, _ = sets("openstack-ccm")
    Release(ground, first.chart, first.namespace).run("install", first, *THREE)
    path = f"/api/v1/namespaces/{first.namespace}/pods?labelSelector=app={first.chart}"

    def placed() -> list[str]:
        pods = ground.get(path)["items"]
        return sorted(one["spec"].get("nodeName", "") for one in pods)

    def refused() -> list[str]:
        return [
            condition["message"]
            for one in ground.get(path)["items"]
            for condition in one.get("status", {}).get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]

    until(lambda: placed() == ["", "master-0", "master-1"])
    (why,) = until(refused)
    print(why)
    assert "2 node(s) didn't have free ports" in why
    assert "1 node(s) didn't match Pod's node affinity/selector" in why
