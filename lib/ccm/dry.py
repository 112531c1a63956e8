"""An API server that can't be written to: for dry runs."""

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager

from lib.kube import client, errors


@dataclasses.dataclass(frozen=True, slots=True)
class ReadOnly(client.Api):
    """An Api that lets only reads through.

    In a dry run nobody should ask it for anything else: this is the second lock.
    """

    api: client.Api

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
        """See `Api.request`; anything but GET is refused, unsent.

        Raises:
            Forbidden: it was not a read.
        """
        del body, content_type
        if method != "GET":
            operation = f"{method} {path}"
            raise errors.Forbidden("this is a dry run", operation=operation)
        return self.api.request(method, path, query=query, timeout_s=timeout_s)

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> AbstractContextManager[client.Lines]:
        """See `Api.stream`."""
        return self.api.stream(
            path,
            query,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )
