import dataclasses

import pytest

from lib.cloud import errors
from lib.cloud.openstack import answers, native

ABOUT = ("get server", "server-1")


@dataclasses.dataclass(frozen=True)
class Page:
    links: tuple[native.Link, ...]
    items: tuple[object, ...] = ()


def answer(status: int, body: bytes = b"", **headers: str) -> answers.Answer:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return answers.read(status, named, body, now=0.0)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"itemNotFound": {"code": 404}}', errors.NotFound),
        (b'{"NeutronError": {"type": "PortNotFound"}}', errors.NotFound),
        (b'{"faultstring": "no such thing"}', errors.NotFound),
        (b'{"error": "default backend"}', errors.Unavailable),
        (b"<html>not found</html>", errors.Unavailable),
        (b"[]", errors.Unavailable),
    ],
)
def test_only_the_service_itself_says_that_something_is_absent(
    body: bytes, kind: type[errors.CloudError]
) -> None:
    assert type(answer(404, body).failure(*ABOUT)) is kind


def test_an_error_carries_what_the_answer_said_beside_its_status() -> None:
    """But not its body."""
    given = answer(429, b"secret", x_compute_request_id="req-1", Retry_After="7")
    error = given.failure(*ABOUT)
    assert (error.operation, error.resource) == ABOUT
    assert (error.request_id, error.retry_after_s) == ("req-1", 7.0)
    assert "secret" not in str(error)


def test_success_is_two_hundred_and_something() -> None:
    found = [
        status for status in (199, 200, 204, 299, 300) if answer(status).is_success
    ]
    assert found == [200, 204, 299]


def test_what_can_not_be_decoded_is_no_answer() -> None:
    assert answers.decode(b'{"a": 1}', dict[str, int], *ABOUT) == {"a": 1}
    for body in (b"{", b"[]", b"\xff", b'{"a": "b"}'):
        with pytest.raises(errors.Unavailable, match="not what the service promises"):
            answers.decode(body, dict[str, int], *ABOUT)


def test_the_next_page_begins_after_the_last_marker_of_its_link() -> None:
    def page(*links: tuple[str, str]) -> Page:
        return Page(tuple(native.Link(rel=rel, href=url) for rel, url in links))

    url = "http://only.inside/v2.1/servers?limit=2&marker=a%20b"
    assert answers.next_marker(page(("previous", "x?marker=c"), ("next", url))) == "a b"
    assert answers.next_marker(page(("next", "http://x/servers"))) == ""
    assert answers.next_marker(page()) == ""
