"""The one token of a process: fetched by one thread, and not asked for in a loop.

An engine locks an account after a few wrong passwords. So a rejected password is sent
again when it has changed, else after 60 s, doubled up to 15 minutes.
"""

import dataclasses
import hashlib
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping

from lib.cloud import errors
from lib.cloud.support import circuits
from lib.cloud.zvirt import config, engine_refusals, http

SERVICE = "sso"
SCOPE = "ovirt-app-api"
_PATH = "/ovirt-engine/sso/oauth/token"
FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 900.0
_EARLY_S = 60.0
"""A token is renewed this long before it expires."""
_HEADERS: Mapping[str, str] = {
    "Accept": "application/json",
    "Accept-Language": "en",
    "Content-Type": "application/x-www-form-urlencoded",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """One token. expires_at: seconds since 1970; None: not reported."""

    value: str = dataclasses.field(repr=False)
    expires_at: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Rejection:
    """A rejected password, as its digest. until: it is not sent again before."""

    digest: bytes
    error: errors.CloudError
    until: float
    pause_s: float


class SignOn:
    """Tokens of one engine. Safe for use by several threads."""

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        exchange: http.HttpExchange,
        settings: Callable[[], config.EngineConfig],
        circuit: circuits.Circuits,
        *,
        user_agent: str = "mooring",
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """settings: returns those of now: a password may have been changed.

        clock: monotonic seconds. wall_clock: seconds since 1970.
        """
        self._exchange = exchange
        self._settings = settings
        self._circuits = circuit
        self._headers = {**_HEADERS, "User-Agent": user_agent}
        self._clock, self._wall_clock = clock, wall_clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._rejection: _Rejection | None = None

    def token(self, timeout_s: float) -> Token:
        """Return a token; one thread requests it, the others wait for it.

        Raises:
            Unauthenticated: user and password are rejected, now or not long ago.
            Unavailable: the single sign-on did not answer.
        """
        deadline = self._clock() + timeout_s
        if not self._lock.acquire(timeout=max(timeout_s, 0.0)):
            message = "no token in time"
            operation = "authenticate"
            raise errors.Unavailable(message, operation=operation, was_rejected=True)
        try:
            token = self._token
            if token is None or self._expires(token):
                token = self._token = self._request(deadline - self._clock())
            return token
        finally:
            self._lock.release()

    def invalidate(self, token: Token) -> None:
        """Forget a token that was refused, and no newer one."""
        with self._lock:
            if self._token is token:
                self._token = None

    def _expires(self, token: Token) -> bool:
        at = token.expires_at
        return at is not None and self._wall_clock() >= at - _EARLY_S

    def _request(self, timeout_s: float) -> Token:
        settings = self._settings()
        digest = hashlib.sha256(
            f"{settings.username}\0{settings.password}".encode()
        ).digest()
        self._check_rejection(digest)
        form = {
            "grant_type": "password",
            "scope": SCOPE,
            "username": settings.username,
            "password": settings.password,
        }
        try:
            with self._circuits.call(SERVICE, "authenticate"):
                response = self._exchange(
                    "POST",
                    settings.host + _PATH,
                    self._headers,
                    urllib.parse.urlencode(form).encode(),
                    timeout_s,
                )
                token = _parse(response)
        except errors.Unauthenticated as error:
            self._reject(digest, error)
            raise
        self._rejection = None
        return token

    def _check_rejection(self, digest: bytes) -> None:
        known = self._rejection
        if known is None or known.digest != digest:
            return
        left_s = known.until - self._clock()
        if left_s > 0:
            raise errors.Unauthenticated(
                f"{known.error.message}; the next attempt with this password is"
                f" {FIRST_PAUSE_S:.0f} to {LONGEST_PAUSE_S:.0f} s after it",
                operation="authenticate",
                retry_after_s=left_s,
                was_rejected=True,
            ) from known.error

    def _reject(self, digest: bytes, error: errors.CloudError) -> None:
        known = self._rejection
        is_same = known is not None and known.digest == digest
        pause_s = FIRST_PAUSE_S
        if is_same and known is not None:
            pause_s = min(known.pause_s * 2, LONGEST_PAUSE_S)
        self._rejection = _Rejection(digest, error, self._clock() + pause_s, pause_s)


def _parse(response: http.EngineResponse) -> Token:
    """Return the token of a response.

    Raises:
        CloudError: none exists.
    """
    if response.status != 200:
        raise engine_refusals.sign_on(response.status, response.body)
    try:
        document = json.loads(response.body)
        value, expiry = document["access_token"], document.get("exp")
        at = None if expiry in (None, "") else float(expiry) / 1000
    except (ValueError, TypeError, KeyError, AttributeError):
        is_page = engine_refusals.is_html(response.body)
        what = "a web page" if is_page else "no token"
        raise errors.Unavailable(
            f"not an engine: its single sign-on answers with {what}",
            operation="authenticate",
        ) from None
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise errors.Unavailable(
            "not an engine: its single sign-on answers with no token",
            operation="authenticate",
        )
    return Token(value, at)
