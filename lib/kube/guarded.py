"""An API server to which writes are sent only while they are permitted."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from lib.kube import client

Permit = Callable[[str], AbstractContextManager[float]]
"""For an operation such as "PATCH /api/v1/nodes/n1", lets a write happen within its
block and gives the seconds it may take; or raises a KubeError, and it is not sent."""


@contextlib.contextmanager
def always(operation: str) -> Iterator[float]:
    """Permit every write: no other process acts."""
    del operation
    yield float("inf")


@dataclasses.dataclass(frozen=True)
class Guarded(client.Api):
    """An Api whose every write needs a permit; reads are not touched."""

    api: client.Api
    permit: Permit

    def request(  # noqa: PLR0913 # see Api.request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        """See `Api.request`; anything but GET is a write."""
        if method == "GET":
            return self.api.request(method, path, query=query, timeout_s=timeout_s)
        with self.permit(f"{method} {path}") as left_s:
            return self.api.request(
                method,
                path,
                query=query,
                body=body,
                content_type=content_type,
                timeout_s=min(timeout_s, left_s),
            )

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> AbstractContextManager[client.WatchLines]:
        """See `Api.stream`."""
        return self.api.stream(
            path,
            query,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )
