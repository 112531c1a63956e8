"""The HTTPS server, over real sockets on loopback."""

import contextlib
import http.client
import pathlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import prometheus_client
import pytest

from lib.process import (
    certificates,
    config,
    exchange,
    metrics,
    probes,
    serving,
    standard_endpoints,
    tls,
)

MakePair = Callable[[], certificates.CertificatePair]
Eventually = Callable[[Callable[[], bool]], None]


class Place:
    """A server that runs, and ways to talk to it."""

    def __init__(self, port: int, pair: certificates.CertificatePair) -> None:
        self.port = port
        self.trust(pair)

    def trust(self, pair: certificates.CertificatePair) -> None:
        self.context = ssl.create_default_context(cadata=pair.certificate.decode())

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def connect(self) -> ssl.SSLSocket:
        return self.context.wrap_socket(self.raw(), server_hostname="localhost")

    def client(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "localhost", self.port, context=self.context, timeout=10
        )

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | bytes | Iterable[bytes] | None = None,
    ) -> tuple[int, str]:
        client = self.client()
        with contextlib.closing(client):
            client.request(method, path, body, headers or {})
            answer = client.getresponse()
            return answer.status, answer.read().decode()


Serve = Callable[..., Place]


def judge(request: exchange.Request) -> exchange.Decision:
    if "authorization" not in request.headers:
        return exchange.Decision.UNAUTHENTICATED
    if (request.headers["authorization"], request.method) != ("Bearer good", "GET"):
        return exchange.Decision.FORBIDDEN
    return exchange.Decision.ALLOW


GOOD = {"Authorization": "Bearer good"}


@pytest.fixture()
def serve(make_pair: MakePair) -> Iterator[Serve]:
    """Yield a function that starts a server for the handlers given."""
    with contextlib.ExitStack() as stack:

        def start(
            handlers: Mapping[str, exchange.Handler] | None = None,
            limits: exchange.Limits | None = None,
            certificate: serving.Certificate | None = None,
            posts: Mapping[str, exchange.Handler] | None = None,
        ) -> Place:
            pair = make_pair()
            listener = socket.create_server(("127.0.0.1", 0))
            server = serving.HttpServer(
                listener,
                certificate or tls.InMemory(pair),
                exchange.HttpRoutes(
                    {"/healthz": ok, **(handlers or {})},
                    judge if posts is None else exchange.everybody,
                    posts=posts or {},
                ),
                limits,
            )
            port: int = listener.getsockname()[1]
            server.start()
            stack.callback(server.stop)
            return Place(port, pair)

        yield start


def ok(request: exchange.Request) -> exchange.Reply:
    del request
    return exchange.Reply(b"ok")


def echo(request: exchange.Request) -> exchange.Reply:
    return exchange.Reply(f"{request.method} {request.path} {request.query}".encode())


def test_a_handler_gets_path_and_query(serve: Serve) -> None:
    place = serve({"/echo": echo})
    status, body = place.ask("/echo?a=1&a=2&verbose", headers=GOOD)
    assert (status, body) == (
        200,
        "GET /echo {'a': ('1', '2'), 'verbose': ('',)}",
    )


def test_only_the_three_probe_paths_are_open_to_all(serve: Serve) -> None:
    place = serve({"/metrics": ok, "/readyz": ok, "/livez": ok, "/healthz/x": ok})
    for path in ("/healthz", "/readyz", "/livez"):
        assert place.ask(path) == (200, "ok")
    for path in ("/metrics", "/healthz/x", "/nothing", "/"):
        assert place.ask(path) == (401, "Unauthorized\n")
    bad = {"Authorization": "Bearer bad"}
    assert place.ask("/metrics", headers=bad) == (403, "Forbidden\n")
    assert place.ask("/metrics", headers=GOOD) == (200, "ok")
    assert place.ask("/nothing", headers=GOOD)[0] == 404


def test_only_reading_is_offered(serve: Serve) -> None:
    place = serve({"/echo": echo})
    assert place.ask("/healthz", "POST", body="x" * 100)[0] == 405
    assert place.ask("/healthz", "DELETE")[0] == 405
    assert place.ask("/healthz", "HEAD") == (200, "")


def test_a_body_is_never_taken_for_the_next_request(serve: Serve) -> None:
    hidden = b"GET /healthz HTTP/1.1\r\n\r\n"
    head = b"POST /healthz HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    answer = b""
    with serve().connect() as sock, contextlib.suppress(ConnectionError):
        sock.sendall(head + hidden)
        while part := sock.recv(10_000):
            answer += part
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"405" in answer


