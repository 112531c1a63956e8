"""Polls grow with the age of a wait, and follow what former ones have taken."""

import itertools
from collections.abc import Iterator

from lib.cloud.support import poll_times


def polls(expected_s: float | None = None) -> Iterator[float]:
    """Yield the ages at which an operation that never ends is asked for."""
    age = 0.0
    while True:
        age += poll_times.after_s(age, expected_s)
        yield age


def count_until(end_s: float, expected_s: float | None = None) -> int:
    return sum(1 for _ in itertools.takewhile(lambda at: at < end_s, polls(expected_s)))


def test_the_first_poll_is_after_a_second_or_a_quarter_of_what_is_expected() -> None:
    assert next(polls()) == 1
    assert next(polls(2)) == 1
    assert next(polls(60)) == 15


def test_a_wait_of_half_a_minute_takes_few_polls_when_it_is_expected() -> None:
    assert count_until(30) <= 21
    assert count_until(30, 30) <= 6


def test_the_end_is_noticed_within_a_tenth_of_the_duration() -> None:
    for expected_s in (None, 30.0, 60.0):
        for end_s in (30.0, 33.0, 47.0, 60.0, 100.0):
            late_s = next(at for at in polls(expected_s) if at >= end_s) - end_s
            if expected_s is None or end_s >= expected_s:
                assert late_s <= max(1.0, 0.1 * end_s)


def test_intervals_never_exceed_a_quarter_of_a_minute_when_late() -> None:
    ages = list(itertools.takewhile(lambda at: at < 3000, polls()))
    gaps = [later - sooner for sooner, later in itertools.pairwise(ages)]
    assert max(gaps) <= poll_times.LONGEST_S + 0.001


def test_a_shorter_duration_counts_at_once_and_a_longer_one_slowly() -> None:
    durations = poll_times.Durations()
    assert durations.expected_s("create") is None
    durations.ended("create", 30, 30)
    durations.ended("create", 12, 8)
    assert durations.expected_s("create") == 10
    durations.ended("create", 30, 30)
    assert durations.expected_s("create") == 11


def test_what_had_ended_at_its_first_poll_may_have_ended_sooner() -> None:
    durations = poll_times.Durations()
    durations.ended("create", 30)
    durations.ended("create", 28)
    assert durations.expected_s("create") == 28 * poll_times.AT_ONCE
