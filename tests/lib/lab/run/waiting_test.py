"""Waits end with the condition, report every minute, and end what hangs."""

import pytest

from lib.lab import errors
from lib.lab.run import waiting


class Clock:
    """Time that passes when it is slept."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.reports: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def timing(self) -> waiting.Timing:
        return waiting.Timing(lambda: self.now_s, self.sleep, self.reports.append)


def test_a_condition_that_holds_needs_no_wait() -> None:
    assert waiting.until("it", lambda: True, timing=Clock().timing()) == 0


def test_a_wait_returns_its_seconds() -> None:
    clock = Clock()
    took_s = waiting.until(
        "it", lambda: clock.now_s >= 42, poll_s=1, timing=clock.timing()
    )
    assert took_s == 42
    assert clock.reports == []


def test_a_long_wait_reports_every_minute_with_the_present_state() -> None:
    clock = Clock()
    waiting.until(
        lambda: f"{clock.now_s / 10:.0f} of 30 Nodes",
        lambda: clock.now_s >= 180,
        poll_s=10,
        timing=clock.timing(),
    )
    assert clock.reports == [
        "still waiting after 60 s: 6 of 30 Nodes",
        "still waiting after 120 s: 12 of 30 Nodes",
    ]


def test_a_condition_that_never_holds_ends_after_a_quarter_of_an_hour() -> None:
    """The message has the condition and the limit."""
    clock = Clock()
    with pytest.raises(errors.LabError, match="not within 900 s: a load balancer"):
        waiting.until("a load balancer", lambda: [], poll_s=10, timing=clock.timing())
    assert clock.now_s == 910
    assert len(clock.reports) == 15
