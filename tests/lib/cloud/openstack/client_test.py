"""Calls are bounded, measured, and retried once where that is harmless."""

import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, Protocol

import pytest
import structlog.testing

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import lists
from lib.cloud.support import circuit


class Call(Protocol):
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


class StandIn(Protocol):
    url: str
    servers: list[dict[str, object]]
    ports: list[dict[str, object]]
    newest: str
    max_limit: int
    roles: list[str]
    calls: list[Call]
    silent: set[str]
    faults: dict[str, list[object]]
    tokens: int
    elsewhere: list[str]
    refused: set[str]
    more: "Callable[[Call, str], Answer | None]"

    def fail(
        self,
        name: str,
        status: int,
        body: bytes = b"{}",
        headers: dict[str, str] | None = None,
    ) -> None: ...

    def paths(self) -> list[str]: ...


class Clock(Protocol):
    now: float
    slept: list[float]


MakeClient = Callable[..., client.Client]
MakeServer = Callable[..., dict[str, object]]
Answer = tuple[int, dict[str, str], bytes]
Observed = list[tuple[str, str]]

ITEM_NOT_FOUND = b'{"itemNotFound": {"code": 404, "message": "gone"}}'
DETAIL = "servers/detail"
SILENT = "the network service does not say its version"
NO_ANSWER = "the cloud did not answer in time"


def list_servers(api: client.Client) -> tuple[native.Server, ...]:
    return lists.servers(api, api.now() + 60)


def failure(api: client.Client) -> errors.CloudError:
    with pytest.raises(errors.CloudError) as raised:
        list_servers(api)
    return raised.value


def test_the_first_call_logs_in_and_asks_for_versions_once(
    stand_in: StandIn, make_client: MakeClient, observed: Observed
) -> None:
    """Nothing is called before it is needed; later calls are alone."""
    api = make_client()
    assert stand_in.calls == []
    list_servers(api)
    assert stand_in.paths() == ["auth/tokens", "/compute/v2.1", DETAIL]
    list_servers(api)
    assert len(stand_in.calls) == 4
    assert observed == [("list servers", "ok"), ("list servers", "ok")]


@pytest.mark.parametrize(
    ("newest", "used"),
    [("2.96", "2.60"), ("2.60", "2.60"), ("2.53", "2.53"), ("2.1", "2.1"), ("", "2.1")],
)
def test_the_microversion_is_ours_or_the_clouds_newest(
    stand_in: StandIn, make_client: MakeClient, newest: str, used: str
) -> None:
    """2.60 where there is more, else all there is, in both headers."""
    stand_in.newest = newest
    list_servers(make_client())
    headers = stand_in.calls[-1].headers
    assert headers["openstack-api-version"] == f"compute {used}"
    assert headers["x-openstack-nova-api-version"] == used


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_get_is_tried_once_more_after_a_jittered_pause(
    stand_in: StandIn,
    make_client: MakeClient,
    clock: Clock,
    observed: Observed,
    status: int,
) -> None:
    """The caller does not see a transient status when the second try succeeds."""
    stand_in.fail(DETAIL, status)
    assert list_servers(make_client()) == ()
    assert clock.slept == [0.75]
    assert observed == [("list servers", "ok")]


def test_the_second_failure_is_final(
    stand_in: StandIn, make_client: MakeClient, observed: Observed
) -> None:
    """Two tries and no third; the error names operation, status and request."""
    for _ in range(3):
        stand_in.fail(DETAIL, 503)
    error = failure(make_client())
    assert isinstance(error, errors.Unavailable)
    assert error.request_id == "req-1"
    assert str(error) == (
        "list servers: the cloud answered 503 Service Unavailable (request req-1)"
    )
    assert stand_in.paths().count(DETAIL) == 2
    assert observed == [("list servers", "CloudUnavailable")]


