"""A service with injected faults changes only the answers that it should."""

import json

import pytest

from tests.harness.faults import fault_proxy
from tests.harness.openstack import faults


def request(path: str, token: str = "") -> fault_proxy.Request:
    return fault_proxy.Request("GET", path, {"x-auth-token": token}, 0.0)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v2.1/servers/detail?limit=1000", "servers"),
        ("/v2.0/ports?fields=id", "ports"),
        ("/v2.1/servers/detail/", "servers"),
    ],
)
def test_lists_are_empty(path: str, kind: str) -> None:
    answer = faults.emptied(request(path))
    assert answer is not None
    assert (answer.status, json.loads(answer.body)) == (200, {kind: []})


@pytest.mark.parametrize(
    "path", ["/v2.1/servers/1", "/v2.1/flavors/detail", "/v2.1", "/v2.0/networks", "/"]
)
def test_other_reads_tell_the_truth(path: str) -> None:
    assert faults.emptied(request(path)) is None


def test_only_the_tokens_named_are_refused() -> None:
    fault = faults.refused({"old"})
    refusal = fault(request("/v2.1/servers/detail", "old"))
    assert refusal is not None
    assert refusal.status == 401
    assert fault(request("/v2.1/servers/detail", "new")) is None


def test_a_throttled_service_names_the_pause() -> None:
    answer = faults.throttled(8)(request("/v2.1"))
    assert answer is not None
    assert (answer.status, answer.headers["Retry-After"]) == (429, "8")
