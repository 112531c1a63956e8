"""Probes are answered while the port is flooded with invented tokens."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Mapping

from lib.daemon import access, reviews
from lib.kube import client
from lib.process import exchange, serving

CONNECTIONS = 140
REVIEW_S = 1.0


class SlowApi(client.Api):
    """An API server that takes a second to refuse a token."""

    def __init__(self) -> None:
        self.reviews = 0

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        del method, path, query, body, content_type, timeout_s
        self.reviews += 1
        time.sleep(REVIEW_S)
        return b'{"status": {"authenticated": false}}'

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> contextlib.AbstractContextManager[client.WatchLines]:
        raise NotImplementedError


def ask(port: int, path: str, token: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def test_140_connections_with_invented_tokens_stop_no_probe() -> None:
    """With a TokenReview of one second: all of 30 probes succeed."""
    api = SlowApi()
    judge = access.Access(api, access.AccessSettings())
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    ok = {"/healthz": lambda _: exchange.Reply(b"ok")}
    server = serving.HttpServer(
        listener, None, exchange.HttpRoutes(ok, judge.authorize)
    )
    port: int = listener.getsockname()[1]
    server.start()
    ended = threading.Event()

    def flood(number: int) -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                ask(port, "/metrics", f"invented-{number}")
            ended.wait(0.1)

    threads = [
        threading.Thread(target=flood, args=(number,)) for number in range(CONNECTIONS)
    ]
    try:
        for thread in threads:
            thread.start()
        statuses = [ask(port, "/healthz") for _ in range(30)]
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
        server.stop()
    print("probes", statuses.count(200), "of 30; reviews", api.reviews)
    assert statuses == [200] * 30
    assert api.reviews <= reviews.BURST + 30 * reviews.PER_S
