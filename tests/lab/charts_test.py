"""The charts, installed, changed and removed by the real helm on a real API server.

Pods are made and stay Pending: there is neither a Node nor an image here. What runs in
them is started by other tests, under the rights that are compared here.
"""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest
import yaml

from lib.kube import client
from lib.kube import errors as kube_errors
from lib.lab import (
    ccm,
    charts,
    cluster,
    control_plane,
    csi,
    discoverer,
    errors,
    helm,
    places,
    programs,
    progress,
)

ROOT = pathlib.Path()
T = TypeVar("T")
TIMEOUT_S = 10.0
PATIENCE_S = 60.0
FOREIGN = {
    "monitoring.coreos.com/v1": {
        "PodMonitor": "podmonitors",
        "PrometheusRule": "prometheusrules",
    },
    "autoscaling.k8s.io/v1": {"VerticalPodAutoscaler": "verticalpodautoscalers"},
}
"""Kinds that a chart may ask for and a cluster may lack, with their plurals."""
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
RIGHTS: dict[str, tuple[str, Callable[[], str]]] = {
    "cloud-data-discoverer": (
        charts.PLATFORM,
        lambda: discoverer.chart("files/rbac.yaml"),
    ),
    "csi-controller": (charts.SYSTEM, csi.manifest),
    "openstack-ccm": (charts.SYSTEM, ccm.manifest),
}
"""By chart: what the tests of its program run it with, and where they do."""
READERS = {"openstack-ccm:metrics"}
"""What a chart grants to others than its program, with a PodMonitor only."""
REPLICAS = {"cloud-data-discoverer": 1, "csi-controller": 1, "openstack-ccm": 2}

OF_ITSELF = ("APIService", "Event")
"""What the cluster makes when something else is made, and clears away in its time."""

