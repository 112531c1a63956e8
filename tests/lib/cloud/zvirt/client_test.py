"""The client of an engine: absence, tokens, statuses, searches, shared reads."""

import threading

import pytest
from ovirtsdk4 import types

from lib.cloud import errors
from lib.cloud.zvirt import api_paths, client, config, http
from lib.lab.zvirt import seed
from tests.lib.cloud.zvirt.engines import (
    FAULT,
    HTML,
    SETTINGS,
    Clock,
    Scripted,
    Simulated,
    engine,
    fixed,
)
from tests.lib.lab.zvirt.stage import ABSENT, CLUSTER, Stage, disk_body

VM = f"vms/{ABSENT}"


# Absence.


def test_an_object_is_absent_while_the_root_answers() -> None:
    exchange = Simulated(Stage())
    assert engine(exchange).get(VM) is None
    assert exchange.requests["GET /ovirt-engine/api"] == 1


def test_a_gateway_that_knows_no_path_makes_nothing_absent() -> None:
    with pytest.raises(errors.Unavailable):
        engine(fixed(404, b"")).get(VM)


def test_a_page_with_404_makes_nothing_absent() -> None:
    with pytest.raises(errors.Unavailable):
        engine(fixed(404, HTML)).get(VM)


def test_a_fault_with_404_makes_nothing_absent() -> None:
    with pytest.raises(errors.InvalidRequest):
        engine(fixed(404, FAULT.format("Entity not found").encode())).get(VM)


def test_a_write_to_an_absent_object_is_confirmed() -> None:
    subject = engine(Simulated(Stage()))
    for call in (
        lambda: subject.remove(VM),
        lambda: subject.act(VM, "start", types.Action()),
        lambda: subject.update(VM, types.Vm(comment="c")),
    ):
        with pytest.raises(errors.NotFound):
            call()


def test_a_404_of_a_write_to_an_object_that_exists_is_no_absence() -> None:
    def answer(method: str, path: str, body: bytes | None) -> http.EngineResponse:
        if method == "DELETE":
            return http.EngineResponse(404, b"")
        return http.EngineResponse(200, f"<vm id='{ABSENT}'/>".encode())

    with pytest.raises(errors.Unavailable):
        engine(Scripted(answer)).remove(VM)


def test_a_missing_page_fails_the_whole_list() -> None:
    page = "".join(f"<vm id='{number}'/>" for number in range(client.PAGE))

    def answer(method: str, path: str, body: bytes | None) -> http.EngineResponse:
        if "page+1" in path:
            return http.EngineResponse(200, f"<vms>{page}</vms>".encode())
        return http.EngineResponse(200, HTML)

    with pytest.raises(errors.Unavailable):
        engine(Scripted(answer)).list_all("vms")


def test_an_object_of_a_user_without_permissions_is_not_absent() -> None:
    stage = Stage()
    vm = stage.new_vm()
    witness = f"clusters/{CLUSTER}"
    subject = engine(Simulated(stage), witness=witness)
    assert subject.get(f"vms/{ABSENT}") is None
    stage.engine.settings.add("hide *")
    with pytest.raises(errors.Forbidden, match="absence is not reliable"):
        subject.get(f"vms/{vm}")
    with pytest.raises(errors.Forbidden):
        subject.remove(f"vms/{vm}")


@pytest.mark.parametrize("key", ["", ".", "..", "../disks", "a/../../x", "a//b"])
def test_an_id_that_changes_the_path_is_not_sent(key: str) -> None:
    exchange = fixed(200, b"")
    for call in (engine(exchange).get, engine(exchange).remove):
        with pytest.raises(errors.InvalidRequest, match="invalid ID"):
            call(f"vms/{key}")
    assert not [path for _, path in exchange.requests if "sso" not in path]


def test_an_id_with_other_characters_stays_one_part_of_the_path() -> None:
    exchange = fixed(404, HTML)
    with pytest.raises(errors.Unavailable):
        engine(exchange).get("vms/a?b#c%2f d")
    assert exchange.requests[1][1].endswith("/vms/a%3Fb%23c%252f%20d")


# Tokens.


def test_a_token_is_requested_once() -> None:
    exchange = Simulated(Stage())
    subject = engine(exchange)
    for _ in range(3):
        subject.list("vms")
    assert exchange.requests["POST /ovirt-engine/sso/oauth/token"] == 1


def test_an_idle_hour_costs_three_requests() -> None:
    stage = Stage()
    exchange, clock = Simulated(stage), Clock()
    subject = engine(exchange, clock)
    subject.list("vms")
    exchange.requests.clear()
    stage.advance(3600)
    clock.now += 3600
    subject.list("vms")
    print(dict(exchange.requests))
    assert sum(exchange.requests.values()) == 3


