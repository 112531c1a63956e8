"""One HTTP exchange with an engine, bounded by a deadline as a whole.

Not the SDK's Connection: it deadlocks between threads, its time-out does not cover
authentication, and it hides the status of responses without XML. An HTTP proxy of the
environment is used as by the other clients: HTTPS_PROXY, unless NO_PROXY excludes the
engine.
"""

import dataclasses
import ssl
import time
from collections.abc import Mapping
from typing import Protocol

import requests
import urllib3

from lib.cloud import errors
from lib.cloud.zvirt import config
from lib.kube import errors as kube_errors
from lib.kube import transport
from lib.process import bounded_answers, outgoing, retry_after

POOL_SIZE = 64
"""Connections kept: at least as many as there are workers."""
_LEAST_S = 0.001
_NEVER_SENT = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.SSLError,
)


@dataclasses.dataclass(frozen=True, slots=True)
class EngineResponse:
    """One response with its whole body. headers: by lower-case name."""

    status: int
    body: bytes = dataclasses.field(repr=False)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def retry_after_s(self) -> float | None:
        """The pause that the server asks for, in seconds."""
        return retry_after.seconds(self.headers.get("retry-after"), time.time())


class HttpExchange(Protocol):
    """Sends one request: method, URL, headers, body, time-out in seconds."""

    def __call__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> EngineResponse:
        """Return the response, whatever its status.

        Raises:
            Unavailable: there was none in time.
        """
        ...


def context(settings: config.EngineConfig) -> ssl.SSLContext:
    """Return how certificates of the engine are verified.

    Raises:
        InvalidRequest: the authorities cannot be used.
    """
    if settings.insecure:
        unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        return unverified
    try:
        return ssl.create_default_context(cadata=settings.ca or None)
    except ssl.SSLError as error:
        message = "the certificates of the authority cannot be used"
        operation = "read the configuration"
        raise errors.InvalidRequest(message, operation=operation) from error


class _Connection(urllib3.connection.HTTPSConnection):
    response_class = bounded_answers.BoundedResponse


class _Pool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Connection


def _manager(settings: config.EngineConfig) -> urllib3.PoolManager:
    """Return the pools of connections, those through the environment's proxy."""
    proxies = requests.utils.get_environ_proxies(settings.url)
    proxy = requests.utils.select_proxy(settings.url, proxies)
    tls = context(settings)
    if not proxy:
        return urllib3.PoolManager(maxsize=POOL_SIZE, block=False, ssl_context=tls)
    url = requests.utils.prepend_scheme_if_needed(proxy, "http")
    headers = requests.adapters.HTTPAdapter().proxy_headers(url)
    return urllib3.ProxyManager(
        url, maxsize=POOL_SIZE, block=False, ssl_context=tls, proxy_headers=headers
    )


def connect(settings: config.EngineConfig) -> HttpExchange:
    """Return the one function that sends requests to an engine."""
    pool = _manager(settings)
    pool.pool_classes_by_scheme = {
        **pool.pool_classes_by_scheme,
        "https": _Pool,
    }

    def exchange(
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> EngineResponse:
        operation = f"{method} {url.partition('?')[0].removeprefix(settings.host)}"
        try:
            waits = outgoing.to(settings.host, timeout_s)
            with waits, transport.translated(operation, settings.host):
                response = pool.request(
                    method,
                    url,
                    body=body,
                    headers=dict(headers),
                    timeout=urllib3.Timeout(total=max(timeout_s, _LEAST_S)),
                    retries=False,
                    redirect=False,
                )
                content = response.data
        except kube_errors.Unavailable as error:
            is_unsent = isinstance(error.__cause__, _NEVER_SENT)
            raise errors.Unavailable(
                error.message, operation=operation, was_rejected=is_unsent
            ) from error
        names = {name.lower(): value for name, value in response.headers.items()}
        return EngineResponse(response.status, content, names)

    return exchange
