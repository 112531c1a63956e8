"""HTTP answers that end in time, whether the server is silent or sends a byte a second.

The time-out of a socket is one of each read: a server that sends a few bytes at a time
keeps a client of http.client for hours. Here it bounds the answer as a whole: status,
headers and body, also those of a proxy's CONNECT.
"""

import http.client
import io
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer  # pants: no-infer-dep

BYTES_MAX = 256 * 2**20
"""A list of 100,000 ports has half of it."""


class TooLong(OSError):
    """The answer is longer than BYTES_MAX."""


class _Bytes(io.RawIOBase):
    """The bytes of one answer, until the time-out of its socket has passed."""

    def __init__(self, sock: socket.socket) -> None:
        timeout_s = sock.gettimeout()
        self._sock = sock
        self._stream = sock.makefile("rb", buffering=0)
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._left_bytes = BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read what has arrived.

        Raises:
            TimeoutError: the time of the answer is over. TooLong: its length is.
        """
        if self._end is not None:
            left_s = self._end - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the answer did not end in time")
            self._sock.settimeout(left_s)
        count = self._stream.readinto(buffer)
        self._left_bytes -= count or 0
        if self._left_bytes < 0:
            raise TooLong(f"the answer is longer than {BYTES_MAX} bytes")
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Socket:
    """What http.client.HTTPResponse requires of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, mode: str) -> io.BufferedReader:
        del mode
        return io.BufferedReader(_Bytes(self._sock))


class BoundedResponse(http.client.HTTPResponse):
    """One whose bytes come before the time-out of the socket, counted from now on.

    To be set as `response_class` of a connection.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(_Socket(sock), *arguments, **named)  # type: ignore[arg-type] # only makefile is used
