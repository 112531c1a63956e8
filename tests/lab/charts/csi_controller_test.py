"""The chart csi-controller: rendered, installed, changed and removed by helm."""

import contextlib
import json
import time
from typing import Any

import pytest

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import errors, places
from lib.lab.charts import charts
from lib.lab.daemons import csi
from lib.lab.kube import control_plane
from tests.harness import deckhouse_names
from tests.lab.charts import installing, rendering

CHART = "csi-controller"
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
CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    rights=lambda values: csi.manifest(reads_claims=values["pvcAnnotations"]),
    readers=frozenset({"csi-controller:secrets"}),
    replicas=1,
    plain="verticalPodAutoscaler=false",
    kept={CSI_DRIVER: f"{CSI_DRIVERS}/{CSI_DRIVER[2]}"},
    asks_for=frozenset({"VerticalPodAutoscaler"}),
    deckhouse=deckhouse_names.CSI,
)
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("clusterUUID=", "'/clusterUUID': minLength"),
    ("sidecars.attacher.version=", "'/sidecars/attacher/version'"),
    ("csiDriver.nodeAllocatableUpdatePeriodSeconds=9", "'/csiDriver/nodeAlloc"),
    ("sidecars.snapshotter.image=x", "'snapshotter' not allowed"),
]
"""What is set, what helm must name."""
BAD_DVP = [
    ("cloud=zvirt", "'/cloud': value must be one of"),
    ("parent.secretName=", "'/parent/secretName': ''"),
    ("parent.namespace=a b", "'/parent/namespace': 'a b' does not match pattern"),
    ("clusterUUID=", "'/clusterUUID': minLength: got 0, want 1"),
    ("clusterUUID=a/b", "'/clusterUUID': 'a/b' does not match pattern"),
    ("cloudConfig.secretName=x", "'/cloudConfig/secretName': maxLength"),
    ("pvcAnnotations=true", "'/pvcAnnotations': value must be false"),
    ("storageClasses[2].name=a", "'/storageClasses/2': missing property 'dvpStorageC"),
    (
        "storageClasses[0].volumeBindingMode=Immediate",
        "'/storageClasses/0/volumeBindingMode': value must be 'WaitForFirstConsumer'",
    ),
    ("storageClasses[0].type=SSD", "'/storageClasses/0/type': maxLength"),
]
"""The same for DVP."""


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_bad_values_for_dvp_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD_DVP, "dvp")


def test_installed_changed_and_removed(ground: installing.Ground) -> None:
    installing.installed_changed_removed(ground, CASE)


PERIOD = "nodeAllocatableUpdatePeriodSeconds"
"""The one field that a release adds to the object of the reference."""


def kept(period_s: int | None) -> dict[str, int]:
    """Return the field that stays with the object once a release has added it."""
    return {} if period_s is None else {PERIOD: period_s}


def driver_spec(ground: installing.Ground) -> Any:
    return ground.get(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")["spec"]


def test_the_csi_driver_of_the_reference_stays_or_is_taken_over(
    ground: installing.Ground,
) -> None:
    """Its modes are immutable; without it the node plugin registers nothing."""
    control_plane.apply_manifests(ground.where, REFERENCE_DRIVER)
    before = driver_spec(ground)
    first, _ = CASE.snapshots
    release = installing.prepare(ground, CASE, first.namespace)
    usual = CASE.without_foreign_kinds
    both = ("--set", "csiDriver.volumeLifecycleModes={Persistent,Ephemeral}")
    rows = [
        ("as usual", (), "exists and cannot be imported"),
        ("taken over", ("--take-ownership",), ""),
        ("taken over with its modes", ("--take-ownership", *both), ""),
        ("left to its owner", ("--set", "csiDriver.create=false"), ""),
    ]
    periods: list[int | None] = []
    for title, more, refusal in rows:
        try:
            release.run("install", first, *usual, *more)
            message = ""
        except errors.LabError as error:
            message = str(error)
        print(f"{title:28} {message[:80] or 'installed'}")
        assert refusal in message if refusal else not message
        spec = driver_spec(ground)
        periods.append(spec.pop(PERIOD, None))
        assert spec == before
        with contextlib.suppress(errors.LabError):
            ground.helm("uninstall", first.chart, "--namespace", first.namespace)
        assert driver_spec(ground) == before | kept(periods[-1])
    assert periods == [None, 60, 60, 60]
    ground.delete(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")


def test_without_the_kinds_of_others_nothing_is_created(
    ground: installing.Ground,
) -> None:
    installing.refused_without_kinds(ground, CASE)


def test_with_the_kinds_of_others(ground: installing.Ground, operators: None) -> None:
    del operators
    installing.with_kinds_of_others(ground, CASE)


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


def bind(ground: installing.Ground, path: str, name: str, node: str) -> None:
    """Place a pod as the scheduler does."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    text = json.dumps(body).encode()
    to = f"{path}/{name}/binding"
    ground.api.request("POST", to, body=text, timeout_s=installing.TIMEOUT_S)


def test_pods_leave_a_host_that_does_not_answer(ground: installing.Ground) -> None:
    """By the real controller of taints: it deletes them when their time is over.

    The time is shortened here; a test of the rendered charts looks at their own.
    """
    first, _ = CASE.snapshots
    release = installing.prepare(ground, CASE, first.namespace)
    path = f"/api/v1/namespaces/{first.namespace}/pods"
    mine = f"{path}?labelSelector=app={first.chart}"
    installing.make_node(ground, "dead", is_control_plane=True)
    taint = {"key": UNREACHABLE, "effect": "NoExecute"}
    for title, tolerations, is_left in EVICTION:
        value = f"tolerations={json.dumps(tolerations)}"
        usual = CASE.without_foreign_kinds
        release.run("install", first, *usual, "--set-json", value)
        pod = installing.until(lambda: ground.get(mine)["items"])[0]["metadata"]
        bind(ground, path, pod["name"], "dead")
        patch = json.dumps({"spec": {"taints": [taint]}}).encode()
        ground.api.patch(resources.NODES, "dead", patch, timeout_s=installing.TIMEOUT_S)

        def is_deleted(uid: str = pod["uid"]) -> bool:
            drivers = {
                driver["metadata"]["uid"]: driver
                for driver in ground.get(mine)["items"]
            }
            driver = drivers.get(uid)
            return driver is None or "deletionTimestamp" in driver["metadata"]

        began = time.monotonic()
        while time.monotonic() - began < (180 if is_left else 12) and not is_deleted():
            # The controller of Node conditions may take the taint away again.
            ground.api.patch(
                resources.NODES, "dead", patch, timeout_s=installing.TIMEOUT_S
            )
            time.sleep(1)
        print(f"{title:30} deleted: {is_deleted()} {time.monotonic() - began:.1f} s")
        assert is_deleted() is is_left
        ground.helm("uninstall", first.chart, "--namespace", first.namespace)
        ground.delete(f"{CSI_DRIVERS}/{CSI_DRIVER[2]}")
        with contextlib.suppress(kube_errors.NotFound):
            ground.delete(f"{path}/{pod['name']}?gracePeriodSeconds=0")
        installing.until(lambda: not ground.get(mine)["items"])
        patch = json.dumps({"spec": {"taints": None}}).encode()
        ground.api.patch(resources.NODES, "dead", patch, timeout_s=installing.TIMEOUT_S)
    ground.delete("/api/v1/nodes/dead")
