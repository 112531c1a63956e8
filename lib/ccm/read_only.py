"""An API server that can't be written to: for dry runs."""

import contextlib
from collections.abc import Iterator

from lib.kube import client, errors, guarded


def read_only(api: client.Api) -> client.Api:
    """Return an Api that lets only reads through.

    In a dry run nobody should ask it for anything else: this is the second lock. What
    is no read raises Forbidden, unsent.
    """
    return guarded.Guarded(api, refuse)


@contextlib.contextmanager
def refuse(operation: str) -> Iterator[float]:
    """Permit no write.

    Raises:
        Forbidden: always.
    """
    raise errors.Forbidden("this is a dry run", operation=operation)
    yield 0.0  # never reached; without it this would be no generator
