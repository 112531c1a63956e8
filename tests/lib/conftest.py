"""What tests of many rooms share: a clock, patience, a loop's life."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest


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


Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture()
def eventually() -> Eventually:
    """Return a function that waits until something holds, and fails after 10 s."""

    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end, "it never came to hold"
            time.sleep(0.002)

    return wait


Running = Callable[[Callable[[threading.Event], None]], threading.Event]


@pytest.fixture()
def running() -> Iterator[Running]:
    """Yield a function that runs a loop in a thread until the test ends."""
    with contextlib.ExitStack() as stack:

        def start(run: Callable[[threading.Event], None]) -> threading.Event:
            stop = threading.Event()
            thread = threading.Thread(target=run, args=(stop,))
            thread.start()

            def end() -> None:
                stop.set()
                thread.join(20)
                assert not thread.is_alive(), "it did not stop when told"

            stack.callback(end)
            return stop

        yield start
