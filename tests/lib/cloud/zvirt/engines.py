"""A client of an engine: of the simulated one, or of responses that a test writes."""

import collections
import datetime
from collections.abc import Callable, Mapping

from lib.cloud import errors
from lib.cloud.zvirt import client, config, http
from lib.lab.kube import pki
from lib.lab.zvirt import seed
from tests.lib.lab.zvirt.stage import PASSWORD, Stage

NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
CA = pki.authority("test", NOW).certificate.decode()
HOST = "https://engine.example.com"
SETTINGS = config.EngineConfig(f"{HOST}{config.API_PATH}", seed.USER, PASSWORD)
TOKEN = b'{"access_token": "t1", "exp": "9999999999999", "token_type": "bearer"}'
HTML = b"<!DOCTYPE html><html><body>Bad Gateway</body></html>"
FAULT = "<fault><reason>Operation Failed</reason><detail>[{}]</detail></fault>"
API = b"<api><product_info><name>oVirt Engine</name></product_info></api>"
Answer = Callable[[str, str, bytes | None], http.EngineResponse]


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """An exchange whose API answers what a test writes; single sign-on always does.

    api: takes method, path below the host, and body. sso: of requests for tokens.
    """

    def __init__(self, api: Answer, sso: http.EngineResponse | None = None) -> None:
        self._api = api
        self.sso = sso or http.EngineResponse(200, TOKEN)
        self.requests: list[tuple[str, str]] = []
        self.headers: list[Mapping[str, str]] = []

    def __call__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        path = url.removeprefix(HOST)
        self.requests.append((method, path))
        self.headers.append(headers)
        if path.startswith("/ovirt-engine/sso"):
            return self.sso
        return self._api(method, path.removeprefix(config.API_PATH), body)


class Simulated:
    """An exchange with an engine in this process."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.requests: collections.Counter[str] = collections.Counter()

    def __call__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        names = {name.lower(): value for name, value in headers.items()}
        target = url.removeprefix(HOST)
        self.requests[f"{method} {target.partition('?')[0]}"] += 1
        reply = self._stage.service.handle(method, target, names, body or b"")
        if reply is None or reply.broken:
            text = "no response in time" if reply is None else "the connection ended"
            raise errors.Unavailable(text, operation=f"{method} {target}")
        headers = {"content-type": reply.content_type, **reply.headers}
        return http.EngineResponse(reply.status, reply.body, headers)


def engine(
    exchange: http.HttpExchange,
    clock: Callable[[], float] | None = None,
    settings: Callable[[], config.EngineConfig] = lambda: SETTINGS,
    witness: str = "",
) -> client.EngineClient:
    """Return a client."""
    at = clock or Clock()
    return client.EngineClient(
        settings,
        exchange,
        witness=witness,
        clock=at,
        wall_clock=lambda: 1_700_000_000.0 + at(),
    )


def fixed(status: int, body: bytes) -> Scripted:
    """Return an exchange whose API always answers the same."""
    return Scripted(lambda method, path, request: http.EngineResponse(status, body))
