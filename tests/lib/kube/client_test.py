import pathlib
import threading
import time
import typing
from collections.abc import Callable

import msgspec
import pytest
import urllib3

from lib.kube import client, errors, resources, transport

if typing.TYPE_CHECKING:
    from tests.lib import conftest as shared
    from tests.lib.kube import conftest

Connect = Callable[..., client.KubeClient]
NODE = msgspec.json.encode({"metadata": {"name": "n1"}})


def test_objects_come_and_go(server: "conftest.StandIn", connect: Connect) -> None:
    """Each method reaches the server as the request it stands for."""
    api = connect(server.url)
    api.create(resources.NODES, NODE, timeout_s=5)
    body = b'{"spec":{"x":1}}'
    api.patch(resources.NODES, "n1", body, timeout_s=5)
    assert b'"x":1' in api.read(resources.NODES, "n1", timeout_s=5)
    page = api.list_page(resources.NODES, query={"limit": "5"}, timeout_s=5)
    assert b'"n1"' in page
    api.delete(resources.NODES, "n1", timeout_s=5)
    with pytest.raises(errors.NotFound):
        api.read(resources.NODES, "n1", timeout_s=5)
    patch = server.requests[1]
    assert patch.headers["Content-Type"] == client.MERGE_PATCH
    assert patch.headers["Authorization"] == "Bearer s3cret-token"
    assert patch.headers["User-Agent"] == "test/1"


