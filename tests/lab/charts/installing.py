"""Installing, changing and removing a chart by the real helm on a real API server.

Pods are created, and placed at most: there is neither a kubelet nor an image here. What
runs in them is started by other tests, under the rights that are compared here.
"""

import contextlib
import dataclasses
import json
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.charts import charts, helm, helm3
from lib.lab.kube import control_plane
from tests.harness import deckhouse_names

ROOT = pathlib.Path()
T = TypeVar("T")
Document = Mapping[str, Any]
TIMEOUT_S = 10.0
PATIENCE_S = 180.0
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
metadata: {name: d8-cloud-provider-dvp}
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
OF_ITSELF = ("APIService", "Event")
"""What the cluster makes when something else is made, and clears away in its time."""

Name = tuple[str, str, str]
"""Kind, namespace, name."""
Kinds = Mapping[tuple[str, str], tuple[str, bool]]
"""By version and kind: the path of all of them, and whether they have namespaces."""


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One chart.

    home: its usual namespace. rights: the RBAC manifest with which the tests of its
    program run it, from the chart's values. readers: names of permissions for others
    than the program, or for what only the user can name. replicas: pods of the usual
    values. plain: values without the kinds that a cluster may lack. kept: paths of
    objects that stay when it is removed, by their names; its own kinds stay as well.
    asks_for: those of FOREIGN that it can use. deckhouse: its names of Deckhouse.
    """

    chart: str
    home: str
    rights: Callable[[Document], str]
    readers: frozenset[str]
    replicas: int
    plain: str
    kept: Mapping[Name, str] = dataclasses.field(default_factory=dict)
    asks_for: frozenset[str] = frozenset(kind for _, kind in FOREIGN)
    deckhouse: deckhouse_names.DeckhouseNames | None = None

    @property
    def snapshots(self) -> tuple[charts.Snapshot, charts.Snapshot]:
        """Two sets of values of the chart, that of its usual namespace first.

        That for DVP is installed by the test of its umbrella chart.
        """
        named = charts.of(self.chart)
        first, second = sorted(
            (named[name] for name in named if name != "dvp"),
            key=lambda snapshot: (
                snapshot.namespace != self.home,
                snapshot.name != "secure-port",
            ),
        )
        return first, second

    @property
    def without_foreign_kinds(self) -> tuple[str, str]:
        """Arguments of helm for a cluster that lacks the kinds of others."""
        return ("--set", self.plain)


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
        """Return what is at a path."""
        return json.loads(self.api.request("GET", path, timeout_s=TIMEOUT_S))

    def delete(self, path: str) -> None:
        """Delete what is at a path."""
        self.api.request("DELETE", path, timeout_s=TIMEOUT_S)

    def kinds(self) -> Kinds:
        """Return the path and the reach of each kind that can be listed.

        KubeError while some of them come or go.
        """
        groups = [group["preferredVersion"] for group in self.get("/apis")["groups"]]
        versions = ["v1", *(group["groupVersion"] for group in groups)]
        collections = {}
        for version in versions:
            root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
            for resource in self.get(root)["resources"]:
                if "list" in resource["verbs"] and resource["kind"] not in OF_ITSELF:
                    path = f"{root}/{resource['name']}"
                    collections[version, resource["kind"]] = (
                        path,
                        resource["namespaced"],
                    )
        return collections

    def everything(self) -> set[Name]:
        """Name every object that somebody has made: kind, namespace, name."""
        return {
            (kind, item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for (_, kind), (path, _) in self.kinds().items()
            for item in self.get(path)["items"]
        }

    def live(self, desired: Document, kinds: Kinds) -> Any:
        """Return the object of a manifest as the API server has it."""
        return self.get(path_of(desired, kinds))


@dataclasses.dataclass(frozen=True, slots=True)
class GroundOfHelm3(Ground):
    """A control plane, and helm 3."""

    def helm(self, *words: str | pathlib.Path) -> str:
        """Run helm 3; LabError when it refuses."""
        admin = control_plane.admin_kubeconfig(self.where)
        return helm.run(self.where, words, admin, helm3.PROGRAM.path(self.where))


def path_of(desired: Document, kinds: Kinds) -> str:
    """Return the path of the object of a manifest."""
    collection, namespaced = kinds[desired["apiVersion"], desired["kind"]]
    root, _, plural = collection.rpartition("/")
    meta = desired["metadata"]
    home = f"/namespaces/{meta['namespace']}" if namespaced else ""
    return f"{root}{home}/{plural}/{meta['name']}"


def name_of(desired: Document) -> Name:
    """Return kind, namespace and name of the object of a manifest."""
    meta = desired["metadata"]
    return (desired["kind"], meta.get("namespace", ""), meta["name"])


def until(condition: Callable[[], T]) -> T:
    """Wait and give what was found; kinds that come or go can't be listed for long."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(kube_errors.KubeError):
            result = condition()
            if result:
                return result
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.2)


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """A chart that is installed into a namespace, under its own name.

    kinds: those that the cluster serves, read once: none of a chart's objects is of a
    kind that the chart itself brings.
    """

    ground: Ground
    case: Case
    home: str
    kinds: Kinds

    @property
    def chart(self) -> str:
        """The name of the chart, and of the release."""
        return self.case.chart

    def run(self, verb: str, snapshot: charts.Snapshot, *more: str) -> None:
        """Install the chart with a set of values, or upgrade it to them."""
        chart = charts.folder(ROOT, self.chart)
        place = ("--namespace", self.home)
        values = ("--values", str(snapshot.values(ROOT)), *more)
        self.ground.helm(verb, self.chart, chart, *place, *values)

    def manifest(self) -> list[Document]:
        """Return what helm has made of it."""
        place = ("--namespace", self.home)
        text = self.ground.helm("get", "manifest", self.chart, *place)
        return [document for document in yaml.safe_load_all(text) if document]

    def check(self) -> set[Name]:
        """See that all of it is there as it was written; give its names."""
        names = set()
        for document in self.manifest():
            live = self.ground.live(document, self.kinds)
            home = live["metadata"].get("namespace", "")
            name = (document["kind"], home, document["metadata"]["name"])
            changed = differing(document, live)
            print(f"{name[0]:24} {name[1]:28} {name[2]:44} {changed or 'taken'}")
            assert changed == []
            names.add(name)
        return names

    def check_rights(self, snapshot: charts.Snapshot) -> None:
        """See that the rights there are those of the program's own tests."""
        moved = self.case.rights(snapshot.all_values(ROOT)).replace(
            f"namespace: {self.case.home}", f"namespace: {self.home}"
        )
        names = self._names(snapshot)
        whole = (document for document in yaml.safe_load_all(moved) if document)
        desired = [
            names.renamed(document) if names else document
            for document in whole
            if document["kind"] in RBAC
        ]
        for document in desired:
            live = self.ground.live(document, self.kinds)
            for field in ("rules", "roleRef"):
                assert live.get(field) == document.get(field), document["metadata"][
                    "name"
                ]
            assert differing(document, live) == []
            assert len(live.get("subjects", ())) == len(document.get("subjects", ()))
        readers = set(self.case.readers)
        if names:
            readers |= set(map(names.of_role, self.case.readers))
        created = {
            (document["kind"], document["metadata"]["name"])
            for document in self.manifest()
            if document["kind"] in RBAC and document["metadata"]["name"] not in readers
        }
        mine = {
            (document["kind"], document["metadata"]["name"]) for document in desired
        }
        assert created == {document for document in mine if document[0] in RBAC}

    def _names(
        self, snapshot: charts.Snapshot
    ) -> deckhouse_names.DeckhouseNames | None:
        """Return the names of Deckhouse; None: the values do not select them."""
        values = snapshot.all_values(ROOT)["deckhouse"]
        is_selected = values["enabled"] and values.get("names", False)
        return self.case.deckhouse if is_selected else None

    def check_pods(self) -> None:
        """See that pods are made of the template: admission has nothing against it."""
        path = f"/api/v1/namespaces/{self.home}/pods"

        def made() -> int:
            items_labels = [
                item["metadata"]["labels"] for item in self.ground.get(path)["items"]
            ]
            return sum(labels.get("app") == self.chart for labels in items_labels)

        until(lambda: made() == self.case.replicas)

    def uninstall(self, before: set[Name]) -> None:
        """Remove it, and see that nothing is left but what helm keeps by rule."""
        self.ground.helm("uninstall", self.chart, "--namespace", self.home)
        folder = charts.folder(ROOT, self.chart)
        # Those of an umbrella are in the charts of its components.
        crds = (*folder.glob("crds/*.yaml"), *folder.glob("charts/*/crds/*.yaml"))
        read = [yaml.safe_load(file.read_text()) for file in crds]
        kept = {(item["kind"], "", item["metadata"]["name"]) for item in read}
        kept |= self.case.kept.keys()

        def rest() -> set[Name]:
            return self.ground.everything() - before - kept

        until_none(rest)
        assert before | kept <= until(self.ground.everything)
        for name in self.case.kept.keys() - before:
            self.ground.delete(self.case.kept[name])