@pytest.mark.parametrize("status", [400, 403, 409, 500])
def test_no_other_status_is_tried_again(
    stand_in: StandIn, make_client: MakeClient, clock: Clock, status: int
) -> None:
    """What a second try can't help goes to the caller at once."""
    stand_in.fail(DETAIL, status)
    failure(make_client())
    assert stand_in.paths().count(DETAIL) == 1
    assert clock.slept == []


def test_a_short_retry_after_is_obeyed(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """The pause is what the cloud asks for, and a little jitter more."""
    stand_in.fail(DETAIL, 429, headers={"Retry-After": "3"})
    assert list_servers(make_client()) == ()
    assert clock.slept == [3.25]


def test_a_long_retry_after_goes_to_the_callers_queue(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """No worker sleeps for half a minute; the error carries the time."""
    stand_in.fail(DETAIL, 429, headers={"Retry-After": "30"})
    error = failure(make_client())
    assert isinstance(error, errors.Unavailable)
    assert error.retry_after_s == 30
    assert clock.slept == []


def test_no_second_try_beyond_the_deadline(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """A pause that would outlast the read's time is not begun."""
    stand_in.fail(DETAIL, 503)
    api = make_client()
    with pytest.raises(errors.Unavailable):
        lists.servers(api, api.now() + 0.5)
    assert clock.slept == []


def test_no_call_is_made_when_the_time_is_over(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """A deadline in the past costs nothing."""
    api = make_client()
    with pytest.raises(errors.Unavailable, match="no time is left"):
        lists.servers(api, api.now())
    assert stand_in.calls == []


@pytest.mark.parametrize("path", [DETAIL, "auth/tokens"])
def test_silence_ends_with_the_time_out(
    stand_in: StandIn, make_client: MakeClient, path: str
) -> None:
    """Neither a call nor a log-in hangs, and neither is sent a second time."""
    stand_in.silent = {path}
    began = time.monotonic()
    error = failure(make_client(timeout_s=0.2))
    assert isinstance(error, errors.Unavailable)
    assert "did not answer in time" in error.message
    assert time.monotonic() - began < 20
    assert stand_in.paths().count(path) == 1


def test_a_silent_version_document_leaves_the_oldest_microversion(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """The catalogue's versioned URL serves at 2.1, and is asked again later."""
    stand_in.silent = {"/compute/v2.1"}
    api = make_client(timeout_s=0.2)
    assert list_servers(api) == ()
    assert stand_in.calls[-1].headers["openstack-api-version"] == "compute 2.1"
    stand_in.silent.clear()
    list_servers(api)
    assert stand_in.calls[-1].headers["openstack-api-version"] == "compute 2.60"


def test_a_silent_version_document_without_which_nothing_goes_ends_in_time(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """A URL without a version leads nowhere; that is told, not waited for."""
    stand_in.silent = {"/network"}
    api = make_client(timeout_s=0.2)
    began = time.monotonic()
    with pytest.raises(errors.Unavailable, match=f"{SILENT}: {NO_ANSWER}"):
        lists.wirings(api, api.now() + 60)
    assert time.monotonic() - began < 20
    stand_in.silent.clear()
    assert lists.wirings(api, api.now() + 60) == {}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (503, f"{SILENT}: the cloud answered 503 Service Unavailable"),
        (403, f"{SILENT}: the cloud answered 403 Forbidden"),
        (200, "the network service does not say its version"),
    ],
)
def test_a_service_that_refuses_to_say_its_version_is_told_to_refuse(
    stand_in: StandIn, make_client: MakeClient, status: int, message: str
) -> None:
    """Only one whose document is none does not say it; no word of it is shown."""
    for _ in range(10):
        stand_in.fail("/network", status, b'{"secret": 1}')
    api = make_client()
    with pytest.raises(errors.Unavailable) as listed:
        lists.wirings(api, api.now() + 60)
    with pytest.raises(errors.Unavailable) as asked:
        api.version(client.Service.NETWORK)
    assert listed.value.message == asked.value.message == message
    stand_in.faults.clear()
    assert lists.wirings(api, api.now() + 60) == {}


def test_a_token_is_replaced_once_when_it_is_refused(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """401 means one new token and one more try, unseen by the caller."""
    api = make_client()
    list_servers(api)
    stand_in.refused = {"token-1"}
    assert list_servers(api) == ()
    assert stand_in.tokens == 2


def test_a_token_that_ends_under_many_threads_is_replaced_once(
    stand_in: StandIn, make_client: MakeClient, observed: Observed
) -> None:
    """All that are refused together share one log-in; none of them fails."""
    threads = 8
    api = make_client()
    list_servers(api)
    together = threading.Barrier(threads)

    def ended(call: Call, name: str) -> Answer | None:
        if call.headers["x-auth-token"] != "token-1" or name != DETAIL:
            return None
        together.wait(10)
        return 401, {}, b"{}"

    stand_in.more = ended
    with futures.ThreadPoolExecutor(threads) as pool:
        asked = [pool.submit(list_servers, api) for _ in range(threads)]
    assert [row.result() for row in asked] == [()] * threads
    assert stand_in.tokens == 2
    assert observed == [("list servers", "ok")] * (threads + 1)


def test_a_token_that_is_always_refused_is_an_error(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """There is no loop of log-ins."""
    stand_in.refused = {f"token-{n}" for n in range(9)}
    assert isinstance(failure(make_client()), errors.Unauthenticated)
    assert stand_in.tokens == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, errors.Unauthenticated),
        (403, errors.Forbidden),
        (404, errors.Unavailable),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
    ],
)
def test_a_failed_log_in_is_told_apart_and_posted_once(
    stand_in: StandIn,
    make_client: MakeClient,
    status: int,
    kind: type[errors.CloudError],
) -> None:
    """Wrong credentials are no outage, and Keystone's 404 is no absence."""
    stand_in.fail("auth/tokens", status, headers={"Retry-After": "17"})
    error = failure(make_client())
    assert type(error) is kind
    assert error.retry_after_s == 17
    assert error.request_id == "req-1"
    assert "hunter2" not in str(error)
    assert stand_in.paths() == ["auth/tokens"]


def test_a_404_counts_only_from_the_service_itself(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """A proxy's page, or that of a wrong URL, is no proof of absence."""
    stand_in.fail("servers/x", 404, ITEM_NOT_FOUND)
    stand_in.fail("servers/x", 404, b"<html>not found</html>")
    stand_in.fail("servers/x", 404, b'{"message": "no such route"}')
    api = make_client()
    assert not lists.has_server(api, "x", api.now() + 9)
    for _ in range(2):
        with pytest.raises(errors.Unavailable, match="not from the service"):
            lists.has_server(api, "x", api.now() + 9)


@pytest.mark.parametrize(
    "body", [b"", b"<html/>", b"[]", b'{"servers": [{}]}', b"\xff"]
)
def test_an_answer_that_is_not_as_promised_is_an_outage(
    stand_in: StandIn, make_client: MakeClient, body: bytes
) -> None:
    """No half-read list is ever served."""
    stand_in.fail(DETAIL, 200, body)
    assert isinstance(failure(make_client()), errors.Unavailable)


def test_an_endpoint_that_the_catalogue_lacks_is_named(
    make_client: MakeClient,
) -> None:
    """A wrong region or endpoint type says so, and is never an empty list."""
    error = failure(make_client(region="Elsewhere"))
    assert isinstance(error, errors.Unavailable)
    assert "no compute service with a public endpoint in region Elsewhere" in str(error)
    error = failure(make_client(endpoint_type="admin"))
    assert "admin endpoint" in str(error)


def test_a_service_with_two_old_names_elsewhere_is_not_here(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """keystoneauth takes that for a mistake of its own."""
    stand_in.elsewhere.extend(["volumev2", "volumev3"])
    api = make_client(region="Elsewhere")
    call = client.Get(client.Service.VOLUME, "volumes", "list volumes")
    with pytest.raises(errors.Unavailable, match="no block-storage service"):
        api.get(call, api.now() + 5)


@pytest.mark.parametrize(
    ("auth_url", "message"),
    [
        (
            "http://127.0.0.1:1/v3",
            "the cloud can't be reached: http://127.0.0.1:1: connection refused",
        ),
        (
            "http://user:hunter2@127.0.0.1:1/v3?token=hunter2",
            "the cloud can't be reached: http://127.0.0.1:1: connection refused",
        ),
        (
            "http://keystone.invalid:5000/v3",
            "the cloud can't be reached: http://keystone.invalid:5000: host name not"
            " resolved: ",
        ),
    ],
    ids=["closed port", "URL with a password", "misspelt host name"],
)
def test_a_cloud_that_can_not_be_reached_is_unavailable(
    auth_url: str, message: str, make_client: MakeClient
) -> None:
    """An outage, named with server and cause, and without what is secret in the URL."""
    error = failure(make_client(auth_url=auth_url))
    assert isinstance(error, errors.Unavailable)
    assert error.message.startswith(message)
    assert "hunter2" not in str(error)
    assert error.__cause__ is not None


def test_pages_are_followed_by_marker_at_our_own_endpoint(
    stand_in: StandIn, make_client: MakeClient, make_server: MakeServer
) -> None:
    """The link's host can't be reached, and all servers come in order all the same."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(7)]
    stand_in.max_limit = 3
    servers = list_servers(make_client())
    assert [server.id for server in servers] == [f"s-{n}" for n in range(7)]
    queries = [call.query for call in stand_in.calls if DETAIL in call.path]
    assert queries == [
        {"limit": ["1000"]},
        {"limit": ["1000"], "marker": ["s-2"]},
        {"limit": ["1000"], "marker": ["s-5"]},
    ]


def test_a_marker_that_vanished_fails_the_read(
    stand_in: StandIn, make_client: MakeClient, make_server: MakeServer
) -> None:
    """A list that changed between pages is neither served in part nor our fault."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(4)]
    stand_in.max_limit = 2
    first = (
        b'{"servers": [], "servers_links": [{"rel": "next", "href": "?marker=s-9"}]}'
    )
    stand_in.fail(DETAIL, 200, first)
    error = failure(make_client())
    assert isinstance(error, errors.Unavailable)
    assert "changed while it was read" in error.message


def test_pages_that_go_round_in_a_circle_end(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    """A cloud that ignores the marker does not keep us for ever."""
    page = b'{"servers": [], "servers_links": [{"rel": "next", "href": "?marker=s-9"}]}'
    for _ in range(9):
        stand_in.fail(DETAIL, 200, page)
    assert "circle" in failure(make_client()).message
    assert stand_in.paths().count(DETAIL) == 2


@pytest.mark.parametrize(
    ("roles", "expected"),
    [(["member", "reader"], None), (["member", "admin"], ["project-1"])],
)
def test_only_an_administrators_lists_of_neutron_are_filtered_by_project(
    stand_in: StandIn,
    make_client: MakeClient,
    roles: list[str],
    expected: list[str] | None,
) -> None:
    """A member is shown what is his; an administrator would be shown everything."""
    stand_in.roles = roles
    api = make_client()
    lists.wirings(api, api.now() + 9)
    assert stand_in.calls[-1].path == "/network/v2.0/ports"
    assert stand_in.calls[-1].query.get("project_id") == expected


def test_a_service_that_fails_again_and_again_is_left_alone_and_probed(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """Each service by itself; a refusal costs no call and says when to come back."""
    api = make_client()
    list_servers(api)
    for _ in range(circuit.FAILURES):
        stand_in.fail(DETAIL, 500)
    with structlog.testing.capture_logs() as logs:
        for _ in range(circuit.FAILURES):
            failure(api)
        stand_in.calls.clear()
        clock.now += 1
        error = failure(api)
        assert isinstance(error, errors.Unavailable)
        assert error.retry_after_s == circuit.FIRST_OPEN_S - 1
        assert "not called: the compute service does not answer" in str(error)
        assert stand_in.calls == []
        lists.wirings(api, api.now() + 9)
        clock.now += circuit.FIRST_OPEN_S
        assert list_servers(api) == ()
    assert [(log["event"], log["service"]) for log in logs] == [
        ("circuit opened", "compute"),
        ("circuit closed", "compute"),
    ]


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_refusals_open_no_circuit(
    stand_in: StandIn, make_client: MakeClient, status: int
) -> None:
    """Whoever refuses is there: wrong credentials must not hide behind an outage."""
    api = make_client()
    for _ in range(2 * circuit.FAILURES):
        stand_in.fail("servers/x", status, ITEM_NOT_FOUND)
        stand_in.refused = {f"token-{n}" for n in range(99)} if status == 401 else set()
        call = client.Get(client.Service.COMPUTE, "servers/x", "get server")
        with pytest.raises(errors.CloudError) as raised:
            api.get(call, api.now() + 9)
        assert not isinstance(raised.value, errors.Unavailable)


def test_a_named_pause_holds_for_all_calls_to_that_service(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """Retry-After of one answer keeps every worker away until then."""
    stand_in.fail(DETAIL, 429, headers={"Retry-After": "30"})
    api = make_client()
    failure(api)
    stand_in.calls.clear()
    clock.now += 10
    error = failure(api)
    assert (error.retry_after_s, stand_in.calls) == (20, [])
    clock.now += 20
    assert list_servers(api) == ()


class _SlowLogin(list[Call]):
    """Calls of the stand-in; authentication takes half a minute of the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def append(self, call: Call) -> None:
        super().append(call)
        if call.path.endswith("/auth/tokens"):
            self._clock.now += 30


def test_a_write_is_not_sent_after_its_deadline(
    stand_in: StandIn, make_client: MakeClient, clock: Clock
) -> None:
    """Time that authentication takes counts: the Lease may end meanwhile."""
    stand_in.calls = _SlowLogin(clock)
    api = make_client()
    write = client.Write(
        client.Service.NETWORK, "POST", "floatingips", "create floating IP", body={}
    )
    now = api.now()
    with pytest.raises(errors.Unavailable, match="no time is left") as late:
        api.write(write, now + 60, send_by=now + 20)
    assert late.value.was_rejected, "its outcome is known"
    assert "floatingips" not in stand_in.paths()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_write_is_sent_once_whatever_the_answer(
    stand_in: StandIn, make_client: MakeClient, clock: Clock, status: int
) -> None:
    """A second POST could create a second object."""
    stand_in.fail("floatingips", status)
    write = client.Write(
        client.Service.NETWORK, "POST", "floatingips", "create floating IP", body={}
    )
    api = make_client()
    with pytest.raises(errors.CloudError):
        api.write(write, api.now() + 60, send_by=api.now() + 60)
    assert stand_in.paths().count("floatingips") == 1
    assert clock.slept == []


def test_several_regions_and_none_named_are_refused(
    stand_in: StandIn, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each service would have a first match of its own."""
    usual = type(stand_in)._endpoint  # type: ignore[attr-defined] # of conftest.py

    def several(self: object, kind: str, url: str) -> dict[str, Any]:
        result: dict[str, Any] = usual(self, kind, url)
        (first,) = result["endpoints"]
        other = {
            **first,
            "id": "other",
            "region": "RegionTwo",
            "region_id": "RegionTwo",
        }
        return {**result, "endpoints": [other, first]}

    monkeypatch.setattr(type(stand_in), "_endpoint", several)
    error = failure(make_client(region=""))
    assert isinstance(error, errors.Ambiguous)
    assert "in several regions (RegionOne, RegionTwo)" in str(error)
    assert "set region in [Global]" in str(error)
    assert list_servers(make_client(region="RegionOne")) == ()


def test_the_only_region_needs_no_name(
    stand_in: StandIn, make_client: MakeClient
) -> None:
    assert list_servers(make_client(region="")) == ()
