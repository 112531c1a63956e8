"""The status is true: what is refused, what runs, and what was never installed."""

import pathlib
import threading
from typing import Any

import pytest

from lib.helm import cache
from lib.helm import model as helm
from lib.kube import resources
from lib.osdpl.values import graph
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Installed, Process

GLANCE = "openstack-glance"


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def status(cluster: Cluster) -> dict[str, Any]:
    kind = resources.OPENSTACK_DEPLOYMENT_STATUSES
    actual: dict[str, Any] = cluster.documents(kind)[0]["status"]
    return actual


def advance(process: Process, count: int) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


def delete(cluster: Cluster) -> None:
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)


def features(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = ground.spec("")["features"]
    return {**base, **changes}


def test_refused_services_have_a_state_of_their_own(cluster: Cluster) -> None:
    """The preset compute names five services that are not supported."""
    cluster.create(preset="compute")
    Process(cluster).settle()
    observed = status(cluster)
    assert observed["osdpl"]["state"] == "REFUSED"
    service = observed["services"]["block-storage"]
    assert service["state"] == "REFUSED"
    assert service["openstack_version"] == service["fingerprint"] == ""
    assert observed["services"]["compute"]["openstack_version"] == "gazpacho"
    applied = cluster.condition("Applied")
    assert (applied["status"], applied["reason"]) == ("False", "Refused")


def test_refused_services_block_neither_upgrade_nor_deletion(cluster: Cluster) -> None:
    cluster.create(preset="compute", openstack_version="flamingo")
    Process(cluster).settle()
    cluster.change(openstack_version="gazpacho")
    Process(cluster).settle(120)
    versions = {
        row["openstack_version"]
        for row in status(cluster)["services"].values()
        if row["state"] == "APPLIED"
    }
    assert versions == {"gazpacho"}
    delete(cluster)
    Process(cluster).settle()
    assert cluster.deployed() == frozenset()
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []


@pytest.mark.parametrize(
    "change",
    [
        {"features": features(services=["block-storage"])},
        {"preset": "compute"},
    ],
    ids=["a service that is not supported", "another preset"],
)
def test_an_upgrade_that_cannot_end_does_not_start(
    installed_version: Installed, change: dict[str, Any]
) -> None:
    cluster = installed_version("flamingo")
    cluster.change(openstack_version="gazpacho", **change)
    runs = list(cluster.helm.runs)
    advance(Process(cluster), 10)
    assert cluster.helm.runs == runs
    assert cluster.condition("Accepted")["reason"] == "InvalidSpec"
    cluster.change(features=features(), preset="core")
    Process(cluster).settle(120)
    assert cluster.condition("Applied")["status"] == "True"


def test_an_upgrade_does_not_start_with_an_installed_service_refused(
    installed_version: Installed,
) -> None:
    cluster = installed_version("flamingo")
    nova = {**features()["nova"], "images": {"backend": "ceph"}}
    cluster.change(features=features(nova=nova))
    Process(cluster).settle()
    cluster.change(openstack_version="gazpacho")
    runs = list(cluster.helm.runs)
    advance(Process(cluster), 10)
    message = cluster.condition("Accepted")["message"]
    print(message)
    assert "flamingo while the service compute cannot be rendered" in message
    assert cluster.helm.runs == runs
    cluster.change(openstack_version="flamingo")
    Process(cluster).settle()
    delete(cluster)  # a service that waits for Ceph does not block it, either
    Process(cluster).settle()
    assert cluster.deployed() == frozenset()


def test_services_may_be_left_out_again_during_an_upgrade(
    installed_version: Installed,
) -> None:
    cluster = installed_version("flamingo")
    cluster.change(features=features(services=["block-storage"]))
    Process(cluster).settle()
    cluster.workload(GLANCE, "api-of-the-test", ready=0)
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    advance(process, 12)
    assert status(cluster)["osdpl"]["upgrade"]["service"] == "image"
    cluster.change(features=features())
    advance(process, 2)
    assert cluster.condition("Accepted")["status"] == "True"
    cluster.workload(GLANCE, "api-of-the-test", ready=1)
    process.settle(120)
    assert cluster.condition("Applied")["status"] == "True"


def test_applied_says_how_many_workloads_are_ready(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    cluster.workload(GLANCE, "api-of-the-test", ready=0)
    process = Process(cluster)
    done = [action for _ in range(3) for action in process.step()[0]]
    message = cluster.condition("Applied")["message"]
    print(message)
    total = len(ground.GATES) + 1
    assert message == f"{total - 1} of {total} workloads Ready"
    assert not any(getattr(action, "events", ()) for action in done)
    cluster.workload(GLANCE, "api-of-the-test", ready=1)
    process.settle()
    message = cluster.condition("Applied")["message"]
    assert message == f"{total} of {total} workloads Ready"


def test_a_paused_object_with_an_invalid_spec_is_not_accepted(
    cluster: Cluster,
) -> None:
    cluster.create(public_domain_name="")
    document = cluster.deployment()
    document["metadata"]["annotations"] = {"mooring.io/paused": "true"}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    Process(cluster).settle()
    assert cluster.condition("Accepted")["reason"] == "InvalidSpec"
    assert cluster.condition("Applied")["reason"] == "Paused"


@pytest.mark.parametrize("part", ["values", "chart", "version"])
def test_a_manual_upgrade_with_helm_is_repaired(
    installed_version: Installed, part: str
) -> None:
    """helm keeps our labels; the content of the Secret shows it."""
    cluster = installed_version("gazpacho")
    process = Process(cluster)
    process.settle()
    arguments = cluster.helm.upgrades[GLANCE]
    chart = arguments.chart
    if part == "version":
        text = "apiVersion: v2\nname: glance\nversion: 9.9.9\n"
        folder = cluster.folder / "other" / "glance"
        folder.mkdir(parents=True)
        (folder / "Chart.yaml").write_text(text)
        charts = cache.Charts(cluster.folder / "cache-of-other")
        pin = helm.Pin("glance", "9.9.9")
        chart = charts.get((cluster.folder / "other").as_uri(), pin).path
    if part == "chart":
        chart = pathlib.Path("nowhere.tgz")
    values = (
        {**arguments.values, "by": "hand"} if part == "values" else arguments.values
    )
    run = helm.Upgrade(
        GLANCE, ground.NAMESPACE, chart, values, arguments.labels, 1, limit_s=1
    )
    cluster.clock.seconds += 1000
    cluster.helm.upgrade(run, threading.Event())
    cluster.helm.runs.clear()
    process.settle()
    assert cluster.helm.runs == [f"upgrade {GLANCE}"]
    assert "by" not in cluster.helm.upgrades[GLANCE].values
    assert cluster.condition("Applied")["status"] == "True"
    assert cluster.deployed() == RELEASES


def test_numbers_that_helm_writes_in_another_way_are_no_change(
    installed_version: Installed,
) -> None:
    """1 and 1.0, and a null that helm drops; also after a restart."""
    cluster = installed_version("gazpacho")
    own = {"a": 1, "b": None, "c": [2.0, 10**3]}
    chart = graph.CHARTS["image"][0]
    cluster.change(services={"image": {chart: {"values": own}}})
    Process(cluster).settle()
    cluster.helm.runs.clear()
    Process(cluster).settle()
    assert cluster.helm.runs == []
