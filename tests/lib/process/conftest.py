"""A key pair, and what is logged."""

import datetime
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog

from lib.process import certificates


@pytest.fixture()
def make_pair() -> Callable[[], certificates.CertificatePair]:
    """Return a function that makes a key pair for loopback."""

    def make() -> certificates.CertificatePair:
        now = datetime.datetime.now(datetime.UTC)
        return certificates.self_signed(["localhost", "127.0.0.1"], now)

    return make


@pytest.fixture()
def restored_logging() -> Iterator[None]:
    """Restore what `logs.configure` changes."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture()
def log() -> Iterator[list[dict[str, object]]]:
    """Yield the list of entries logged so far."""
    with structlog.testing.capture_logs() as entries:
        yield entries  # type: ignore[misc] # a MutableMapping of the same
