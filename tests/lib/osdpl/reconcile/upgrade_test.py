"""An upgrade to another OpenStack version: its order, its gates, and what stops it."""

import json
import threading
from typing import Any

import pytest

from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.helm.fake import helm as fake_helm
from lib.kube import resources
from lib.osdpl.reconcile import upgrade
from lib.osdpl.values import graph
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Death, Installed, Process

STEPS = 40
SERVICES = {
    release: service
    for service, releases in graph.RELEASES.items()
    for release, _ in releases
}
ORDERED = [service for service in graph.UPGRADE_ORDER if service in graph.RELEASES]


@pytest.fixture()
def cluster(installed_version: Installed) -> Cluster:
    """Return a cluster with all releases of the version before."""
    return installed_version("flamingo")


def status(cluster: Cluster) -> dict[str, Any]:
    (document,) = cluster.documents(resources.OPENSTACK_DEPLOYMENT_STATUSES)
    return dict(document["status"])


def versions(cluster: Cluster) -> set[str]:
    """Return the OpenStack versions of the newest revisions."""
    return {
        document["metadata"]["labels"][upgrade.VERSION_LABEL]
        for document in cluster.documents(resources.SECRETS)
        if document["metadata"].get("labels", {}).get("status") == "deployed"
    }


def services(runs: list[str]) -> list[str]:
    """Return the services of runs of helm, in their order, without repetition."""
    names = [SERVICES[run.removeprefix("upgrade ")] for run in runs]
    return list(dict.fromkeys(names))


def steps(process: Process, count: int = STEPS) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


def test_each_service_follows_the_one_before(cluster: Cluster) -> None:
    """One run of helm per release at most; what is the same gets only its label."""
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    process.settle(120)
    runs = cluster.upgrades()
    print("\n".join(runs))
    assert len(runs) == len(set(runs))
    ordered = [service for service in services(runs) if service in ORDERED]
    assert ordered == ORDERED
    assert services(runs)[: len(ORDERED)] == ORDERED, "the others come last"
    assert cluster.deployed() == RELEASES
    assert versions(cluster) == {"gazpacho"}
    observed = status(cluster)
    assert "upgrade" not in observed["osdpl"]
    assert observed["osdpl"]["state"] == "APPLIED"
    done = {item["openstack_version"] for item in observed["services"].values()}
    assert done == {"gazpacho"}
    assert cluster.condition("Applied")["status"] == "True"


def test_the_status_shows_each_step(cluster: Cluster) -> None:
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    observed: dict[str, str] = {}
    for _ in range(STEPS):
        _, wait_s = process.step()
        cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)
        actual = status(cluster)
        if "upgrade" not in actual["osdpl"]:
            continue
        now = actual["osdpl"]["upgrade"]
        assert (now["from"], now["to"]) == ("flamingo", "gazpacho")
        observed[now["service"]] = now["progress"]
        later = (
            ORDERED[ORDERED.index(now["service"]) + 1 :]
            if (now["service"] in ORDERED)
            else []
        )
        for service in later:
            assert actual["services"][service]["openstack_version"] == "flamingo"
    print(observed)
    assert [item for item in observed if item in ORDERED] == ORDERED


@pytest.mark.parametrize("service", ORDERED[:-1])
def test_a_workload_that_is_not_ready_stops_exactly_at_its_step(
    cluster: Cluster, service: str
) -> None:
    release = graph.RELEASES[service][-1][0]
    cluster.workload(release, "api-of-the-test", ready=0)
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    steps(process)
    place = ORDERED.index(service)
    assert services(cluster.upgrades()) == ORDERED[: place + 1]
    observed = status(cluster)
    text = "Deployment api-of-the-test is not Ready: 0/1 pods Ready"
    assert observed["osdpl"]["upgrade"]["service"] == service
    assert observed["osdpl"]["upgrade"]["waiting_for"].startswith(text)
    # The time-out of readiness has passed: the step is reported as failed.
    assert observed["services"][service]["state"] == "FAILED"
    cause = observed["services"][service]["cause"]
    assert cause.startswith(text)
    assert cause.endswith("after 1200 s")
    assert text in cluster.condition("Applied")["message"]
    cluster.workload(release, "api-of-the-test", ready=1)
    process.settle(120)
    assert versions(cluster) == {"gazpacho"}
    assert len(cluster.upgrades()) == len(set(cluster.upgrades()))


def test_a_failed_step_is_repeated_and_never_skipped(cluster: Cluster) -> None:
    error = helm_errors.Failed("upgrade of openstack-glance: Job glance-db-sync failed")
    cluster.helm.faults += [fake_helm.Fault("openstack-glance", error)] * 3
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    began_s = cluster.clock.seconds
    while cluster.helm.faults:
        steps(process, 1)
    steps(process, 1)
    assert services(cluster.upgrades()) == ORDERED[: ORDERED.index("image") + 1]
    assert "glance-db-sync" in status(cluster)["osdpl"]["upgrade"]["waiting_for"]
    process.settle(120)
    assert cluster.upgrades().count("upgrade openstack-glance") == 4
    assert cluster.clock.seconds - began_s < 600
    assert services(cluster.upgrades())[: len(ORDERED)] == ORDERED
    assert versions(cluster) == {"gazpacho"}


