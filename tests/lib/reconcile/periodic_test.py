"""Periodic passes, on a clock that only moves during waits and work."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import prometheus_client
import pytest

from lib.reconcile import failure, metrics, periodic

Log = Sequence[Mapping[str, object]]
Run = Callable[..., list[float]]


class Clock(Protocol):
    """See conftest.py."""

    def __call__(self) -> float: ...

    def pass_by(self, seconds: float) -> None: ...


class Stop:
    """An event whose wait lets the clock run, and which is set after some waits."""

    def __init__(self, clock: Clock, waits_left: int) -> None:
        self._clock = clock
        self._waits_left = waits_left
        self.waited: list[float] = []

    def is_set(self) -> bool:
        return self._waits_left <= 0

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self._waits_left -= 1
        self.waited.append(timeout)
        self._clock.pass_by(timeout)
        return self.is_set()


@pytest.fixture()
def run(clock: Clock, reconcile_metrics: metrics.ReconcileMetrics) -> Run:
    """Return a function that runs a pass of work_s seconds; it returns start times."""

    def go(
        waits: int, work_s: float = 0.0, sliding: bool = True, at_once: bool = True
    ) -> list[float]:
        starts: list[float] = []

        def work() -> None:
            starts.append(clock() - 1000)
            clock.pass_by(work_s)

        loop = periodic.Periodic(
            "monitor",
            10,
            work,
            reconcile_metrics,
            sliding=sliding,
            at_once=at_once,
            clock=clock,
        )
        loop.run(Stop(clock, waits))
        return starts

    return go


def test_sliding_counts_the_interval_from_the_end(run: Run) -> None:
    assert run(3, work_s=4) == [0, 14, 28]


def test_not_sliding_counts_it_from_the_start(run: Run) -> None:
    assert run(3, work_s=4, sliding=False) == [0, 10, 20]


def test_not_sliding_starts_at_once_after_a_long_pass(run: Run) -> None:
    """Missed calls are not made up for."""
    assert run(3, work_s=25, sliding=False) == [0, 25, 50]


def test_the_first_call_may_wait_an_interval(run: Run) -> None:
    assert run(3, at_once=False) == [10, 20]


def test_nothing_is_called_once_stopped(run: Run) -> None:
    assert run(0) == []
    assert run(1, at_once=False) == []


def test_a_bug_is_logged_counted_and_outlived(
    clock: Clock,
    reconcile_metrics: metrics.ReconcileMetrics,
    registry: prometheus_client.CollectorRegistry,
    log: Log,
) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError

    loop = periodic.Periodic("monitor", 10, work, reconcile_metrics, clock=clock)
    loop.run(Stop(clock, 2))
    assert len(calls) == 2
    (entry,) = log
    assert entry["log_level"] == "error"
    assert isinstance(entry["exc_info"], ZeroDivisionError)
    for outcome in ("unexpected_error", "success"):
        labels = {"controller": "monitor", "outcome": outcome}
        assert registry.get_sample_value("mooring_reconcile_total", labels) == 1


def test_an_expected_error_is_a_warning_without_traceback(
    clock: Clock, reconcile_metrics: metrics.ReconcileMetrics, log: Log
) -> None:
    def work() -> None:
        raise OSError

    loop = periodic.Periodic(
        "monitor",
        10,
        work,
        reconcile_metrics,
        clock=clock,
        failure=lambda error: failure.Failure("no answer"),
    )
    loop.run(Stop(clock, 1))
    (entry,) = log
    assert (entry["log_level"], entry["error"]) == ("warning", "no answer")
    assert "exc_info" not in entry