def size(request: exchange.Request) -> exchange.Reply:
    return exchange.Reply(f"{len(request.body)} bytes".encode())


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        pytest.param("POST", "/size", b"x" * 1000, {}, 200, id="largest"),
        pytest.param("POST", "/size", b"", {}, 200, id="empty"),
        pytest.param("POST", "/size", b"x" * 1001, {}, 413, id="too large"),
        pytest.param(
            "POST", "/size", b"", {"Content-Length": "9" * 99}, 413, id="huge"
        ),
        pytest.param(
            "POST", "/size", b"", {"Content-Length": "-1"}, 411, id="negative"
        ),
        pytest.param(
            "POST",
            "/size",
            iter([b"x"]),
            {"Transfer-Encoding": "chunked"},
            411,
            id="chunk",
        ),
        pytest.param("GET", "/size", b"x", {}, 405, id="not a POST"),
        pytest.param("POST", "/other", b"x", {}, 404, id="another path"),
        pytest.param("PUT", "/size", b"x", {}, 405, id="PUT"),
    ],
)
def test_a_body_is_read_where_a_path_takes_one(
    serve: Serve,
    method: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    status: int,
) -> None:
    place = serve(posts={"/size": size}, limits=exchange.Limits(body_bytes_max=1000))
    answer = place.ask(path, method, dict(headers), body)
    assert answer[0] == status
    if status == 200:
        assert answer[1] == f"{len(body)} bytes"
    assert place.ask("/healthz") == (200, "ok")


def test_several_bodies_come_over_one_connection(serve: Serve) -> None:
    request = b"POST /size HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    answer = b""
    with serve(posts={"/size": size}).connect() as sock:
        sock.sendall(request * 2)
        while answer.count(b"3 bytes") < 2:
            answer += sock.recv(10_000)


def test_a_body_that_ends_early_ends_its_connection_only(serve: Serve) -> None:
    called: list[exchange.Request] = []

    def note(request: exchange.Request) -> exchange.Reply:
        called.append(request)
        return exchange.Reply()

    limits = exchange.Limits(request_s=0.5)
    place = serve(posts={"/note": note}, limits=limits)
    with place.connect() as sock:
        sock.sendall(b"POST /note HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
        assert is_ended(sock)
    assert (called, place.ask("/healthz")) == ([], (200, "ok"))


def test_a_broken_handler_is_a_500_without_its_reason_and_logged_once(
    serve: Serve, log: Sequence[Mapping[str, object]]
) -> None:
    def broken(request: exchange.Request) -> exchange.Reply:
        raise ZeroDivisionError("hunter2")

    place = serve({"/broken": broken})
    assert place.ask("/broken", headers=GOOD) == (500, "Internal Server Error\n")
    (entry,) = log
    assert isinstance(entry["exc_info"], ZeroDivisionError)
    assert place.ask("/healthz") == (200, "ok")


def test_one_connection_may_ask_several_times(serve: Serve) -> None:
    client = serve().client()
    with contextlib.closing(client):
        for _ in range(3):
            client.request("GET", "/healthz")
            assert client.getresponse().read() == b"ok"


def test_an_answer_names_no_software_versions(serve: Serve) -> None:
    client = serve().client()
    with contextlib.closing(client):
        client.request("GET", "/healthz")
        headers = str(client.getresponse().headers).lower()
    assert "python" not in headers


def test_silent_clients_do_not_stop_the_others(serve: Serve) -> None:
    """Before the handshake, within it, after it, and within the request head."""
    place = serve()
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(place.raw())
        half = stack.enter_context(place.raw())
        half.send(b"\x16\x03\x01")
        stack.enter_context(place.connect())
        slow = stack.enter_context(place.connect())
        slow.send(b"GET /healthz HTTP/1.1\r\nHost:")
        began = time.monotonic()
        assert place.ask("/healthz") == (200, "ok")
        assert time.monotonic() - began < 8  # before a limit ends one of them


def is_ended(sock: socket.socket) -> bool:
    """Report whether the other side ends it; what still comes is dropped."""
    sock.settimeout(8)  # less than the server's own limits
    try:
        return sock.recv(1000) == b""
    except ConnectionError:
        return True


def test_a_silent_handshake_is_ended_after_its_time(serve: Serve) -> None:
    place = serve(limits=exchange.Limits(handshake_s=0.05))
    with place.raw() as sock:
        assert is_ended(sock)


def test_a_trickling_request_is_ended_after_its_time(serve: Serve) -> None:
    """Each byte in time, but never the whole head."""
    place = serve(limits=exchange.Limits(request_s=0.2))
    began = time.monotonic()
    with place.connect() as sock, contextlib.suppress(OSError):
        while time.monotonic() < began + 60:
            sock.send(b"G")
            time.sleep(0.02)
    assert time.monotonic() - began < 30


def test_an_idle_connection_is_ended_after_its_time(serve: Serve) -> None:
    place = serve(limits=exchange.Limits(idle_s=0.05))
    with place.connect() as sock:
        sock.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"ok"):
            answer += sock.recv(1000)
        assert is_ended(sock)


