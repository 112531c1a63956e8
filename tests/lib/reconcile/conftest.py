"""A clock that moves when told, and what the loops write to the log."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import prometheus_client
import pytest
import structlog

from lib.reconcile import metrics


class FakeClock:
    """Monotonic seconds that move only by `pass_by`."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture()
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture()
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture()
def reconcile_metrics(
    registry: prometheus_client.CollectorRegistry,
) -> metrics.Metrics:
    return metrics.Metrics(registry)


@pytest.fixture()
def log() -> Iterator[list[dict[str, object]]]:
    """Give the list of entries logged so far."""
    merge = structlog.contextvars.merge_contextvars
    with structlog.testing.capture_logs(processors=[merge]) as entries:
        yield entries  # type: ignore[misc] # a MutableMapping of the same


Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture()
def eventually() -> Eventually:
    """Give a function that waits until something holds, and fails after 10 s."""

    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end, "it never came to hold"
            time.sleep(0.002)

    return wait


Running = Callable[[Callable[[threading.Event], None]], threading.Event]


@pytest.fixture()
def running() -> Iterator[Running]:
    """Give a function that runs a loop in a thread until the test ends."""
    with contextlib.ExitStack() as stack:

        def start(run: Callable[[threading.Event], None]) -> threading.Event:
            stop = threading.Event()
            thread = threading.Thread(target=run, args=(stop,))
            thread.start()
            stack.callback(thread.join, 20)
            stack.callback(stop.set)
            return stop

        yield start
