"""Faults of the real control plane: kills, API server, chart source, helm, Jobs, disk.

After each one all converges: no release is left pending, and no run of helm that had
ended is repeated. The moments of the kills are random, from a seed that is printed.
A checkout of openstack-helm is installed, if MOORING_OPENSTACK_HELM names one.
"""

import collections
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

import psutil
import pytest

from lib.helm import model as helm
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.kube import control_plane
from lib.lab.osdpl import chart_sources, controller, deployment
from lib.lab.run import processes, progress
from lib.osdpl.api import settings
from lib.osdpl.reconcile import states, upgrade
from lib.osdpl.values import graph
from tests.harness import testing
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import OperatorStage

SEED = int(os.environ.get("MOORING_SEED", "1"))
KILLS = 10
"""Of the installation, and again of the upgrade."""
PATIENCE_S = 300
SILENCE_S = 8.0
ORDERED = [service for service in graph.UPGRADE_ORDER if service in graph.RELEASES]
RELEASES = {
    release: service
    for service, releases in graph.RELEASES.items()
    for release, _ in releases
}


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[OperatorStage]:
    """Run a cluster; the controller is started by the first test."""
    pex = pexes.beside(pexes.OSDPL)
    with stage.opened(where, pex, testing.shown()) as opened:
        opened.configure(
            settings.CONFIG_MAP,
            **{"01.ini": "[osctl]\nwait_application_ready_delay = 1\n"},
        )
        yield opened


def require_converged(site: OperatorStage) -> None:
    """Wait until all is applied; require that nothing is pending or was done twice."""
    site.wait("the newest spec is applied", lambda: is_applied(site))
    site.wait_complete()
    history = site.history()
    assert {revision.name for revision in history} == set(RELEASES)
    pending = [
        revision.secret_name for revision in history if revision.status.is_pending
    ]
    assert pending == []
    runs = collections.Counter(
        (revision.name, revision.labels[states.HASH_LABEL])
        for revision in history
        if revision.status in (helm.Status.DEPLOYED, helm.Status.SUPERSEDED)
    )
    assert {key: count for key, count in runs.items() if count > 1} == {}
    helpers = [child for child in site.process().children() if child.is_running()]
    assert helpers == []


def is_applied(site: OperatorStage) -> bool:
    """Report whether the condition is about the newest generation, and True."""
    owner = site.get(deployment.DEPLOYMENTS, deployment.NAME) or {}
    condition = site.condition("Applied")
    generation = owner["metadata"]["generation"]
    is_new = bool(condition.get("observedGeneration") == generation)
    return is_new and bool(condition["status"] == "True")


def kill_often(site: OperatorStage, chance: random.Random, count: int) -> str:
    """Kill the controller at random moments, and start it again; return the moments."""
    moments = [chance.uniform(0.0, 5.0) for _ in range(count)]
    for moment in moments:
        time.sleep(moment)
        children = site.process().children(recursive=True)
        os.kill(site.process().pid, 9)
        gone, left = psutil.wait_procs(children, timeout=30)
        assert left == [], "helm outlived the controller"
        processes.stop(site.where, [controller.NAME])
        site.start()
    return ", ".join(f"{moment:.1f}" for moment in moments) + " s"


def test_an_installation_killed_at_random_moments(
    site: OperatorStage, source: str
) -> None:
    document = deployment.manifest(source)
    document["spec"]["openstack_version"] = "flamingo"
    site.start()
    site.apply(document)
    chance = random.Random(SEED)  # noqa: S311 # repeatable
    began = time.monotonic()
    moments = kill_often(site, chance, KILLS)
    print(f"seed {SEED}: killed after {moments}")
    require_converged(site)
    print(f"installed after {time.monotonic() - began:.0f} s")


def test_an_upgrade_killed_at_random_moments(site: OperatorStage) -> None:
    site.patch({"openstack_version": "gazpacho"})
    chance = random.Random(SEED + 1)  # noqa: S311 # repeatable
    began = time.monotonic()
    moments = kill_often(site, chance, KILLS)
    print(f"seed {SEED + 1}: killed after {moments}")
    require_converged(site)
    print(f"upgraded after {time.monotonic() - began:.0f} s")
    newest = site.newest()
    versions = {revision.labels[upgrade.VERSION_LABEL] for revision in newest.values()}
    assert versions == {"gazpacho"}
    begun: dict[str, list[Any]] = {}
    for name, revision in newest.items():
        # A release that only got its label was not run again.
        if revision.modified_at is not None and revision.number > 1:
            begun.setdefault(RELEASES[name], []).append(revision.modified_at)
    for before, after in itertools.pairwise(ORDERED):
        assert max(begun[before]) <= min(begun[after]), f"{before} before {after}"


