"""osdpl-controller end to end: real API server and helm, simulated workloads.

The tests of this file are one scenario on one cluster, in their order. With a checkout
of openstack-helm in MOORING_OPENSTACK_HELM they install that instead of the lab's set.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.lab import pexes, places, testing
from lib.lab.osdpl import chart_sources, deployment, stage, view
from lib.lab.osdpl.stage import Stage

RELEASES = {
    "openstack-mariadb": "database",
    "openstack-rabbitmq": "messaging",
    "openstack-memcached": "memcached",
    "etcd": "coordination",
    "openstack-keystone": "identity",
    "openstack-glance": "image",
    "openstack-placement": "placement",
    "openstack-neutron": "networking",
    "openstack-openvswitch": "networking",
    "openstack-nova": "compute",
    "openstack-libvirt": "compute",
    "openstack-horizon": "dashboard",
}
AFTER_DATABASE = {
    "openstack-keystone",
    "openstack-glance",
    "openstack-placement",
    "openstack-neutron",
    "openstack-nova",
    "openstack-horizon",
}
REPLICAS = {
    "mariadb-server": 3,
    "openstack-memcached-memcached": 3,
    "etcd-etcd": 3,
    "keystone-api": 3,
    "glance-api": 3,
    "placement-api": 3,
    "neutron-server": 3,
    "nova-api-osapi": 3,
    "horizon": 2,
}
"""Of size tiny."""
SELECTORS = {
    "keystone-api": "openstack-control-plane",
    "neutron-dhcp-agent-default": "openstack-gateway",
    "neutron-l3-agent-default": "openstack-gateway",
    "neutron-metadata-agent-default": "openstack-gateway",
    "neutron-ovs-agent-default": "openvswitch",
    "openvswitch": "openvswitch",
    "nova-compute-default": "openstack-compute-node",
    "libvirt-libvirt-default": "openstack-compute-node",
}
RSS_MAX = 120 * 1024 * 1024
INSTALL_S = 400
QUIET_S = 6


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[Stage]:
    """Run a cluster and the controller until the last test of this file."""
    pex = pexes.beside(pexes.OSDPL)
    with stage.opened(where, pex, testing.shown()) as opened:
        opened.start()
        yield opened


@pytest.fixture(scope="module")
def source(where: places.Places) -> str:
    """Return the address of the charts that are installed."""
    checkout = os.environ.get("MOORING_OPENSTACK_HELM")
    if checkout:
        return checkout
    print("MOORING_OPENSTACK_HELM is not set: only the lab's own charts are used")
    return chart_sources.serve_repository(where)


def test_nothing_is_installed_before_what_it_needs_is_ready(
    site: Stage, source: str
) -> None:
    site.hold("mariadb/server")
    began = time.monotonic()
    site.apply(deployment.manifest(source))
    first = set(RELEASES) - AFTER_DATABASE
    site.wait(
        f"{first} are deployed",
        lambda: first <= {row.release for row in site.observe().rows if row.revision},
        120,
    )
    time.sleep(3)
    assert not AFTER_DATABASE & site.revisions().keys()
    site.wait(
        "keystone is shown to wait for the database",
        lambda: "mariadb-server"
        in {row.release: row.waiting_for for row in site.observe().rows}.get(
            "openstack-keystone", ""
        ),
        180,
    )
    site.hold()
    print(f"first releases after {time.monotonic() - began:.1f} s")


def test_all_releases_are_deployed_and_all_workloads_ready(site: Stage) -> None:
    began = time.monotonic()
    observed = site.wait_complete(INSTALL_S)
    print(f"the other releases took {time.monotonic() - began:.1f} s")
    assert {row.release: row.service for row in observed.rows} == RELEASES
    assert all(row.workloads for row in observed.rows)
    # One run of helm each: a second one would have made a second revision.
    assert set(site.revisions().values()) == {1}


def workloads(site: Stage) -> dict[str, dict[str, Any]]:
    return {
        item["metadata"]["name"]: item["spec"]
        for kind in view.WORKLOADS
        for item in site.items(kind)
    }


def test_replicas_images_and_nodes_are_as_specified(site: Stage) -> None:
    found = workloads(site)
    assert {name: found[name]["replicas"] for name in REPLICAS} == REPLICAS
    selectors = {
        name: next(iter(found[name]["template"]["spec"]["nodeSelector"]))
        for name in SELECTORS
    }
    assert selectors == SELECTORS
    images = {
        container["image"]
        for spec in found.values()
        for container in spec["template"]["spec"]["containers"]
    }
    openstack = {image for image in images if "/airshipit/" in image}
    releases = {
        image.rpartition(":")[2]
        for image in openstack
        if image.rpartition(":")[0].rpartition("/")[2]
        in ("keystone", "glance", "placement", "neutron", "nova", "horizon")
    }
    assert releases == {"2026.1-ubuntu_noble"}


def test_no_secret_is_a_public_one(site: Stage) -> None:
    secrets = site.secrets()
    assert {"keystone-etc", "nova-etc", "neutron-etc"} <= secrets.keys()
    public = {"password", "openstack-cookie", "9aee62c0-5253-4a86-b189-e0fb71fa503c"}
    leaks = {
        (name, key)
        for name, content in secrets.items()
        for key, text in content.items()
        if text in public
    }
    assert leaks == set()


def test_the_status_says_the_same_as_the_cluster(site: Stage) -> None:
    status = site.get(deployment.STATUSES, deployment.NAME)
    assert status is not None
    services = status["status"]["services"]
    assert {name: row["state"] for name, row in services.items()} == dict.fromkeys(
        RELEASES.values(), "APPLIED"
    )
    for bundle in site.items(deployment.BUNDLES):
        assert "values" not in json.dumps(bundle["spec"])
    assert site.condition("Accepted")["status"] == "True"
    assert site.condition("Applied")["status"] == "True"


def test_no_secret_is_in_a_log_event_or_status(site: Stage) -> None:
    passwords = {
        text
        for name, content in site.secrets().items()
        if name.startswith("generated-") or name == "openstack-admin-users"
        for value in content.values()
        for text in leaves(value)
        if len(text) >= 16
    }
    assert len(passwords) > 20
    public = [
        site.log(),
        *(json.dumps(item) for item in site.items(deployment.BUNDLES)),
        *(json.dumps(item) for item in site.items(deployment.STATUSES)),
        *(json.dumps(item) for item in site.items(deployment.DEPLOYMENTS)),
    ]
    for text in public:
        assert not [password for password in passwords if password in text]


def leaves(text: str) -> Iterator[str]:
    """Return the texts of a Secret's value, which may be JSON."""
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, str):
            yield value