def test_one_connection_serves_many_requests(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """Read bodies, refusals included, give their connection back."""
    api = connect(server.url)
    for _ in range(20):
        with pytest.raises(errors.NotFound):
            api.read(resources.NODES, "none", timeout_s=5)
    assert server.connections == 1


def test_an_unread_watch_does_not_poison_the_pool(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A stream left early is closed; what follows reads its own answers."""
    api = connect(server.url, pool_size=1)
    for n in range(5):
        server.fake.put(resources.NODES, {"metadata": {"name": f"n{n}"}})
    for _ in range(3):
        opened = api.stream(
            "/api/v1/nodes",
            {"watch": "1", "resourceVersion": "1"},
            connect_timeout_s=5,
            read_timeout_s=5,
        )
        with opened as lines:
            assert b'"n0"' in next(lines)
        assert b'"n3"' in api.read(resources.NODES, "n3", timeout_s=5)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_silent_server_is_given_up(
    server: "conftest.StandIn", connect: Connect, method: str
) -> None:
    """No answer in time is Unavailable, soon after, and nothing is sent again."""
    api = connect(server.url)
    server.script.extend([lambda handler: handler.stall()] * 2)
    began = time.monotonic()
    with pytest.raises(errors.Unavailable, match="in time"):
        api.request(method, "/api/v1/nodes", body=NODE, timeout_s=0.3)
    assert time.monotonic() - began < 20
    assert len(server.requests) == 1


def test_what_has_no_time_left_is_not_sent(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A process that slept through its time sends nothing when it wakes."""
    api = connect(server.url)
    with pytest.raises(errors.Unavailable, match="not sent"):
        api.create(resources.NODES, NODE, timeout_s=0)
    assert not server.requests


def test_a_request_that_fell_asleep_while_it_was_sent_is_none(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """The head may be out already; without its body it cannot be carried out."""
    headers = {"Content-Type": "application/json"}
    url = f"{server.url}/api/v1/nodes"
    with urllib3.PoolManager() as pool:
        call = transport.HttpCall("POST", "/api/v1/nodes", url, headers, NODE)
        opened = transport.exchange(pool, call, time.monotonic() + 5)
        with opened as response:
            assert response.status == 200
        opened = transport.exchange(pool, call, time.monotonic() - 1)
        with pytest.raises(errors.Unavailable), opened:
            pass
    assert b"n1" in connect(server.url).read(resources.NODES, "n1", timeout_s=5)
    assert [request.command for request in server.requests] == ["POST", "GET"]


def test_a_write_carries_the_time_it_has(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """In milliseconds, beside other parameters; a read carries none."""
    api = connect(server.url)
    api.create(resources.NODES, NODE, timeout_s=5)
    path = resources.NODES.path()
    api.request("POST", path, query={"dryRun": "All"}, body=NODE, timeout_s=60)
    api.read(resources.NODES, "n1", timeout_s=5)
    first, second, read = (request.path for request in server.requests)
    assert 0 < int(first.removeprefix(f"{path}?timeout=").removesuffix("ms")) <= 5000
    assert second.startswith(f"{path}?dryRun=All&timeout=")
    assert read == f"{path}/n1"


def test_a_dripping_server_is_given_up(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """The time-out covers the whole body, not each piece of it."""
    api = connect(server.url)

    def drip(handler: "conftest.Handler") -> None:
        handler.begin_chunks()
        while not server.ended.wait(0.05):
            handler.chunk(b"{")

    server.script.append(drip)
    began = time.monotonic()
    with pytest.raises(errors.Unavailable, match="in time"):
        api.read(resources.NODES, "n1", timeout_s=0.4)
    assert time.monotonic() - began < 20


def test_nobody_there_is_unavailable(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A refused connection is Unavailable, not a native error; it names the server."""
    api = connect("http://127.0.0.1:1")
    with pytest.raises(errors.Unavailable) as caught:
        api.read(resources.NODES, "n1", timeout_s=2)
    assert caught.value.message == "http://127.0.0.1:1: connection refused"


def test_a_host_without_an_address_is_named(connect: Connect) -> None:
    api = connect("http://mooring.invalid:1")
    with pytest.raises(errors.Unavailable) as caught:
        api.read(resources.NODES, "n1", timeout_s=2)
    message = caught.value.message
    assert message.startswith("http://mooring.invalid:1: host name not resolved: ")


def test_a_get_is_sent_a_second_time(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A GET whose connection breaks, or that meets a 5xx, is tried once more."""
    api = connect(server.url)
    server.fake.put(resources.NODES, {"metadata": {"name": "n1"}})
    server.script.append(lambda handler: handler.drop())
    assert b"n1" in api.read(resources.NODES, "n1", timeout_s=5)
    server.script.append(lambda handler: handler.refuse(503, "starting"))
    assert b"n1" in api.read(resources.NODES, "n1", timeout_s=5)
    server.script.extend([lambda handler: handler.refuse(500, "broken")] * 3)
    with pytest.raises(errors.Unavailable, match="broken"):
        api.read(resources.NODES, "n1", timeout_s=5)
    assert len(server.script) == 1


def test_a_write_is_never_sent_twice(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A write whose answer was lost is for its caller to find out about."""
    api = connect(server.url)
    server.script.append(lambda handler: handler.drop())
    with pytest.raises(errors.Unavailable):
        api.create(resources.NODES, NODE, timeout_s=5)
    assert server.count("POST") == 1


def test_throttling_says_when_to_come_back(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """A 429 is not retried here; its Retry-After reaches the caller."""
    api = connect(server.url)
    server.script.append(lambda h: h.refuse(429, "too many", Retry_After="7"))
    with pytest.raises(errors.Unavailable, match="too many") as caught:
        api.read(resources.NODES, "n1", timeout_s=5)
    assert (caught.value.retry_after_s, caught.value.status) == (7.0, 429)
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """Our token goes to no other place."""
    api = connect(server.url)
    server.script.append(lambda h: h.send(302, b"", Location=server.url + "/api"))
    with pytest.raises(errors.KubeError, match="302"):
        api.read(resources.NODES, "n1", timeout_s=5)
    assert len(server.requests) == 1


def test_a_refused_token_is_read_again(
    server: "conftest.StandIn", connect: Connect, tmp_path: pathlib.Path
) -> None:
    """After 401 the credentials are read once more, writes included."""
    (tmp_path / "token").write_text("old")
    api = connect(server.url, {"tokenFile": "token"})
    (tmp_path / "token").write_text("newer\n")
    server.script.append(lambda handler: handler.refuse(401, "who are you"))
    api.create(resources.NODES, NODE, timeout_s=5)
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer old", "Bearer newer"]
    server.script.extend([lambda handler: handler.refuse(401, "who are you")] * 2)
    with pytest.raises(errors.Unauthorized, match="who are you"):
        api.read(resources.NODES, "n1", timeout_s=5)
    assert len(server.script) == 1, "not read again so soon"


def test_a_changed_token_file_is_noticed(
    server: "conftest.StandIn",
    connect: Connect,
    clock: "shared.FakeClock",
    tmp_path: pathlib.Path,
    eventually: "shared.Eventually",
) -> None:
    """Without any refusal, a new token is used soon."""
    (tmp_path / "token").write_text("old")
    api = connect(server.url, {"tokenFile": "token"}, clock=clock)
    (tmp_path / "token").write_text("newer")
    clock.pass_by(client.CHECK_EVERY_S)

    def is_used() -> bool:
        api.list_page(resources.NODES, query={}, timeout_s=5)
        return bool(server.requests[-1].headers["Authorization"] == "Bearer newer")

    eventually(is_used)


def test_a_file_that_breaks_leaves_the_old_credentials(
    server: "conftest.StandIn",
    connect: Connect,
    clock: "shared.FakeClock",
    tmp_path: pathlib.Path,
    log: list[dict[str, object]],
    eventually: "shared.Eventually",
) -> None:
    """A kubeconfig caught half-written does no harm but a warning."""
    api = connect(server.url, clock=clock)
    (tmp_path / "kubeconfig").write_text("users: [")
    clock.pass_by(client.CHECK_EVERY_S)
    api.list_page(resources.NODES, query={}, timeout_s=5)
    eventually(lambda: bool(log))
    api.list_page(resources.NODES, query={}, timeout_s=5)
    assert log[0]["event"] == "cannot reload the credentials"


def test_no_error_shows_the_token(server: "conftest.StandIn", connect: Connect) -> None:
    """Neither text nor cause of any error holds the token."""
    api = connect(server.url)
    server.script.append(lambda handler: handler.refuse(403, "no"))
    server.script.extend([lambda handler: handler.drop()] * 2)
    for _ in range(2):
        with pytest.raises(errors.KubeError) as caught:
            api.read(resources.NODES, "n1", timeout_s=2)
        error: BaseException | None = caught.value
        while error is not None:
            assert "s3cret" not in f"{error!s} {error!r} {vars(error)}"
            error = error.__cause__ or error.__context__


def test_the_observer_hears_of_each_exchange(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """Method, kind and status are reported; no answer has status 0."""
    exchanges: list[tuple[str, str, int]] = []
    api = connect(
        server.url, observer=lambda m, r, code, _: exchanges.append((m, r, code))
    )
    server.script.extend([lambda handler: handler.drop()])
    with pytest.raises(errors.NotFound):
        api.read(resources.LEASES, "l", "default", timeout_s=5)
    assert exchanges == [("GET", "leases", 0), ("GET", "leases", 404)]


def abort_a_waiting_stream(
    api: client.KubeClient, eventually: "shared.Eventually"
) -> None:
    lines_read: list[bytes] = []
    opened: list[client.WatchLines] = []

    def listen() -> None:
        stream = api.stream(
            "/api/v1/nodes",
            {"watch": "1", "resourceVersion": "1"},
            connect_timeout_s=5,
            read_timeout_s=60,
        )
        with stream as lines:
            opened.append(lines)
            lines_read.extend(lines)

    thread = threading.Thread(target=listen)
    thread.start()
    eventually(lambda: bool(opened))
    time.sleep(0.05)  # so that it waits inside the read, most likely
    opened[0].abort()
    thread.join(5)
    assert not thread.is_alive()
    assert lines_read == []
    assert b"items" in api.list_page(resources.NODES, query={}, timeout_s=5)


def test_another_thread_ends_a_stream(
    server: "conftest.StandIn", connect: Connect, eventually: "shared.Eventually"
) -> None:
    """A reader that waits for the server is released immediately."""
    abort_a_waiting_stream(connect(server.url), eventually)


def test_another_thread_ends_a_stream_over_tls(
    tls_server: "conftest.StandIn",
    connect: Connect,
    eventually: "shared.Eventually",
) -> None:
    """The same with encryption, and the server's certificate is checked."""
    authority: dict[str, object] = {"certificate-authority": "ca.pem"}
    abort_a_waiting_stream(connect(tls_server.url, None, authority), eventually)


def test_an_unknown_certificate_is_refused(
    tls_server: "conftest.StandIn", connect: Connect
) -> None:
    """Without the authority nothing is sent."""
    api = connect(tls_server.url)
    with pytest.raises(errors.Unavailable, match="certificate not accepted: "):
        api.list_page(resources.NODES, query={}, timeout_s=2)
    assert tls_server.requests == []


def test_a_silent_stream_ends(server: "conftest.StandIn", connect: Connect) -> None:
    """Silence for longer than read_timeout_s is Unavailable."""
    api = connect(server.url)
    stream = api.stream(
        "/api/v1/nodes",
        {"watch": "1", "resourceVersion": "1"},
        connect_timeout_s=5,
        read_timeout_s=0.2,
    )
    with stream as lines, pytest.raises(errors.Unavailable, match="in time"):
        next(lines)


def test_lines_are_whole_however_they_arrive(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """Chunks and lines have nothing to do with each other."""

    def pieces(handler: "conftest.Handler") -> None:
        handler.begin_chunks()
        for piece in (b"on", b"e\ntwo\nth", b"r", b"ee\n", b"cut o", b""):
            handler.chunk(piece)

    server.script.append(pieces)
    stream = connect(server.url).stream("/x", {}, connect_timeout_s=5, read_timeout_s=5)
    with stream as lines:
        assert list(lines) == [b"one", b"two", b"three"]


def test_errors_of_the_reader_are_left_alone(
    server: "conftest.StandIn", connect: Connect
) -> None:
    """What the block itself raises is not taken for a broken connection."""
    server.script.append(lambda handler: handler.send(200, b"a\n"))
    stream = connect(server.url).stream("/x", {}, connect_timeout_s=5, read_timeout_s=5)
    with pytest.raises(OSError, match="mine"), stream:
        raise OSError("mine")
