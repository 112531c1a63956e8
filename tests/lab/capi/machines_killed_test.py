"""Machines on DVP, created and replaced while two replicas of capdvp are killed."""

from tests.harness.machines import killed_replicas, life
from tests.harness.machines.capi_stage import CapiStage

SEED = 166


def test_nothing_is_lost_or_created_twice(stage: CapiStage) -> None:
    """Every action of `life.ROLLOUTS` is a row; no name ever had two objects."""
    killed_replicas.live(stage, life.ROLLOUTS, SEED)


def test_all_actions_are_in_one_of_the_lives() -> None:
    assert {*life.ROLLOUTS, *life.REPAIRS} == set(life.ACTIONS)
