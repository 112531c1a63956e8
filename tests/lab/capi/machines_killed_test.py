"""The life of Machines on DVP while two replicas of capdvp are killed at random."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.dvp.project import Project
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capi_stage, life
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.killed_replicas import KilledReplicas

SEED = 166
KILLS = 10
"""At least."""


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent, project: Project, core: places.Places
) -> Iterator[CapiStage]:
    with capi_stage.opened(parent, project, core) as opened:
        yield opened


def test_nothing_is_lost_or_created_twice(stage: CapiStage) -> None:
    """Every action of `life.ACTIONS` is a row; no name ever had two objects."""
    lived = life.MachineLife(stage.fleet, stage.kubelets)
    capdvp = KilledReplicas(
        stage.where, stage.project, stage.kubeconfig, stage.parent_kubeconfig
    )
    try:
        capdvp.start(2)
        with capdvp.killing(SEED):
            lived.run()
    finally:
        capdvp.stop()
        print(f"{capdvp.kills} kills")
    assert [row.action for row in lived.rows] == list(life.ACTIONS)
    assert capdvp.kills >= KILLS
    assert not stage.duplicates()
