"""The first answer of an API server, whatever it is, has the time."""

import datetime
import socket
import typing
from collections.abc import Callable

import pytest

from lib.kube import errors, greeting, kube_config

if typing.TYPE_CHECKING:
    from tests.lib.kube import conftest

DATE = "Thu, 01 Jan 2026 12:00:00 GMT"
AT = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)


@pytest.fixture()
def load(
    kubeconfig: Callable[..., object],
) -> Callable[[str], kube_config.Configuration]:
    def make(url: str) -> kube_config.Configuration:
        return kube_config.load(str(kubeconfig(url)), env={})

    return make


def answering(
    status: int, body: bytes, **headers: str
) -> Callable[["conftest.Handler"], None]:
    def answer(handler: "conftest.Handler") -> None:
        handler.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize(
    ("status", "body", "headers", "version", "at"),
    [
        (200, b'{"gitVersion": "v1.36.3"}', {"Date": DATE}, "v1.36.3", AT),
        (200, b"<html>", {"Date": DATE}, "", AT),
        (403, b'{"message": "no"}', {"Date": DATE}, "", AT),
        (200, b'{"gitVersion": "v1.36.3"}', {}, "v1.36.3", None),
        (200, b"{}", {"Date": "soon"}, "", None),
        (200, b"{}", {"Date": DATE.replace(" GMT", "")}, "", AT),
        (200, b"{}", {"Date": DATE.replace("GMT", "-0000")}, "", AT),
    ],
)
def test_any_answer_will_do(
    server: "conftest.StandIn",
    load: Callable[[str], kube_config.Configuration],
    status: int,
    body: bytes,
    headers: dict[str, str],
    version: str,
    at: datetime.datetime | None,
) -> None:
    server.script.append(answering(status, body, **headers))
    answer = greeting.ask(load(server.url), 5.0)
    assert (answer.version, answer.at) == (version, at)
    (request,) = server.requests
    assert "Authorization" not in request.headers, "sent before authentication"


def test_a_server_that_is_broken_or_away_is_an_error(
    server: "conftest.StandIn", load: Callable[[str], kube_config.Configuration]
) -> None:
    server.script.append(answering(503, b""))
    with pytest.raises(errors.Unavailable):
        greeting.ask(load(server.url), 5.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(errors.Unavailable):
            greeting.ask(load(url), 1.0)
