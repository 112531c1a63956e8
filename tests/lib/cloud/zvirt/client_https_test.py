"""The client over HTTPS: time-outs, certificates, several threads, an engine that ends.

The first nine rows are defects of the SDK's Connection, which the client replaces.
"""

import contextlib
import pathlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest
from ovirtsdk4 import types

from lib.cloud import errors
from lib.cloud.zvirt import client, config, engine_product, http
from lib.lab.kube import pki
from lib.lab.zvirt import server
from tests.lib.cloud.zvirt.engines import NOW
from tests.lib.lab.zvirt.served import Served, serving


@pytest.fixture()
def served(tmp_path: pathlib.Path) -> Iterator[Served]:
    with serving(tmp_path, "delay * 0.02") as engine:
        yield engine


def settings_of(engine: Served, url: str = "", ca: str = "") -> config.EngineConfig:
    own = (engine.folder / server.CA).read_text()
    user = "admin@internal"
    return config.EngineConfig(url or engine.url, user, engine.password, ca or own)


def engine_of(engine: Served) -> client.EngineClient:
    settings = settings_of(engine)
    return client.EngineClient(lambda: settings, http.connect(settings))


def test_a_thread_is_not_harmed_by_the_time_out_of_another(served: Served) -> None:
    subject = engine_of(served)
    subject.root()
    served.ask(do="rule", line="silence GET api/disks 1")
    served.ask(do="rule", line="pause GET api/tags 0.4 1")
    caught: list[BaseException] = []
    counts: list[int] = []

    def stalled() -> None:
        try:
            subject.list("disks", timeout_s=0.2)
        except errors.CloudError as error:
            caught.append(error)

    def slow() -> None:
        counts.append(len(subject.list("tags", timeout_s=60)))

    threads = [threading.Thread(target=stalled), threading.Thread(target=slow)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [type(error) for error in caught] == [errors.Unavailable]
    assert counts == [1]
    assert len(subject.list("tags")) == 1


def test_two_slow_requests_are_in_progress_together(served: Served) -> None:
    subject = engine_of(served)
    subject.root()
    served.ask(do="rule", line="pause GET api/* 1 2")
    together = threading.Barrier(2)
    served.service.sleep = lambda seconds: print(together.wait(60), seconds)
    threads = [
        threading.Thread(target=subject.list, args=(path,))
        for path in ("tags", "disks")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not together.broken
    assert together.n_waiting == 0


def test_a_stalled_single_sign_on_is_given_up(served: Served) -> None:
    served.ask(do="rule", line="silence POST sso/* -")
    with pytest.raises(errors.Unavailable) as caught:
        engine_of(served).root(timeout_s=0.2)
    assert caught.value.message.endswith("no answer in time")


def test_a_time_out_has_its_class_and_an_unknown_outcome(served: Served) -> None:
    subject = engine_of(served)
    subject.root()
    served.ask(do="rule", line="silence POST api/tags 1")
    with pytest.raises(errors.Unavailable) as caught:
        subject.add("tags", types.Tag(name="t"), timeout_s=0.2)
    assert not caught.value.was_rejected


@pytest.mark.parametrize("part", ["status", "header", "body"])
def test_a_server_that_drips_is_given_up(part: str, served: Served) -> None:
    beginning = {
        "status": b"",
        "header": b"HTTP/1.1 200 OK\r\nX-Y: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = (served.folder / f"server.{end}" for end in ("crt", "key"))
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with contextlib.suppress(OSError):
                tls = context.wrap_socket(connection, server_side=True)
                tls.recv(10_000)
                tls.sendall(beginning[part])
                for _ in range(1200):  # a minute, unless the client closes
                    tls.sendall(b"H")
                    time.sleep(0.05)

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/ovirt-engine/api"
        exchange = http.connect(settings_of(served, url=url))
        began = time.monotonic()
        with pytest.raises(errors.Unavailable):
            exchange("GET", url, {}, None, 0.3)
        assert time.monotonic() - began < 30
    thread.join()


def test_a_page_after_a_lost_token_is_no_parse_error(served: Served) -> None:
    subject = engine_of(served)
    subject.root()
    served.ask(do="lose-tokens")
    served.ask(do="rule", line="html GET api/vms 503 1")
    with pytest.raises(errors.Unavailable, match="status 503 with a web page"):
        subject.list("vms")
    assert subject.list("vms") == ()


def test_a_token_is_not_revoked_by_its_other_users(served: Served) -> None:
    engine_of(served).root()
    requests = served.ask(do="counts")
    assert isinstance(requests, dict)
    assert "POST services/sso-logout" not in requests


def test_an_effect_without_a_response_is_unknown(served: Served) -> None:
    subject = engine_of(served)
    subject.root()
    served.ask(do="rule", line="no-response POST api/tags 1")
    with pytest.raises(errors.Unavailable) as caught:
        subject.add("tags", types.Tag(name="t"))
    assert not caught.value.was_rejected
    names = [item.entity.name for item in subject.list("tags")]
    assert "t" in names


def test_a_refused_connection_is_certainly_not_carried_out(served: Served) -> None:
    settings = settings_of(served, url="https://127.0.0.1:1/ovirt-engine/api")
    subject = client.EngineClient(lambda: settings, http.connect(settings))
    with pytest.raises(errors.Unavailable) as caught:
        subject.add("tags", types.Tag(name="t"))
    assert caught.value.was_rejected
    assert "connection refused" in caught.value.message


def test_an_authority_of_another_engine(served: Served) -> None:
    other = pki.authority("other", NOW).certificate.decode()
    settings = settings_of(served, ca=other)
    with pytest.raises(errors.Unavailable) as caught:
        client.EngineClient(lambda: settings, http.connect(settings)).root()
    text = engine_product.explain(caught.value, settings)
    assert text.startswith("ZVIRT_CA_BUNDLE: ")
    assert "certificate not accepted" in text
    assert text.endswith("must be the engine's authority")


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_without_verification_any_certificate_is_accepted(served: Served) -> None:
    settings = config.EngineConfig(
        served.url, "admin@internal", served.password, "", insecure=True
    )
    root = client.EngineClient(lambda: settings, http.connect(settings)).root()
    assert root.product_info.name == "oVirt Engine"


def test_an_engine_that_was_down_is_used_again(tmp_path: pathlib.Path) -> None:
    with serving(tmp_path) as first:
        port = int(first.host.rpartition(":")[2])
        subject = engine_of(first)
        subject.add("tags", types.Tag(name="t"))
    with pytest.raises(errors.Unavailable):
        subject.list("tags")
    opened, certificates = server.open_service(tmp_path)
    with server.serving(opened, certificates, port):
        names = [item.entity.name for item in subject.list("tags")]
    assert names == ["root", "t"]
    opened.engine.records.close()
