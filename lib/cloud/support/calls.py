"""How cloud calls are counted."""

import contextlib
from collections.abc import Callable, Iterator

from lib.cloud import errors

CallObserver = Callable[[str, str, float], None]
"""Takes operation, outcome ("ok" or the reason of the error) and seconds."""


def ignore(operation: str, outcome: str, seconds: float) -> None:
    """Count nothing."""
    del operation, outcome, seconds


@contextlib.contextmanager
def counted(
    observer: CallObserver, operation: str, clock: Callable[[], float]
) -> Iterator[None]:
    """Surround one call, and count it by how it ends.

    What is no CloudError is a bug, and is not counted.
    """
    began = clock()
    try:
        yield
    except errors.CloudError as error:
        observer(operation, error.reason, clock() - began)
        raise
    observer(operation, "ok", clock() - began)
