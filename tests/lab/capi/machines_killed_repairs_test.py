"""Machines on DVP, lost, drained and paused while two replicas of capdvp are killed."""

from tests.harness.machines import killed_replicas, life
from tests.harness.machines.capi_stage import CapiStage

SEED = 167


def test_nothing_is_lost_or_created_twice(stage: CapiStage) -> None:
    """Every action of `life.REPAIRS` is a row; no name ever had two objects."""
    killed_replicas.live(stage, life.REPAIRS, SEED)
