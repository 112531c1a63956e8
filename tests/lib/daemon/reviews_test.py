"""Callers with invented tokens take neither connections nor reviews from others."""

import contextlib

import pytest

from lib.daemon import reviews


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def count(limit: reviews.ReviewLimit, caller: str, tries: int) -> int:
    """Count the reviews that are admitted one after the other."""
    admitted = 0
    for _ in range(tries):
        with contextlib.suppress(reviews.Overloaded), limit.admitted(caller):
            admitted += 1
    return admitted


def test_reviews_of_unknown_callers_are_limited_in_rate() -> None:
    clock = Clock()
    limit = reviews.ReviewLimit(clock)
    assert count(limit, "invented", 1000) == reviews.BURST
    clock.now += 0.5
    assert count(limit, "invented", 1000) == reviews.PER_S * 0.5
    clock.now += 3600
    assert count(limit, "invented", 1000) == reviews.BURST


def test_reviews_of_unknown_callers_are_limited_in_number() -> None:
    """A TokenReview that takes long does not occupy all connections."""
    limit = reviews.ReviewLimit(Clock())
    with contextlib.ExitStack() as stack:
        for _ in range(reviews.AT_ONCE):
            stack.enter_context(limit.admitted("invented"))
        with pytest.raises(reviews.Overloaded):
            stack.enter_context(limit.admitted("invented"))
    assert count(limit, "invented", 1) == 1, "their places are free again"


def test_a_caller_that_was_authorized_before_has_places_of_its_own() -> None:
    """Prometheus goes on while others flood the port."""
    limit = reviews.ReviewLimit(Clock())
    limit.trust("prometheus")
    with contextlib.ExitStack() as stack:
        for _ in range(reviews.AT_ONCE):
            stack.enter_context(limit.admitted("invented"))
        assert count(limit, "prometheus", 100) == 100
        for _ in range(reviews.KNOWN_AT_ONCE):
            stack.enter_context(limit.admitted("prometheus"))
        with pytest.raises(reviews.Overloaded):
            stack.enter_context(limit.admitted("prometheus"))


def test_known_callers_are_forgotten_oldest_first() -> None:
    limit = reviews.ReviewLimit(Clock())
    for number in range(reviews.KNOWN_MAX + 1):
        limit.trust(f"caller-{number}")
    assert count(limit, "invented", 1000) == reviews.BURST
    assert count(limit, "caller-0", 1) == 0
    assert count(limit, "caller-1", 1) == 1