def differing(desired: Any, live: Any, path: str = "") -> list[str]:
    """Return the fields of a manifest that the API server has not, or has otherwise."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return [
            field
            for key, value in desired.items()
            for field in differing(value, live.get(key), f"{path}.{key}")
        ]
    if isinstance(desired, list) and isinstance(live, list):
        if len(desired) != len(live):
            return [path]
        pairs = enumerate(zip(desired, live, strict=True))
        return [
            field
            for number, (left, other) in pairs
            for field in differing(left, other, f"{path}[{number}]")
        ]
    # Go's JSON leaves an empty text out.
    return [] if desired == live or (desired, live) == ("", None) else [path]


def until_none(rest: Callable[[], set[Name]]) -> None:
    """Wait until nothing is left; fail with the names of what is."""
    deadline = time.monotonic() + PATIENCE_S
    left: set[Name] | None = None
    while left != set():
        assert time.monotonic() < deadline, f"not removed: {left}"
        with contextlib.suppress(kube_errors.KubeError):
            left = rest()
        time.sleep(0.2)


def prepare(ground: Ground, case: Case, home: str) -> Release:
    """Return a release that is not installed yet. home: its namespace."""
    return Release(ground, case, home, until(ground.kinds))


def installed_changed_removed(ground: Ground, case: Case) -> None:
    """Every object is taken as written; nothing is left of them in the end."""
    assert not set(until(ground.kinds)) & FOREIGN
    first, second = case.snapshots
    before = until(ground.everything)
    plain = case.without_foreign_kinds
    release = prepare(ground, case, first.namespace)
    release.run("install", first, *plain)
    had = release.check()
    release.check_rights(first)
    release.check_pods()
    release.run("upgrade", second, *plain)
    has = release.check()
    release.check_rights(second)
    assert not (had - has) & until(ground.everything)
    release.uninstall(before)


def refused_without_kinds(ground: Ground, case: Case) -> None:
    """Helm names the kind that is missing; the cluster is as it was."""
    first, _ = case.snapshots
    before = until(ground.everything)
    wants = ("--set", "verticalPodAutoscaler=true", "--skip-crds")
    try:
        prepare(ground, case, first.namespace).run("install", first, *wants)
        message = "installed"
    except errors.LabError as error:
        message = str(error)
    assert 'kind "VerticalPodAutoscaler"' in message
    assert until(ground.everything) == before


def with_kinds_of_others(ground: Ground, case: Case) -> None:
    """Metrics, alerts and autoscaling as well; in Deckhouse's own namespace."""
    first, second = case.snapshots
    before = until(ground.everything)
    release = prepare(ground, case, second.namespace)
    release.run("install", second)
    kinds = {kind for kind, _, _ in release.check()}
    release.check_rights(second)
    release.run("upgrade", first)
    kinds |= {kind for kind, _, _ in release.check()}
    assert kinds & {kind for _, kind in FOREIGN} == case.asks_for
    release.uninstall(before)


UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


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
