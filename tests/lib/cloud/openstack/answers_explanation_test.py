"""A refusal says what the service said: on one line, short, and without secrets."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.openstack.http import answers
from lib.cloud.openstack.instances import lists

NOVA = {"badRequest": {"code": 400, "message": "Flavor's disk is too small."}}
ROWS: dict[str, tuple[int, object, str, str]] = {
    # status, body, the service, what is said
    "Neutron": (
        409,
        {"NeutronError": {"type": "X", "message": "Port in use", "detail": "d"}},
        "network",
        "Port in use",
    ),
    "Octavia": (
        501,
        {"faultcode": "Server", "faultstring": "amphora: no SCTP", "debuginfo": None},
        "load-balancer",
        "amphora: no SCTP",
    ),
    "Nova": (400, NOVA, "compute", "Flavor's disk is too small"),
    "Cinder": (
        413,
        {"overLimit": {"code": 413, "message": "Volume quota exceeded"}},
        "block-storage",
        "Volume quota exceeded",
    ),
    "Barbican": (
        403,
        {"code": 403, "title": "Forbidden", "description": "Secret is private."},
        "key-manager",
        "Secret is private",
    ),
}


def failure(status: int, body: bytes, secrets: tuple[str, ...] = ()) -> str:
    answer = answers.Answer(status, body, "req-1", None)
    return answer.failure("create x", "y", "network", secrets).summary


@pytest.mark.parametrize("name", ROWS)
def test_each_service_is_quoted(name: str) -> None:
    status, document, service, text = ROWS[name]
    answer = answers.Answer(status, json.dumps(document).encode(), "req-1", None)
    summary = answer.failure("create x", "y", service).summary
    assert f": {text}" in summary


@pytest.mark.parametrize(
    "body",
    [
        b"<html>403 from a proxy</html>",
        b"",
        b"[]",
        b'"text"',
        b'{"message": "of a gateway"}',
        b'{"NeutronError": "text"}',
        b'{"NeutronError": {"message": 5}}',
        b"\xff\xfe",
    ],
)
def test_other_bodies_are_not_shown(body: bytes) -> None:
    assert failure(400, body) == "create x y: the cloud answered 400 Bad Request"


@pytest.mark.parametrize("status", [401, 408, 429, 500, 502, 503, 504])
def test_statuses_of_proxies_and_outages_quote_nothing(status: int) -> None:
    assert "too small" not in failure(status, json.dumps(NOVA).encode())


def test_it_is_one_short_line() -> None:
    text = "a\nb\tc\x1b[31md\u202ee\u2028f " + "x" * 5000
    summary = failure(400, json.dumps({"faultstring": text}).encode())
    assert summary.isprintable()
    assert "a b c [31md e f xxx" in summary
    assert len(summary) < 400
    assert summary.endswith("...")


def test_retries_have_one_text() -> None:
    texts = {
        failure(
            400,
            json.dumps(
                {"faultstring": f"No. (Request-ID: req-{n:08}-0000-4000-8000-{n:012})"}
            ).encode(),
        )
        for n in range(3)
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    "echo",
    ["{}", "X-Auth-Token: {}", '{{"password": "{}"}}', "https://u:{}@host/"],
)
def test_planted_secrets_are_not_shown(echo: str) -> None:
    body = json.dumps({"faultstring": "you sent " + echo.format("hunter2-secret")})
    summary = failure(400, body.encode(), ("hunter2-secret",))
    assert "hunter2" not in summary
    assert "you sent" in summary


def test_credentials_that_the_cloud_echoes_are_not_in_an_error(
    stand_in: Any, make_client: Callable[[], Any]
) -> None:
    """Password and token, through the real client."""
    text = "no: hunter2 and token-1 were sent"
    body = json.dumps({"forbidden": {"code": 403, "message": text}}).encode()
    stand_in.fail("servers/detail", 403, body)
    api = make_client()
    with pytest.raises(errors.Forbidden) as raised:
        lists.servers(api, api.now() + 60)
    assert "were sent" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "token-1" not in str(raised.value)
    assert "check the roles" in str(raised.value)