def test_fifty_threads_renew_a_token_by_one_request() -> None:
    stage = Stage()
    exchange = Simulated(stage)
    subject = engine(exchange)
    subject.list("vms")
    stage.sso.lose_tokens()
    exchange.requests.clear()
    barrier = threading.Barrier(50)

    def read(number: int) -> None:
        barrier.wait()
        subject.list("vms", {"max": str(number)})

    threads = [threading.Thread(target=read, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    print(dict(exchange.requests))
    assert exchange.requests["POST /ovirt-engine/sso/oauth/token"] == 1


def test_a_rejected_password_is_sent_again_after_a_minute_then_two() -> None:
    stage, clock = Stage(), Clock()
    stage.sso.set_password(seed.USER, "another")
    exchange = Simulated(stage)
    subject = engine(exchange, clock)
    sent = []
    for _ in range(36):
        with pytest.raises(errors.Unauthenticated) as caught:
            subject.list("vms")
        assert "a password" not in str(caught.value)
        sent.append(exchange.requests["POST /ovirt-engine/sso/oauth/token"])
        clock.now += 10
    # At 0, 60 and 180 s; the next would be at 420 s.
    assert (sent[5], sent[6], sent[17], sent[18], sent[35]) == (1, 2, 2, 3, 3)


def test_pauses_of_a_rejected_password_end_at_a_quarter_of_an_hour() -> None:
    clock = Clock()
    body = b'{"error_code": "access_denied", "error": "wrong"}'
    exchange = fixed(200, b"")
    exchange.sso = http.EngineResponse(400, body)
    subject = engine(exchange, clock)
    for _ in range(24 * 60):
        with pytest.raises(errors.Unauthenticated):
            subject.list("vms")
        clock.now += 60
    # A day: 0, 1, 3, 7, 15 minutes, then every 15 minutes.
    assert len(exchange.requests) == 5 + (24 * 60 - 1 - 15) // 15


def test_a_changed_password_is_sent_immediately() -> None:
    stage = Stage()
    stage.sso.set_password(seed.USER, "another")
    settings = [SETTINGS]
    subject = engine(Simulated(stage), settings=lambda: settings[0])
    with pytest.raises(errors.Unauthenticated):
        subject.list("vms")
    settings[0] = config.EngineConfig(SETTINGS.url, SETTINGS.username, "another")
    assert subject.list("vms") == ()


def test_a_token_is_renewed_before_it_expires() -> None:
    exchange = fixed(200, b"<vms/>")
    token = b'{"access_token": "t", "exp": "1700000100000"}'
    exchange.sso = http.EngineResponse(200, token)
    clock = Clock()
    subject = engine(exchange, clock)
    subject.list("vms")
    clock.now = 39
    subject.list("vms")
    assert len(exchange.requests) == 3
    clock.now = 41
    subject.list("vms")
    assert len(exchange.requests) == 5


def test_a_page_with_401_causes_one_retry_with_a_new_token() -> None:
    exchange = fixed(401, HTML)
    with pytest.raises(errors.Unauthenticated):
        engine(exchange).list("vms")
    assert [method for method, _ in exchange.requests] == ["POST", "GET", "POST", "GET"]


def test_tokens_and_passwords_are_in_no_error_and_no_representation() -> None:
    assert SETTINGS.password not in repr(SETTINGS)
    with pytest.raises(errors.CloudError) as caught:
        engine(fixed(500, b"Bearer t1 access_token=t1")).list("vms")
    assert "t1" not in str(caught.value)


# Documents.


def test_a_status_that_the_sdk_does_not_know_is_kept_as_text() -> None:
    body = b"<vms><vm id='1'><status>zvirt_parked</status></vm><vm id='2'/></vms>"
    items = engine(fixed(200, body)).list("vms")
    assert [item.status for item in items] == ["zvirt_parked", ""]
    subject = engine(fixed(200, b"<vm id='1'><status>zvirt_parked</status></vm>"))
    item = subject.get("vms/1")
    assert item is not None
    assert item.status == "zvirt_parked"


@pytest.mark.parametrize(
    "body",
    [
        HTML,
        b"",
        b"{}",
        b"<unknown/>",
        b"<vm><memory>many</memory></vm>",
        b"\x00",
        b"<a",
    ],
    ids=[
        "a web page",
        "nothing",
        "JSON",
        "another document",
        "a bad number",
        "a zero",
        "half",
    ],
)
def test_a_response_that_is_no_document_is_unavailable(body: bytes) -> None:
    with pytest.raises(errors.Unavailable) as caught:
        engine(fixed(200, body)).get("vms/1")
    assert caught.value.message.startswith("not an engine")


def test_text_with_markup_reaches_the_engine_unchanged() -> None:
    stage = Stage()
    subject = engine(Simulated(stage))
    script = "#cloud-config\nruncmd: ['echo \"<&>\"']\n"
    vm = types.Vm(
        name="a",
        cluster=types.Cluster(name="Default"),
        template=types.Template(name=seed.TEMPLATE),
        initialization=types.Initialization(custom_script=script),
    )
    item = subject.add("vms", vm, {"clone": "true"}, correlation_id="vm_create_1")
    assert item.status == "image_locked"
    record = stage.engine.records.get("vm", item.id)
    assert record is not None
    assert record.entity.initialization.custom_script == script


def test_every_request_names_language_and_version() -> None:
    exchange = fixed(200, b"<vms/>")
    engine(exchange).list("vms")
    assert exchange.headers[1]["Accept-Language"] == "en"
    assert exchange.headers[1]["Version"] == "4"


@pytest.mark.parametrize("text", ["x" * 51, "ключ"])
def test_a_correlation_id_is_checked_before_it_is_sent(text: str) -> None:
    with pytest.raises(ValueError, match="correlation ID"):
        engine(fixed(200, b"")).remove(VM, correlation_id=text)


# Searches.


@pytest.mark.parametrize(
    "name",
    ["data-1", "Data-1", "data_1", "data*1", 'da"ta', "d'a;ta", "data 1", "a or b"],
)
def test_a_name_is_found_whatever_it_contains(name: str) -> None:
    stage = Stage()
    for alias in ("data-1", "DATA-1", "dataX1", "data", "a", "b", name):
        stage.ok("POST", "disks", disk_body(alias.replace("&", "&amp;")))
    subject = engine(Simulated(stage))
    items = subject.list("disks", {"search": f"alias={api_paths.quoted(name)}"})
    named = [item for item in items if api_paths.is_named(item, name)]
    assert {item.entity.alias for item in named} == {name}


# Shared reads and circuits.


def test_two_hundred_callers_of_one_list_cause_one_request() -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(method: str, path: str, body: bytes | None) -> http.EngineResponse:
        began.set()
        may_end.wait(30)
        return http.EngineResponse(200, b"<vms/>")

    exchange = Scripted(slow)
    subject = engine(exchange)
    threads = [
        threading.Thread(
            target=subject.list_all, args=("vms",), kwargs={"not_before": 0.0}
        )
        for _ in range(200)
    ]
    for thread in threads:
        thread.start()
    began.wait(30)
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert [method for method, _ in exchange.requests] == ["POST", "GET"]


def test_single_sign_on_and_api_have_circuits_of_their_own() -> None:
    clock = Clock()
    exchange = fixed(502, HTML)
    subject = engine(exchange, clock)
    for _ in range(5):
        with pytest.raises(errors.Unavailable):
            subject.list("vms")
    count = len(exchange.requests)
    with pytest.raises(errors.Unavailable, match="not called: the api service"):
        subject.list("vms")
    assert len(exchange.requests) == count
    clock.now += 6
    with pytest.raises(errors.Unavailable, match="502"):
        subject.list("vms")


def test_an_internal_error_of_one_request_does_not_stop_the_others() -> None:
    exchange = fixed(500, FAULT.format("Internal Engine Error").encode())
    subject = engine(exchange)
    for _ in range(20):
        with pytest.raises(errors.Unavailable, match="Internal Engine Error"):
            subject.remove(VM)


def test_no_time_is_left_for_a_token() -> None:
    exchange = Scripted(_late, http.EngineResponse(503, HTML))
    with pytest.raises(errors.Unavailable):
        engine(exchange).list("vms", timeout_s=-1)


def _late(method: str, path: str, body: bytes | None) -> http.EngineResponse:
    return http.EngineResponse(503, HTML)


def test_disks_of_one_name_are_all_read() -> None:
    stage = Stage()
    for _ in range(client.PAGE + 5):
        stage.ok("POST", "disks", disk_body("same"))
    items = engine(Simulated(stage)).list_all("disks", "alias=same")
    assert len({item.id for item in items}) == client.PAGE + 5


def test_a_refusal_closes_the_circuit() -> None:
    exchange = fixed(409, FAULT.format("VM is locked").encode())
    subject = engine(exchange)
    for _ in range(20):
        with pytest.raises(errors.Busy):
            subject.remove(VM)