def test_a_client_that_does_not_read_its_answer_is_ended(
    serve: Serve, eventually: Eventually
) -> None:
    def big(request: exchange.Request) -> exchange.Reply:
        return exchange.Reply(b"x" * 50_000_000)

    def count() -> int:
        return sum(thread.name == "https" for thread in threading.enumerate())

    eventually(lambda: count() == 0)
    place = serve({"/livez": big}, exchange.Limits(request_s=0.1))
    with place.connect() as sock:
        sock.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: count() == 1)
        eventually(lambda: count() == 0)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(500)),
        b"GET /healthz HTTP/1.1\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n"
        + b"".join(b"a%d: %s\r\n" % (n, b"b" * 10_000) for n in range(90))
        + b"\r\n",
        b"nonsense\r\n\r\n",
        b"GET //[ HTTP/9.9\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
    ],
)
def test_oversized_and_malformed_requests_end_their_connection_only(
    serve: Serve, head: bytes
) -> None:
    place = serve()
    with place.connect() as sock:
        with contextlib.suppress(OSError):
            sock.sendall(head)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := sock.recv(10_000):
                answer += part
        assert b"200 OK" not in answer
    assert place.ask("/healthz") == (200, "ok")


def test_plain_http_gets_no_answer(serve: Serve) -> None:
    with serve().raw() as sock:
        sock.send(b"GET /healthz HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"HTTP/1" not in sock.recv(1000)


def test_when_full_the_connection_silent_longest_makes_room(serve: Serve) -> None:
    place = serve(limits=exchange.Limits(connections_max=3))
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(place.raw()) for _ in range(10)]
        assert place.ask("/healthz") == (200, "ok")
        assert all(is_ended(sock) for sock in silent[:8])
        silent[-1].settimeout(0.05)
        with pytest.raises(TimeoutError):
            silent[-1].recv(1)


def test_connections_being_answered_are_not_cut_to_make_room(serve: Serve) -> None:
    go_on, began = threading.Event(), threading.Semaphore(0)

    def slow(request: exchange.Request) -> exchange.Reply:
        began.release()
        assert go_on.wait(10)
        return exchange.Reply(b"slow")

    place = serve({"/livez": slow}, exchange.Limits(connections_max=2))
    answers: list[tuple[int, str]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(place.ask("/livez")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        assert began.acquire(timeout=5)
    with pytest.raises(OSError, match=".*"):
        place.ask("/healthz")
    go_on.set()
    for thread in threads:
        thread.join(5)
    assert answers == [(200, "slow")] * 2


def test_stop_ends_connections_and_frees_the_port(make_pair: MakePair) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    pair = make_pair()
    server = serving.HttpServer(
        listener, tls.InMemory(pair), exchange.HttpRoutes({}, judge)
    )
    server.start()
    with Place(port, pair).connect() as sock:
        server.stop()
        assert is_ended(sock)
    with pytest.raises(ConnectionRefusedError):
        Place(port, pair).raw()


def test_port_0_means_off() -> None:
    assert serving.listen("127.0.0.1", 0) is None


def test_a_taken_port_is_a_config_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(config.ConfigError) as caught:
            serving.listen("127.0.0.1", port)
    assert str(caught.value) == (
        f'serving address: invalid value "127.0.0.1:{port}": must be an address of this'
        " host with a free port (address already in use)"
    )


@pytest.mark.parametrize(
    ("address", "port", "cause"),
    [
        ("192.0.2.1", 1, "cannot assign requested address"),
        ("127.0.0.1", 99999, "bind(): port must be 0-65535."),
    ],
)
def test_an_address_that_cannot_be_used_is_a_config_error(
    address: str, port: int, cause: str
) -> None:
    """The address is of TEST-NET-1. Source: RFC 5737."""
    with pytest.raises(config.ConfigError) as caught:
        serving.listen(address, port)
    assert str(caught.value).endswith(f" with a free port ({cause})")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "0.0.0.0", "::1", "::"],  # noqa: S104 # a default
)
def test_a_free_port_is_listened_on(address: str) -> None:
    """Also where a pod or host has addresses of IPv6: without brackets, as in it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listener = serving.listen(address, port)
    assert listener is not None
    with listener:
        assert listener.getsockname()[:2] == (address, port)


@pytest.mark.parametrize(
    ("address", "clients"), [("::1", ["::1"]), ("::", ["::1", "127.0.0.1"])]
)
def test_probes_of_a_host_with_ipv6_are_answered(
    make_pair: MakePair, address: str, clients: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listener = serving.listen(address, port)
    assert listener is not None
    pair = make_pair()
    routes = exchange.HttpRoutes({"/livez": ok}, judge)
    server = serving.HttpServer(listener, tls.InMemory(pair), routes)
    server.start()
    try:
        for client in clients:
            context = ssl.create_default_context(cadata=pair.certificate.decode())
            context.check_hostname = False  # as the kubelet's probes
            connection = http.client.HTTPSConnection(
                client, port, context=context, timeout=10
            )
            with contextlib.closing(connection):
                connection.request("GET", "/livez")
                assert connection.getresponse().status == 200
    finally:
        server.stop()


class Files:
    """A key pair on disk."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"

    def write(self, pair: certificates.CertificatePair) -> None:
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)


