"""A call ends at its deadline, however slowly the bytes of its answers come."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from lib.cloud import errors
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.instance_metadata import service
from lib.process import bounded_answers

IN_TIME_S = 0.6
SLACK_S = 1.0
"""The bytes below come for a minute and more."""
Pieces = Sequence[bytes]
Serve = Callable[[Pieces, Pieces], str]


def dripping(text: bytes) -> Pieces:
    return [text[place : place + 1] for place in range(len(text))]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LONG = b'{"servers": [' + b" " * 600 + b"]}"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(LONG)
ANSWERS: dict[str, Pieces] = {
    "a body of known length": [SIZED, *dripping(LONG)],
    "a chunked body": [
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        *(b"1\r\n \r\n" for _ in range(600)),
    ],
    "a body until the connection ends": [
        HEAD + b"Connection: close\r\n\r\n",
        *dripping(LONG),
    ],
    "headers": [HEAD, *(b"X-%d: 1\r\n" % place for place in range(600))],
    "a status line": dripping(b"HTTP/1.1 200 " + b"O" * 600),
    "the body of a refusal": [
        SIZED.replace(b"200 OK", b"500 Internal Server Error"),
        *dripping(LONG),
    ],
}


class Server:
    """Sends the pieces of one answer, ten in a second, to each request."""

    def __init__(self, stop: threading.Event) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stop = stop
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.answers: dict[str, Pieces] = {}

    def serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stop.is_set():
                connection.close()
                self._listener.close()
                return
            threading.Thread(target=self._answer, args=(connection,)).start()

    def close(self) -> None:
        self._stop.set()
        socket.create_connection(self._listener.getsockname()).close()

    def _answer(self, connection: socket.socket) -> None:
        requests = connection.makefile("rb")
        with connection, requests, contextlib.suppress(OSError):
            while not self._stop.is_set() and (line := requests.readline()):
                headers = http.client.parse_headers(requests)
                requests.read(int(headers.get("Content-Length", 0)))
                self._send(connection, line.split()[1].decode().rstrip("/"))

    def _send(self, connection: socket.socket, path: str) -> None:
        for piece in self.answers[path]:
            connection.sendall(piece)
            if len(self.answers[path]) > 1 and self._stop.wait(0.1):
                return


@pytest.fixture()
def server() -> Iterator[Server]:
    stop = threading.Event()
    running = Server(stop)
    thread = threading.Thread(target=running.serve)
    thread.start()
    yield running
    running.close()
    thread.join()


def quick(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> Pieces:
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    return [b"HTTP/1.1 " + status + b"\r\n" + headers + length + body]


def token(url: str) -> bytes:
    text = (
        '{"token": {"methods": ["password"], "expires_at": "2999-01-01T00:00:00Z",'
        '"issued_at": "2020-01-01T00:00:00Z", "user": {"id": "u", "name": "u",'
        '"domain": {"id": "d"}}, "catalog": [{"type": "network", "name": "n", "id":'
        ' "n", "endpoints": [{"id": "e", "interface": "public", "region": "R",'
        f' "region_id": "R", "url": "{url}/network"}}]}}]}}}}'
    )
    return text.encode()


def versions(url: str) -> bytes:
    return (
        '{"versions": [{"id": "v2.0", "status": "CURRENT", "links":'
        f' [{{"rel": "self", "href": "{url}/network/v2.0/"}}]}}]}}'
    ).encode()


@pytest.fixture()
def api(server: Server) -> Iterator[client.Client]:
    """Yield a client whose calls are answered quickly, unless a test changes that."""
    server.answers |= {
        "/v3/auth/tokens": quick(
            token(server.url), b"201 Created", b"X-Subject-Token: t\r\n"
        ),
        "/network": quick(versions(server.url)),
        "/network/v2.0/ports": quick(b'{"ports": []}'),
    }
    credentials = settings.Credentials(
        auth_url=f"{server.url}/v3", username="u", password="p", tenant_id="t"
    )
    opened = session.open_session(credentials, 60.0)
    yield client.Client(
        opened, client.Where("R", "public"), lambda name, outcome, seconds: None
    )
    opened.session.close()


PORTS = client.Get(client.Service.NETWORK, "ports", "list ports")
PATHS = ("/v3/auth/tokens", "/network", "/network/v2.0/ports")


def test_the_server_of_this_file_answers(api: client.Client) -> None:
    assert api.get(PORTS, api.now() + 10.0) == b'{"ports": []}'


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_call_ends_at_its_deadline(
    server: Server, api: client.Client, answer: str, path: str
) -> None:
    """Its own answer, a token or a document of versions: one deadline for all."""
    server.answers[path] = ANSWERS[answer]
    began = time.monotonic()
    with pytest.raises(errors.Unavailable, match="not answer in time|no time is left"):
        api.get(PORTS, api.now() + IN_TIME_S)
    assert time.monotonic() - began < IN_TIME_S + SLACK_S


def test_a_connection_is_used_again_after_an_answer_that_took_its_time(
    server: Server, api: client.Client
) -> None:
    server.answers["/network/v2.0/ports"] = [
        HEAD + b"Content-Length: 2\r\n\r\n",
        b"{",
        b"}",
    ]
    assert api.get(PORTS, api.now() + 10.0) == b"{}"
    assert api.get(PORTS, api.now() + 10.0) == b"{}"


def test_an_answer_that_is_too_long_is_not_read_to_its_end(
    server: Server, api: client.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_answers, "BYTES_MAX", 100_000)
    server.answers["/network/v2.0/ports"] = quick(b" " * 1_000_000)
    with pytest.raises(errors.Unavailable, match="the cloud's answer is too long"):
        api.get(PORTS, api.now() + 10.0)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_metadata_service_has_its_time_out_for_the_whole_answer(
    server: Server, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TIMEOUT_S", IN_TIME_S)
    server.answers["/openstack/latest/meta_data.json"] = ANSWERS[answer]
    began = time.monotonic()
    with pytest.raises(ValueError, match="metadata service"):
        service.read(server.url, lambda seconds: None)
    assert time.monotonic() - began < service.ATTEMPTS * (IN_TIME_S + SLACK_S)
