"""Why an HTTP exchange had no answer, in words for an operator."""

import http.client
import re
import socket
import ssl
import urllib.parse
from collections.abc import Iterator

import urllib3

_LATE = (urllib3.exceptions.TimeoutError, TimeoutError)
_NO_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")
"""Source: http.client, HTTPConnection._tunnel: an OSError without a number."""


def reason(error: BaseException) -> str:
    """Return why there was no answer; a failure of a proxy is not one of the server."""
    for link in _chain(error):
        if isinstance(link, urllib3.exceptions.ProxyError):
            return f"HTTP proxy: {reason(link.original_error)}"
        if refused := _NO_TUNNEL.match(str(link)):
            return f"status {refused[1]}"
        if _is_late(link):
            return "no answer in time"
        if text := _of_system(link):
            return text
    return f"connection failed ({type(error).__name__})"


def origin(error: BaseException) -> str:
    """Return scheme, host and port of the request that failed; empty: not known.

    Of errors of the package requests, which have it. Without user and password.
    """
    for link in _chain(error):
        url = getattr(getattr(link, "request", None), "url", None)
        if isinstance(url, str):
            parts = urllib.parse.urlsplit(url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it stems from, the outermost first."""
    link: BaseException | None = error
    while link is not None:
        yield link
        inner = getattr(link, "reason", None)
        link = (
            inner
            if isinstance(inner, BaseException)
            else link.__cause__ or link.__context__
        )


def _is_late(error: BaseException) -> bool:
    # A refused connection is one of urllib3's time-outs too.
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    return isinstance(error, _LATE) and not is_refused


def _of_system(error: BaseException) -> str:
    """Return what the system reports of a failed connection, in lower case."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error.verify_message}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "connection closed without an answer"
    if isinstance(error, socket.gaierror):
        return f"host name not resolved: {(error.strerror or '').lower()}"
    return (error.strerror or "").lower() if isinstance(error, OSError) else ""
