"""A parent that is down for two minutes in the middle of a rolling update.

Real: the core of Cluster API with its webhooks, API servers of parent and child, capdvp
and dvp-ccm as they are packaged. The API server of the parent stops; VMs do not.
"""

import time
from collections.abc import Iterator

import pytest

from lib.lab.dvp import kinds
from lib.lab.run import waiting
from tests.harness.machines import life
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.status_history import StatusHistory

DOWN_S = 120.0
COUNT = 3
MEMORY = "320Mi"
Names = frozenset[str]


@pytest.fixture(scope="module")
def capdvp(stage: CapiStage) -> Iterator[CapdvpReplicas]:
    """Run capdvp, and a MachineDeployment."""
    replicas = stage.capdvp()
    try:
        replicas.start()
        stage.fleet.create_cluster()
        stage.fleet.create_template("small")
        stage.fleet.create_template("larger", memory=MEMORY)
        stage.fleet.create_deployment("small", COUNT)
        stage.fleet.until_whole(COUNT)
        yield replicas
    finally:
        replicas.stop()


def begin_rollout(stage: CapiStage, old: Names) -> None:
    """Return while one VM of the old template and one of the new one are in progress.

    The second new VM is requested when the first one runs, and an old one is deleted.
    """
    fleet = stage.fleet
    fleet.roll("larger", surge=1)

    def is_in_the_middle() -> bool:
        new = fleet.picture().machines - old
        return len(new) == 2

    waiting.until("a second Machine is new", is_in_the_middle)


def test_a_rollout_survives_an_outage_of_the_parent(
    stage: CapiStage, capdvp: CapdvpReplicas
) -> None:
    """No duplicate, no leftover, no lost Node; no status of a Machine goes back."""
    fleet, history = stage.fleet, StatusHistory()
    old = fleet.picture().machines
    process = capdvp.process()
    with history.watched(fleet.api):
        begin_rollout(stage, old)
        with stage.parent.stopped():
            time.sleep(DOWN_S)
            count = len(fleet.machines())
        fleet.until_answered()
        began = time.monotonic()
        after = fleet.until_whole(COUNT, without=old)
        took_s = time.monotonic() - began
    print(
        f"{count} Machines during {DOWN_S:.0f} s; whole {took_s:.1f} s later: {after}"
    )
    print(f"{history.count()} versions, going back: {history.reversals()}")
    assert not history.reversals()
    assert not stage.duplicates()
    vms = fleet.in_parent.all(kinds.MACHINES)
    assert {vm["spec"]["memory"]["size"] for vm in vms} == {MEMORY}
    assert capdvp.process().pid == process.pid
    print(life.delete_cluster(fleet))
    assert not stage.duplicates()