Document = Mapping[str, Any]
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
    """Have the kinds of Prometheus and the autoscaler served; their fields are free.

    They stay: the tests that want a cluster without them stand before the others.
    """
    manifest = "---\n".join(
        yaml.safe_dump(definition(version, kind, plural))
        for version, kinds in FOREIGN.items()
        for kind, plural in kinds.items()
    )
    control_plane.apply_manifests(ground.where, manifest)
    wanted = {(version, kind) for version, kinds in FOREIGN.items() for kind in kinds}
    until(lambda: wanted <= set(ground.kinds()) and bool(ground.everything()))


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(version: str, kind: str, plural: str) -> Document:
    group, _, name = version.partition("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # That of Kubernetes' own groups wants to be told who has approved of it.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


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


def words(
    verb: str, snapshot: charts.Snapshot, *more: str
) -> tuple[str | pathlib.Path, ...]:
    """Give helm's words to install a chart with a set of values, or to upgrade it."""
    chart = snapshot.chart
    home, _ = RIGHTS[chart]
    begun: tuple[str | pathlib.Path, ...] = (verb, chart, charts.folder(ROOT, chart))
    return (*begun, "--namespace", home, "--values", snapshot.values(ROOT), *more)


def without_foreign_kinds(chart: str) -> tuple[str, ...]:
    given = ["verticalPodAutoscaler=false"]
    if chart != "csi-controller":
        given += ["metrics.podMonitor=false", "metrics.alerts=false"]
    return ("--set", ",".join(given))


def manifest(ground: Ground, chart: str) -> list[Document]:
    """Give what helm has made for a release."""
    home, _ = RIGHTS[chart]
    text = ground.helm("get", "manifest", chart, "--namespace", home)
    return [one for one in yaml.safe_load_all(text) if one]


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


def check(ground: Ground, chart: str) -> set[Name]:
    """See that all of a release is there as it was written; give its names."""
    names = set()
    kinds = until(ground.kinds)
    for one in manifest(ground, chart):
        live = ground.live(one, kinds)
        home = live["metadata"].get("namespace", "")
        name = (one["kind"], home, one["metadata"]["name"])
        changed = differing(one, live)
        print(f"{chart:22} {name[0]:24} {name[1]:28} {name[2]:44} {changed or 'taken'}")
        assert changed == []
        names.add(name)
    return names


def check_rights(ground: Ground, chart: str) -> None:
    """See that the rights on the API server are those of the program's own tests."""
    _, text = RIGHTS[chart]
    wanted = [one for one in yaml.safe_load_all(text()) if one]
    kinds = until(ground.kinds)
    for one in wanted:
        live = ground.live(one, kinds)
        for field in ("rules", "roleRef"):
            assert live.get(field) == one.get(field), one["metadata"]["name"]
        assert differing(one, live) == []
        assert len(live.get("subjects", ())) == len(one.get("subjects", ()))
    told = {
        (one["kind"], one["metadata"]["name"])
        for one in manifest(ground, chart)
        if one["kind"] in RBAC and one["metadata"]["name"] not in READERS
    }
    mine = {(one["kind"], one["metadata"]["name"]) for one in wanted}
    assert told == {one for one in mine if one[0] in RBAC}


def check_pods(ground: Ground, chart: str) -> None:
    """See that pods are made of the template: admission has nothing against them."""
    home, _ = RIGHTS[chart]
    path = f"/api/v1/namespaces/{home}/pods"

    def made() -> int:
        pods = ground.get(path)["items"]
        return sum(one["metadata"]["labels"].get("app") == chart for one in pods)

    until(lambda: made() == REPLICAS[chart])


def uninstall(ground: Ground, chart: str, before: set[Name]) -> None:
    """Remove a release, and see that nothing is left but what helm keeps by rule."""
    home, _ = RIGHTS[chart]
    ground.helm("uninstall", chart, "--namespace", home)
    crds = (charts.folder(ROOT, chart) / "crds").glob("*.yaml")
    kept = {
        (
            "CustomResourceDefinition",
            "",
            yaml.safe_load(one.read_text())["metadata"]["name"],
        )
        for one in crds
    }
    with contextlib.suppress(AssertionError):
        until(lambda: ground.everything() <= before | kept)
    now = until(ground.everything)
    assert now - before <= kept
    assert before | kept <= now


@pytest.mark.parametrize("chart", RIGHTS)
def test_installed_changed_and_gone(ground: Ground, chart: str) -> None:
    """Every object is taken as written; nothing is left of them in the end."""
    assert not {kind for _, kind in until(ground.kinds)} & {
        "PodMonitor",
        "PrometheusRule",
    }
    first, second = sets(chart)
    before = until(ground.everything)
    ground.helm(*words("install", first, *without_foreign_kinds(chart)))
    had = check(ground, chart)
    check_rights(ground, chart)
    check_pods(ground, chart)
    ground.helm(*words("upgrade", second, *without_foreign_kinds(chart)))
    has = check(ground, chart)
    check_rights(ground, chart)
    assert not (had - has) & until(ground.everything)
    uninstall(ground, chart, before)


@pytest.mark.parametrize("chart", RIGHTS)
def test_without_their_kinds_nothing_is_made(ground: Ground, chart: str) -> None:
    """Helm names the kind that is missing; the cluster is as it was."""
    before = until(ground.everything)
    values = ("--set", "verticalPodAutoscaler=true")
    with pytest.raises(errors.LabError, match='kind "VerticalPodAutoscaler"'):
        ground.helm(*words("install", sets(chart)[0], *values, "--skip-crds"))
    assert until(ground.everything) == before


def test_a_field_that_nobody_knows_is_refused(
    ground: Ground, tmp_path: pathlib.Path
) -> None:
    """What is taken above was looked at strictly."""
    snapshot, _ = sets("openstack-ccm")
    copy = tmp_path / "chart"
    shutil.copytree(charts.folder(ROOT, snapshot.chart), copy)
    template = copy / "templates" / "availability.yaml"
    template.write_text(template.read_text().replace("maxUnavail", "maxUnvail"))
    before = until(ground.everything)
    home = ("--namespace", snapshot.namespace)
    values = snapshot.values(ROOT)
    with pytest.raises(errors.LabError, match="maxUnvailable"):
        ground.helm("install", "openstack-ccm", copy, *home, "--values", values)
    with contextlib.suppress(errors.LabError, kube_errors.KubeError):
        ground.helm("uninstall", "openstack-ccm", *home)
    until(lambda: ground.everything() == before)


@pytest.mark.parametrize("chart", RIGHTS)
def test_with_the_kinds_of_others(ground: Ground, operators: None, chart: str) -> None:
    """Metrics, alerts and autoscaling as well, where their kinds are there."""
    del operators
    before = until(ground.everything)
    ground.helm(*words("install", sets(chart)[1]))
    kinds = {kind for kind, _, _ in check(ground, chart)}
    ground.helm(*words("upgrade", sets(chart)[0]))
    kinds |= {kind for kind, _, _ in check(ground, chart)}
    check_rights(ground, chart)
    known = {kind for every in FOREIGN.values() for kind in every}
    if chart == "csi-controller":
        known = {"VerticalPodAutoscaler"}
    assert known <= kinds
    uninstall(ground, chart, before)