def test_without_changes_nothing_is_requested(site: Stage) -> None:
    before = len(site.requests())
    time.sleep(QUIET_S)
    asked = site.requests()[before:]
    assert [row for row in asked if row.verb != "watch"] == []
    resident = site.process().memory_info().rss
    print(f"RSS {resident / 1024 / 1024:.0f} MiB")
    assert resident < RSS_MAX


def test_a_restart_runs_no_helm_and_writes_nothing(site: Stage) -> None:
    revisions = site.revisions()
    site.stop()
    before = len(site.requests())
    site.start()
    time.sleep(QUIET_S)
    asked = site.requests()[before:]
    writes = [row for row in asked if row.verb in ("create", "update", "patch")]
    reviews = ("tokenreviews", "subjectaccessreviews")
    # The check that privileged pods are allowed is a dry run.
    assert [row for row in writes if row.resource not in (*reviews, "pods")] == []
    listed = [row.resource for row in asked if row.verb == "list"]
    assert sorted(listed) == sorted(set(listed))
    assert site.revisions() == revisions
    assert site.observe().is_complete


def test_one_changed_value_is_one_run_of_helm(site: Stage) -> None:
    before = site.revisions()
    replicas = {"pod": {"replicas": {"api": 2}}}
    site.patch({"services": {"identity": {"keystone": {"values": replicas}}}})
    site.wait(
        "keystone has 2 replicas",
        lambda: workloads(site)["keystone-api"]["replicas"] == 2,
        60,
    )
    site.wait_complete(60)
    assert site.revisions() == {**before, "openstack-keystone": 2}


def test_a_killed_controller_is_completed_by_its_successor(site: Stage) -> None:
    before = site.revisions()
    site.patch({"region_name": "RegionTwo"})
    changed = site.wait(
        "some release is upgraded",
        lambda: {
            name for name, number in site.revisions().items() if number > before[name]
        },
        60,
    )
    site.kill()
    print(f"killed after {len(changed)} upgrades had begun")
    site.start()
    site.wait_complete(INSTALL_S)
    states = {row.release: row.state for row in site.observe().rows}
    assert states == dict.fromkeys(RELEASES, "deployed")
    regions = {
        content["endpoints.identity.auth.admin.region_name"]
        for name, content in site.secrets().items()
        if "endpoints.identity.auth.admin.region_name" in content
    }
    assert regions <= {"RegionTwo"}


def test_a_second_deployment_is_refused_and_nothing_else_happens(
    site: Stage, source: str
) -> None:
    before = site.revisions()
    site.apply(deployment.manifest(source, "second"))
    condition = site.wait(
        "the second has a condition", lambda: site.condition("Accepted", "second"), 30
    )
    assert condition["status"] == "False"
    assert condition["reason"] == "SecondDeployment"
    assert deployment.NAME in condition["message"]
    site.delete(deployment.DEPLOYMENTS, "second")
    site.wait(
        "the second is deleted",
        lambda: site.get(deployment.DEPLOYMENTS, "second") is None,
        30,
    )
    assert site.revisions() == before
    assert site.observe().is_complete
