"""When absences are not taken for true, on a clock of the test."""

import pytest

from lib.cloud import absence_limit, errors
from lib.cloud.support import mass_absence

LIMIT = absence_limit.Limit()


class World:
    """Objects that a process has observed for a while."""

    def __init__(self, count: int) -> None:
        self.now_s = 0.0
        self.ids = [f"id-{number}" for number in range(count)]
        self.mass = mass_absence.MassAbsence("volumes", "look", lambda: self.now_s)
        self.mass.observed(self.ids)
        self.now_s += LIMIT.window_s

    def is_credible(self, *ids: str) -> bool:
        try:
            self.mass.check(ids, "find")
        except errors.NotCredible:
            return False
        return True


@pytest.mark.parametrize(
    ("count", "absent", "credible"),
    [
        pytest.param(1, 1, True, id="the only one"),
        pytest.param(3, 3, True, id="a few"),
        pytest.param(4, 4, False, id="more than a few, and all"),
        pytest.param(100, 30, True, id="as many as the percentage allows"),
        pytest.param(100, 56, False, id="most"),
    ],
)
def test_few_absences_are_credible(count: int, absent: int, credible: bool) -> None:
    world = World(count)
    assert all(world.is_credible(id_) for id_ in world.ids[:absent]) == credible


def test_a_list_that_lacks_most_makes_the_first_absence_incredible() -> None:
    """The other objects were not asked for yet."""
    world = World(10)
    world.mass.listed([])
    assert not world.is_credible("id-0")
    world.mass.observed(world.ids)
    assert world.is_credible("id-0")


def test_without_history_only_the_number_counts() -> None:
    world = World(100)
    young = mass_absence.MassAbsence("volumes", "look", lambda: world.now_s)
    young.observed(world.ids)
    world.mass = young
    credible = [world.is_credible(id_) for id_ in world.ids[:5]]
    assert credible == [True, True, True, False, False]


def test_only_few_take_effect_in_a_window() -> None:
    world = World(4)
    for id_ in world.ids[:3]:
        assert world.is_credible(id_)
        world.mass.replaced([id_])
    assert not world.is_credible("id-3")
    world.now_s += LIMIT.window_s
    assert world.is_credible("id-3")


def test_what_was_deleted_on_purpose_counts_for_nothing() -> None:
    world = World(10)
    world.mass.forget(world.ids[:8])
    world.mass.listed(world.ids[8:])
    assert world.is_credible("id-8")


def test_absences_that_nothing_asks_for_end_with_the_window() -> None:
    """Another client deletes many objects that no Service uses any more."""
    world = World(10)
    world.mass.listed(world.ids[8:])
    assert not world.is_credible("id-8")
    world.now_s += LIMIT.window_s + 1
    assert world.is_credible("id-8")
    assert not world.mass.is_known("id-0")