@pytest.mark.parametrize("moment", ["begin", "pending", "end"])
@pytest.mark.parametrize("service", ORDERED)
def test_a_killed_upgrade_is_continued_in_order(
    cluster: Cluster, service: str, moment: str
) -> None:
    release = graph.RELEASES[service][-1][0]
    cluster.change(openstack_version="gazpacho")
    cluster.death = (moment, release)
    with pytest.raises(Death):
        Process(cluster).settle(120)
    Process(cluster).settle(120)
    assert services(cluster.upgrades())[: len(ORDERED)] == ORDERED
    extra = len(cluster.upgrades()) - len(set(cluster.upgrades()))
    assert extra == (0 if moment == "end" else 1)
    assert versions(cluster) == {"gazpacho"}
    assert cluster.deployed() == RELEASES


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_order_survives_the_loss_of_the_status(
    cluster: Cluster, is_lost: bool
) -> None:
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    steps(process, 4)
    assert services(cluster.upgrades()) == ORDERED[: len(services(cluster.upgrades()))]
    if is_lost:
        statuses = resources.OPENSTACK_DEPLOYMENT_STATUSES
        cluster.api.remove(statuses, "osh-dev", ground.NAMESPACE)
    Process(cluster).settle(120)
    assert services(cluster.upgrades())[: len(ORDERED)] == ORDERED


def begin(cluster: Cluster) -> Process:
    """Begin an upgrade that does not end, since a workload is not Ready."""
    cluster.workload("openstack-glance", "api-of-the-test", ready=0)
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    steps(process, 12)
    assert services(cluster.upgrades()) == ORDERED[: ORDERED.index("image") + 1]
    return process


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("region_name", {"region_name": "Elsewhere"}),
        ("size", {"size": "small"}),
        ("services", {"services": {"identity": {"keystone": {"values": {"a": 1}}}}}),
        ("features.nova", {"features": {"nova": {"live_migration_interface": "x"}}}),
        ("features.services", {"features": {"services": ["dashboard"]}}),
        ("openstack_version", {"openstack_version": "flamingo"}),
    ],
)
def test_any_other_change_is_refused_until_the_end(
    cluster: Cluster, field: str, change: dict[str, Any]
) -> None:
    """It is named; once it is reverted, or forced, the upgrade goes on."""
    process = begin(cluster)
    before = cluster.deployment()["spec"]
    if "features" in change:
        change = {"features": {**before["features"], **change["features"]}}
    cluster.change(**change)
    cluster.workload("openstack-glance", "api-of-the-test", ready=1)
    runs = list(cluster.helm.runs)
    steps(process, 10)
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == "InvalidSpec"
    assert f"spec.{field}: " in accepted["message"]
    assert cluster.helm.runs == runs
    document = cluster.deployment()
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, {**document, "spec": before})
    process.settle(120)
    assert cluster.condition("Accepted")["status"] == "True"
    assert versions(cluster) == {"gazpacho"}


def test_a_change_can_be_forced(cluster: Cluster) -> None:
    """What is wrong may be a value: without a way out, the upgrade could not end."""
    process = begin(cluster)
    values = {"glance": {"values": {"conf": {"glance": {"DEFAULT": {"debug": 1}}}}}}
    cluster.change(services={"image": values})
    document = cluster.deployment()
    document["metadata"]["annotations"] = {"mooring.io/force": "change"}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    steps(process, 10)
    assert cluster.upgrades().count("upgrade openstack-glance") == 2
    cluster.workload("openstack-glance", "api-of-the-test", ready=1)
    process.settle(120)
    assert versions(cluster) == {"gazpacho"}
    assert services(cluster.upgrades())[: len(ORDERED)] == ORDERED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": "small"}, "spec.size: "),
        ({"region_name": "x"}, "spec.region_name: "),
        (
            {
                "services": {
                    "identity": {
                        "keystone": {"values": {"images": {"tags": {"test": "x"}}}}
                    }
                }
            },
            "spec.services.identity.keystone.values.images.tags: ",
        ),
    ],
)
def test_a_version_does_not_change_together_with_more(
    cluster: Cluster, change: dict[str, Any], words: str
) -> None:
    """Also when no webhook has seen the change."""
    cluster.change(openstack_version="gazpacho", **change)
    process = Process(cluster)
    process.settle(120)
    assert cluster.helm.runs == []
    accepted = cluster.condition("Accepted")
    assert accepted["reason"] == "InvalidSpec"
    assert words in accepted["message"]


def test_a_draft_may_begin_during_an_upgrade(cluster: Cluster) -> None:
    process = begin(cluster)
    cluster.change(draft=True)
    process.settle()
    assert cluster.condition("Applied")["reason"] == "Draft"
    cluster.change(draft=False)
    cluster.workload("openstack-glance", "api-of-the-test", ready=1)
    process.settle(120)
    assert versions(cluster) == {"gazpacho"}


def test_a_new_service_waits_for_its_turn(cluster: Cluster) -> None:
    """Unless services of the order may require it."""
    process = Process(cluster)
    process.settle()
    for release in ("openstack-horizon", "openstack-memcached"):
        run = helm.Uninstall(release, "openstack", 1, limit_s=1)
        cluster.helm.uninstall(run, threading.Event())
    cluster.helm.runs.clear()
    cluster.change(openstack_version="gazpacho")
    process.settle(120)
    runs = cluster.upgrades()
    assert runs[0] == "upgrade openstack-memcached" or runs[1] == (
        "upgrade openstack-memcached"
    )
    ordered = [service for service in services(runs) if service in ORDERED]
    assert ordered == ORDERED
    assert json.dumps(status(cluster)).count("flamingo") == 0
