"""How often a load balancer is polled while Octavia changes it."""

import random

import pytest

from lib.cloud.openstack.load_balancers import pace

ID = "balancer"


def change(paced: pace.Pace, took_s: float) -> tuple[int, float]:
    """Poll until a change of this duration has ended; return the polls and the delay.

    Beyond the end of the change, in seconds.
    """
    at, polls = paced.began(ID), 1
    while at < took_s:
        wait_s = paced.closed(ID, at)
        assert wait_s >= pace.FIRST_POLL_S
        at, polls = at + wait_s, polls + 1
    paced.ended(ID, at)
    return polls, at - took_s


@pytest.mark.parametrize("took_s", [0.1, 1.0, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0])
def test_changes_that_take_equally_long_are_polled_twice_at_most(took_s: float) -> None:
    """On average, after the first one; and the end is observed soon."""
    paced = pace.Pace()
    first, _ = change(paced, took_s)
    rows = [change(paced, took_s) for _ in range(20)]
    print(took_s, first, rows)
    assert max(polls for polls, _ in rows) <= 3
    assert sum(polls for polls, _ in rows) <= 2 * len(rows)
    assert max(late for _, late in rows) <= pace.LAST_POLL_S + 0.2 * took_s


def test_the_polls_of_a_change_do_not_grow_with_its_duration() -> None:
    """Durations that vary by a fifth; without a history there are many polls."""
    chance = random.Random(14)  # noqa: S311 # inputs that repeat
    for took_s in (5.0, 30.0, 120.0, 300.0):
        paced = pace.Pace()
        first, _ = change(paced, took_s)
        polls = [change(paced, took_s * chance.uniform(0.9, 1.1))[0] for _ in range(50)]
        print(f"{took_s:5.0f} s: first {first}, then {sum(polls) / 50} polls")
        assert sum(polls) / 50 <= 3.5


@pytest.mark.parametrize("slow_s", [30.0, 60.0, 300.0])
def test_an_octavia_that_is_fast_again_is_noticed_soon(slow_s: float) -> None:
    """The first fast change is observed within a minute or a quarter of the time."""
    paced = pace.Pace()
    for _ in range(4):
        change(paced, slow_s)
    late = [change(paced, 2.0)[1] for _ in range(8)]
    print(slow_s, late)
    assert late[0] <= max(1.2 * pace.LONG_S, 0.3 * slow_s)
    assert late[-1] <= pace.LAST_POLL_S


def test_only_own_changes_are_a_history() -> None:
    """Creations, and changes of others, take longer."""
    paced = pace.Pace()
    paced.closed(ID, 89.0)
    paced.ended(ID, 90.0)
    assert paced.began(ID) == pace.FIRST_POLL_S
    paced.ended(ID, 20.0)
    assert paced.began(ID) == 20.0
    paced.ended(ID, 20.0)
    before = paced.closed(ID, 3.0)
    assert before == pace.poll_after_s(3.0)
    paced.forget(ID)
    assert paced.began(ID) == pace.FIRST_POLL_S


def test_the_number_of_histories_is_bounded() -> None:
    """Load balancers come and go for years."""
    paced = pace.Pace()
    for number in range(pace.MOST + 1):
        paced.began(str(number))
        paced.ended(str(number), 10.0)
    assert paced.began("0") == pace.FIRST_POLL_S
    assert paced.began(str(pace.MOST)) == 10.0
