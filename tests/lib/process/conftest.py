"""A key pair, what is logged, and waiting for what other threads do."""

import datetime
import time
from collections.abc import Callable, Iterator

import pytest
import structlog

from lib.process import certificates


@pytest.fixture()
def make_pair() -> Callable[[], certificates.Pair]:
    """Give a function that makes a key pair for loopback."""

    def make() -> certificates.Pair:
        now = datetime.datetime.now(datetime.UTC)
        return certificates.self_signed(["localhost", "127.0.0.1"], now)

    return make


@pytest.fixture()
def log() -> Iterator[list[dict[str, object]]]:
    """Give the list of entries logged so far."""
    with structlog.testing.capture_logs() as entries:
        yield entries  # type: ignore[misc] # a MutableMapping of the same


@pytest.fixture()
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Give a function that waits until something holds, and fails after 10 s."""

    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end, "it never came to hold"
            time.sleep(0.002)

    return wait
