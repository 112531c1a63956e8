"""OpenStack 2025.2 to 2026.1 with the real helm: order, gate, refusals, one run each.

The order is read from the log of the workload simulator: when pods of each service have
started. A checkout of openstack-helm is used, if MOORING_OPENSTACK_HELM names one.
"""

import datetime
import itertools
import json
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest

from lib.lab.osdpl import deployment, lab, view
from lib.osdpl.reconcile import upgrade
from lib.osdpl.values import graph
from tests.harness.osdpl.stage import OperatorStage

QUIET_S = 8
ORDERED = [service for service in graph.UPGRADE_ORDER if service in graph.RELEASES]
CHARTS = {
    chart: service for service, charts in graph.CHARTS.items() for chart in charts
}
HELD = "placement/api"
OF_CRON_JOB = re.compile(r"-\d{8}-\w+$")
"""Ends the names of pods that start at their own time."""
Json = dict[str, Any]


def status(site: OperatorStage) -> Json:
    return dict((site.get(deployment.STATUSES, deployment.NAME) or {})["status"])


def versions(site: OperatorStage) -> Mapping[str, str]:
    """Return the OpenStack version of the newest revision of each release."""
    return {
        name: revision.labels.get(upgrade.VERSION_LABEL, "")
        for name, revision in site.newest().items()
    }


def started(site: OperatorStage, since: datetime.datetime) -> dict[str, list[float]]:
    """Return by service when its pods have started since, in seconds, in order."""
    times_by_service: dict[str, list[float]] = {}
    for line in simulated(site):
        words = line.split()
        if len(words) != 3 or words[1] not in ("Start", "Finish"):
            continue
        at = datetime.datetime.fromisoformat(words[0])
        name = words[2].partition("/")[2]
        if at >= since and not OF_CRON_JOB.search(name):
            seconds = (at - since).total_seconds()
            times_by_service.setdefault(service_of(name), []).append(seconds)
    return {service: sorted(times) for service, times in times_by_service.items()}


def simulated(site: OperatorStage) -> list[str]:
    """Return the log of the workload simulator by lines."""
    return (site.where.log / f"{lab.SIMULATOR}.log").read_text().splitlines()


def service_of(pod: str) -> str:
    """Return the service of a pod by the chart that its name begins with."""
    name = pod.removeprefix("openstack-")
    fitting = [chart for chart in CHARTS if name.startswith(chart)]
    return CHARTS[max(fitting, key=len)] if fitting else ""


def test_the_version_before_is_installed(site: OperatorStage, source: str) -> None:
    document = deployment.manifest(source)
    document["spec"]["openstack_version"] = "flamingo"
    began = time.monotonic()
    site.apply(document)
    site.wait_complete()
    print(f"installed after {time.monotonic() - began:.0f} s")
    assert set(versions(site).values()) == {"flamingo"}
    assert set(site.revisions().values()) == {1}


@pytest.fixture(scope="module")
def began(site: OperatorStage) -> datetime.datetime:
    """Begin the upgrade; return when."""
    lines = -1
    while lines != (lines := len(simulated(site))):
        time.sleep(QUIET_S)  # the last Jobs of the installation
    site.hold(HELD)
    at = datetime.datetime.now(datetime.UTC)
    site.patch({"openstack_version": "gazpacho"})
    return at


def test_a_pod_that_is_not_ready_stops_it_exactly_there(
    site: OperatorStage, began: datetime.datetime
) -> None:
    print(f"begun at {began}")
    upgrade = site.wait(
        "the status names the workload that is awaited",
        lambda: awaited(site, "placement-api"),
    )
    print(upgrade)
    assert (upgrade["from"], upgrade["to"]) == ("flamingo", "gazpacho")
    assert upgrade["service"] == "placement"
    before = site.revisions()
    time.sleep(QUIET_S)
    assert site.revisions() == before
    now = versions(site)
    upgraded = {"openstack-keystone", "openstack-placement"}
    assert {name for name, version in now.items() if version == "gazpacho"} == upgraded
    services = status(site)["services"]
    assert services["image"]["openstack_version"] == "flamingo"
    assert services["identity"]["openstack_version"] == "gazpacho"


def awaited(site: OperatorStage, workload: str) -> Json:
    upgrade = status(site)["osdpl"].get("upgrade", {})
    return dict(upgrade) if workload in upgrade.get("waiting_for", "") else {}


def test_another_change_is_refused_meanwhile(site: OperatorStage) -> None:
    before = site.revisions()
    site.patch({"region_name": "Elsewhere"})
    message = site.wait(
        "the change is refused",
        lambda: refusal(site),
    )
    assert "spec.region_name: " in message
    assert site.revisions() == before
    site.patch({"region_name": "RegionOne"})
    site.wait("it is accepted again", lambda: not refusal(site))


def refusal(site: OperatorStage) -> str:
    condition = site.condition("Accepted")
    return str(condition["message"]) if condition["status"] == "False" else ""


def test_the_services_follow_each_other(
    site: OperatorStage, began: datetime.datetime
) -> None:
    site.hold()
    from_hold = time.monotonic()
    site.wait(
        "all releases are of the new version",
        lambda: set(versions(site).values()) == {"gazpacho"},
    )
    site.wait_complete()
    print(f"upgraded {time.monotonic() - from_hold:.0f} s after the pod was released")
    times = started(site, began)
    for service in ORDERED:
        first, last = times[service][0], times[service][-1]
        print(f"{service:12} {first:6.1f} to {last:6.1f} s, {len(times[service])} pods")
    for before, after in itertools.pairwise(ORDERED):
        assert times[before][-1] <= times[after][0], f"{before} before {after}"
    others = [
        time for service in times if service not in ORDERED for time in times[service]
    ]
    assert all(time >= times[ORDERED[-1]][0] for time in others)


def test_each_release_was_upgraded_once(site: OperatorStage) -> None:
    revisions = site.revisions()
    print(json.dumps(dict(revisions)))
    assert set(revisions.values()) <= {1, 2}
    same = {name for name, number in revisions.items() if number == 1}
    print(f"same values for both versions: {sorted(same)}")
    assert {SERVICE[name] for name in same}.isdisjoint(
        set(ORDERED) - {"networking", "compute"}
    )
    images = {
        container["image"].rpartition(":")[2]
        for kind in view.WORKLOADS
        for item in site.items(kind)
        for container in item["spec"]["template"]["spec"]["containers"]
    }
    assert not {image for image in images if image.startswith("2025.2")}
    current = status(site)
    assert "upgrade" not in current["osdpl"]
    assert current["osdpl"]["state"] == "APPLIED"


SERVICE = {
    release: service
    for service, releases in graph.RELEASES.items()
    for release, _ in releases
}


def test_there_is_no_way_back(site: OperatorStage) -> None:
    before = site.revisions()
    site.patch({"openstack_version": "flamingo"})
    message = site.wait("it is refused", lambda: refusal(site))
    assert "there is no downgrade" in message
    site.patch({"openstack_version": "gazpacho"})
    site.wait("it is accepted again", lambda: not refusal(site))
    assert site.revisions() == before