def change(site: OperatorStage, region: str) -> Mapping[str, int]:
    """Change a value of nearly every release; return the revisions before."""
    before = site.revisions()
    site.patch({"region_name": region})
    return before


def test_an_api_server_that_is_silent_and_restarted(
    site: OperatorStage, where: places.Places
) -> None:
    """A controller that loses its Lease exits; Kubernetes starts it again."""
    change(site, "RegionTwo")
    server = processes.find(where, "kube-apiserver")
    assert server is not None
    server.suspend()
    time.sleep(SILENCE_S)
    server.resume()
    time.sleep(1)
    processes.stop(where, ["kube-apiserver"])
    control_plane.up(where, progress.Silent())
    restart(site)
    require_converged(site)


def restart(site: OperatorStage) -> None:
    """Start the controller if it has exited, as Kubernetes does."""
    deadline = time.monotonic() + PATIENCE_S
    while not controller.is_ready(site.where):
        if processes.find(site.where, controller.NAME) is None:
            site.start()
        assert time.monotonic() < deadline
        time.sleep(1)


@pytest.mark.skipif(
    "MOORING_OPENSTACK_HELM" in os.environ,
    reason="the lab's own repository is removed, not a checkout",
)
def test_a_chart_source_that_was_removed(
    site: OperatorStage, where: places.Places
) -> None:
    """Also the cache is empty: the release waits, all else goes on."""
    site.stop()
    processes.stop(where, [chart_sources.REPOSITORY])
    shutil.rmtree(where.state / "charts" / "charts")
    site.start()
    before = site.revisions()
    value = {"values": {"pod": {"replicas": {"api": 2}}}}
    site.patch({"services": {"identity": {"keystone": value}}})
    site.wait(
        "the condition names the source",
        lambda: "127.0.0.1" in site.condition("Applied").get("message", ""),
    )
    assert site.revisions() == before
    chart_sources.serve_repository(where)
    require_converged(site)
    assert site.revisions() == {
        **before,
        "openstack-keystone": before["openstack-keystone"] + 1,
    }


def replicas(site: OperatorStage, count: int) -> None:
    """Change a value of glance only."""
    value = {"values": {"pod": {"replicas": {"api": count}}}}
    site.patch({"services": {"image": {"glance": value}}})


def test_a_helm_that_hangs(
    site: OperatorStage, where: places.Places, tmp_path: pathlib.Path
) -> None:
    """It is ended with its children after the time-out and a minute."""
    hangs = tmp_path / "hangs"
    hangs.touch()
    wrapper = tmp_path / "helm"
    real = programs.path(where, "helm")
    wrapper.write_text(
        f'#!/bin/sh\nif [ "$1" = upgrade ] && [ -e {hangs} ]; then\n'
        f'  sleep 3600\nfi\nexec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    site.stop()
    timeout = "[osctl]\nwait_application_ready_delay = 1\n"
    site.configure(
        settings.CONFIG_MAP,
        **{"01.ini": f"{timeout}[helmbundle]\nhelm_cmd_timeout = 3\n"},
    )
    site.start(f"--helm={wrapper}")
    replicas(site, 2)
    site.wait(
        "the condition says that it was not finished",
        lambda: "not finished in time" in site.condition("Applied").get("message", ""),
    )
    hangs.unlink()
    site.wait("no child is left", lambda: not site.process().children())
    require_converged(site)


def test_a_job_that_fails_twice(site: OperatorStage) -> None:
    """With a time-out of 3 s, since a Job has six attempts of its own."""
    site.fail("glance/db-sync")
    failures: set[str] = set()

    def failed_twice() -> bool:
        for revision in site.history():
            is_failed = revision.status is helm.Status.FAILED
            if revision.name == "openstack-glance" and is_failed:
                failures.add(revision.secret_uid)
        return len(failures) >= 2

    replicas(site, 3)
    site.wait("helm has failed twice", failed_twice)
    message = site.condition("Applied")["message"]
    print(message)
    assert "openstack-glance" in message
    site.fail()
    require_converged(site)


def test_a_disk_without_space_for_values(
    site: OperatorStage, where: places.Places
) -> None:
    site.stop()
    site.configure(settings.CONFIG_MAP, **{"01.ini": None})
    folder = where.state / "charts" / "helm"
    folder.mkdir(parents=True, exist_ok=True)
    mount = ("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder))
    subprocess.run(mount, check=True, timeout=900)
    try:
        (folder / "full").write_bytes(b"x" * 4096)
        site.start()
        replicas(site, 2)
        site.wait(
            "the condition names the disk",
            lambda: "No space left" in site.condition("Applied").get("message", ""),
        )
        assert not list(folder.glob("values-*"))
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True, timeout=900)
    require_converged(site)
