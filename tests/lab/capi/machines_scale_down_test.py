"""A parent that is away for longer than a deletion may take, while Machines go.

Real: the core of Cluster API with its webhooks, API servers of parent and child, capdvp
and dvp-ccm as they are packaged. All times are a tenth of those of an installation: a
deletion may take one minute instead of ten, and the parent is away for 72 seconds
instead of twelve minutes.
"""

import time
from collections.abc import Iterator

import pytest

from lib.kube import resources
from lib.lab.run import waiting
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.cluster_objects import DVP_MACHINES

LIMIT_S = 60.0
DOWN_S = 72.0
COUNT, LEFT = 3, 1


@pytest.fixture(scope="module")
def capdvp(stage: CapiStage) -> Iterator[CapdvpReplicas]:
    """Run capdvp, and a MachineDeployment."""
    replicas = stage.capdvp(f"--deletion-timeout={LIMIT_S:.0f}s")
    try:
        replicas.start()
        stage.fleet.create_cluster()
        stage.fleet.create_template("small")
        stage.fleet.create_deployment("small", COUNT)
        stage.fleet.until_whole(COUNT)
        yield replicas
    finally:
        replicas.stop()


def ending(stage: CapiStage) -> list[str]:
    """Return the machines that are being deleted."""
    rows = [item["metadata"] for item in stage.fleet.objects.all(DVP_MACHINES)]
    return [row["name"] for row in rows if row.get("deletionTimestamp")]


def test_a_scale_down_during_an_outage_leaves_nothing_behind(
    stage: CapiStage, capdvp: CapdvpReplicas
) -> None:
    """No machine is released before its parts are deleted; then all of them are."""
    fleet, process = stage.fleet, capdvp.process()
    with stage.parent.stopped():
        fleet.scale(LEFT)
        waiting.until("machines end", lambda: len(ending(stage)) == COUNT - LEFT)
        time.sleep(DOWN_S)
        held = ending(stage)
    print(f"{DOWN_S:.0f} s without the parent: {len(held)} machines are held")
    assert len(held) == COUNT - LEFT
    fleet.until_answered()
    began = time.monotonic()
    picture = fleet.until_whole(LEFT, without=held)
    print(f"{picture}, {time.monotonic() - began:.1f} s after the parent is back")
    reasons = {event["reason"] for event in fleet.objects.all(resources.EVENTS)}
    print(sorted(reasons))
    assert "DeletionTimedOut" not in reasons
    assert not stage.duplicates()
    assert capdvp.process().pid == process.pid
