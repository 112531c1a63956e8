"""The proxy forwards requests, counts them, and injects the faults of its rules."""

import contextlib
import http.client
import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.harness.faults import fault_proxy


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802 (the standard library names it)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        text = f"{self.path} at {self.headers['Host']}: {body.decode()}".encode()
        self.send_response(201)
        self.send_header("X-Kept", "yes")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture()
def proxy() -> Iterator[fault_proxy.Proxy]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        new_proxy = fault_proxy.Proxy(server.server_port)
        new_proxy.start()
        yield new_proxy
        new_proxy.close()
        server.shutdown()
        thread.join()


def post(proxy: fault_proxy.Proxy, path: str) -> tuple[int, str | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", path, b"hello", {"Host": "seen-from-outside"})
        answer = connection.getresponse()
        return answer.status, answer.getheader("X-Kept"), answer.read().decode()


def test_the_service_sees_the_request_as_it_was_sent(proxy: fault_proxy.Proxy) -> None:
    """The Host too: links in the answer must lead through the proxy."""
    assert post(proxy, "/a?b=c") == (201, "yes", "/a?b=c at seen-from-outside: hello")


def test_a_fault_answers_instead_and_ends_with_its_block(
    proxy: fault_proxy.Proxy,
) -> None:
    def fault(request: fault_proxy.Request) -> fault_proxy.Answer | None:
        is_broken = request.path == "/broken"
        return fault_proxy.Answer(503, {}, b"no") if is_broken else None

    with fault_proxy.answering([proxy], fault):
        assert post(proxy, "/broken") == (503, None, "no")
        assert post(proxy, "/whole")[0] == 201
    assert post(proxy, "/broken")[0] == 201


def test_requests_and_answers_are_counted(proxy: fault_proxy.Proxy) -> None:
    post(proxy, "/one")
    with fault_proxy.answering([proxy], lambda _: fault_proxy.Answer(500, {}, b"")):
        post(proxy, "/two")
    assert [request.path for request in proxy.requests()] == ["/one", "/two"]
    assert [status for _, status in proxy.answered()] == [201, 500]


def test_a_service_that_is_away_is_a_bad_gateway(proxy: fault_proxy.Proxy) -> None:
    nowhere = fault_proxy.Proxy(1)
    nowhere.start()
    assert post(nowhere, "/")[0] == 502
    nowhere.close()
