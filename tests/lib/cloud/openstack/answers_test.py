import dataclasses

import pytest

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import answers, client

ABOUT = ("get server", "server-1")


@dataclasses.dataclass(frozen=True)
class Page:
    links: tuple[native.PageLink, ...]
    items: tuple[object, ...] = ()


def marker(*links: tuple[str, str]) -> str:
    page = Page(tuple(native.PageLink(rel=rel, href=url) for rel, url in links))
    return answers.next_marker(page, "list servers")


def answer(status: int, body: bytes = b"", **headers: str) -> answers.Answer:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return answers.read(status, named, body, now=0.0)


NOT_FOUND = {
    "compute": b'{"itemNotFound": {"code": 404}}',
    "block-storage": b'{"itemNotFound": {"code": 404}}',
    "network": b'{"NeutronError": {"type": "PortNotFound"}}',
    "load-balancer": b'{"faultcode": "Client", "faultstring": "no such thing"}',
    "key-manager": b'{"code": 404, "title": "Not Found", "description": "none"}',
}
"""The body of a 404 of each service that may report absence."""
GATEWAYS = [
    b'{"error": "default backend"}',
    b'{"message": "no Route matched with those values"}',
    b'{"type": "about:blank", "title": "Not Found", "status": 404}',
    b'{"title": "Not Found", "detail": "x", "instance": "/servers/1"}',
    b"<html>not found</html>",
    b"[]",
    b"\xff",
    b"",
]


def test_only_the_service_itself_reports_absence() -> None:
    """Each service x each body: only its own one; prints the table."""
    services = [member.value for member in client.Service]
    for service in services:
        for body in [*NOT_FOUND.values(), *GATEWAYS]:
            error = answer(404, body).failure(*ABOUT, service)
            print(f"{service:14} {type(error).__name__:12} {body!r}")
            is_own = body == NOT_FOUND.get(service)
            assert isinstance(error, errors.NotFound) is is_own, (service, body)
            assert is_own or isinstance(error, errors.Unavailable)
    assert set(services) - NOT_FOUND.keys() == {"image"}, "it answers 404 with HTML"


def test_an_error_carries_what_the_answer_said_beside_its_status() -> None:
    """But not its body."""
    values = answer(429, b"secret", x_compute_request_id="req-1", Retry_After="7")
    error = values.failure(*ABOUT, "compute")
    assert (error.operation, error.resource) == ABOUT
    assert (error.request_id, error.retry_after_s) == ("req-1", 7.0)
    assert "secret" not in str(error)


def test_success_is_two_hundred_and_something() -> None:
    result = [
        status for status in (199, 200, 204, 299, 300) if answer(status).is_success
    ]
    assert result == [200, 204, 299]


def test_what_can_not_be_decoded_is_no_answer() -> None:
    assert answers.decode(b'{"a": 1}', dict[str, int], *ABOUT) == {"a": 1}
    for body in (b"{", b"[]", b"\xff", b'{"a": "b"}'):
        with pytest.raises(errors.Unavailable, match="not what the service promises"):
            answers.decode(body, dict[str, int], *ABOUT)


def test_the_next_page_begins_after_the_last_marker_of_its_link() -> None:
    url = "http://only.inside/v2.1/servers?limit=2&marker=a%20b"
    assert marker(("previous", "x?marker=c"), ("next", url)) == "a b"
    assert marker() == ""
    assert marker(("previous", "http://x/servers")) == ""


@pytest.mark.parametrize(
    "url", ["http://x/servers", "http://x/servers?limit=2", "x?marker=", ""]
)
def test_a_next_link_without_marker_is_no_end_of_the_list(url: str) -> None:
    """Such a list would look complete: what it lacks would count as absent."""
    with pytest.raises(errors.Unavailable, match="has no marker"):
        marker(("next", url))
