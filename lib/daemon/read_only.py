"""Read-only client of the API server, for dry runs."""

import contextlib
from collections.abc import Iterator

from lib.kube import client, errors, guarded


def read_only(api: client.Api) -> client.Api:
    """Return an Api that forwards only reads.

    In a dry run the flows request no writes: this is the second safeguard. A write
    raises Forbidden and is not sent.
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