@pytest.fixture()
def files(tmp_path: pathlib.Path) -> Files:
    return Files(tmp_path)


def test_a_changed_certificate_serves_the_next_connection(
    serve: Serve, files: Files, make_pair: MakePair
) -> None:
    first, second = make_pair(), make_pair()
    files.write(first)
    place = serve(certificate=tls.FromFiles(files.certificate, files.key))
    place.trust(first)
    assert place.ask("/healthz") == (200, "ok")
    files.write(second)
    with pytest.raises(ssl.SSLCertVerificationError):
        place.ask("/healthz")
    place.trust(second)
    assert place.ask("/healthz") == (200, "ok")


def test_half_a_new_pair_leaves_the_former_in_place_until_it_is_whole(
    serve: Serve,
    files: Files,
    make_pair: MakePair,
    log: Sequence[Mapping[str, object]],
) -> None:
    first, second = make_pair(), make_pair()
    files.write(first)
    place = serve(certificate=tls.FromFiles(files.certificate, files.key))
    place.trust(first)
    files.certificate.write_bytes(second.certificate)
    for _ in range(3):
        assert place.ask("/healthz") == (200, "ok")
    assert [entry["log_level"] for entry in log] == ["error"], "told once"
    files.key.write_bytes(second.key)
    place.trust(second)
    assert place.ask("/healthz") == (200, "ok")


def test_unusable_files_at_the_start_are_a_config_error(files: Files) -> None:
    with pytest.raises(config.ConfigError, match="tls.crt: no such file"):
        tls.FromFiles(files.certificate, files.key)
    files.certificate.write_text("no certificate")
    files.key.write_text("no key")
    with pytest.raises(config.ConfigError, match="PEM certificate"):
        tls.FromFiles(files.certificate, files.key)


def test_the_standard_paths_answer(serve: Serve) -> None:
    checks = probes.Probes()
    checks.add_live("loop", lambda: "hangs")
    registry = metrics.new_registry(metrics.Build("a-daemon", "1"))
    health = prometheus_client.CollectorRegistry()
    place = serve(standard_endpoints.standard(checks, registry, health))
    assert place.ask("/readyz") == (200, "ok")
    status, body = place.ask("/healthz?verbose")
    assert status == 500
    assert body.endswith("healthz check failed\n")
    assert place.ask("/livez")[0] == 500
    status, body = place.ask("/metrics", headers=GOOD)
    assert status == 200
    assert "mooring_build_info" in body


def test_plain_http_is_served_without_a_certificate() -> None:
    routes = exchange.HttpRoutes({"/healthz": ok}, judge)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = serving.HttpServer(listener, None, routes)
        server.start()
        try:
            port = listener.getsockname()[1]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.closing(connection):
                for path, status in (("/healthz", 200), ("/metrics", 401)):
                    connection.request("GET", path)
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status == status
        finally:
            server.stop()


@pytest.mark.parametrize(
    ("patterns", "opened", "closed"),
    [
        (exchange.PROBE_PATHS, ["/healthz", "/readyz", "/livez"], ["/metrics", "/"]),
        (["/healthz", "/metrics*"], ["/metrics", "/metrics/slis"], ["/livez", "/m"]),
        (["healthz"], ["/healthz"], ["/healthz/x", "/livez"]),
        (["/livez"], ["/livez"], ["/healthz", "/readyz"]),
        (["*"], ["/metrics", "/", "/anything/below"], []),
        (["/"], ["/"], ["/metrics"]),
        ([], [], ["/healthz", "/", "/metrics"]),
    ],
)
def test_paths_are_open_as_in_the_reference(
    patterns: list[str], opened: list[str], closed: list[str]
) -> None:
    paths = exchange.OpenPaths.parse(patterns)
    assert [path for path in opened if not paths.matches(path)] == []
    assert [path for path in closed if paths.matches(path)] == []


@pytest.mark.parametrize("pattern", ["/a*b", "**", "/*/x"])
def test_a_star_stands_only_at_the_end(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape(pattern.removeprefix("/"))):
        exchange.OpenPaths.parse([pattern])
