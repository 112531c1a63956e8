"""The whole discoverer over fakes: what it serves, when it is well, how it ends."""

import contextlib
import dataclasses
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import prometheus_client
import pytest

from lib.cloud import errors, protocol
from lib.cloud.catalog import CatalogPart
from lib.discoverer import discoverer, options
from lib.discovery.provider import Provider
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.process import flags
from lib.reconcile import queue


@pytest.fixture()
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        observed: int = listener.getsockname()[1]
        return observed


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Running:
    """A discoverer in a thread of this process. period_s: the flag's, if None."""

    def __init__(self, ground: Any, port: int, period_s: float | None = None) -> None:
        self.port = port
        self.stop = threading.Event()
        self.codes: list[int] = []
        table = options.table(("fake",), "a/b")
        words = [f"--listen-address=127.0.0.1:{port}", "--discovery-period=1s"]
        expected = options.read(
            flags.parse(table, words), {}, Provider("csi", access_deployment="a/b")
        )
        if period_s is not None:
            expected = dataclasses.replace(expected, period_s=period_s)
        cloud = protocol.Cloud("fake", catalog=ground.cloud)
        registry = prometheus_client.CollectorRegistry()
        self.discoverer = discoverer.Discoverer(
            cloud, ground.api, expected, registry, self.stop
        )
        self.worked = threading.Event()
        self.discoverer.ready_with(self.worked)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.codes.append(self.discoverer.run())

    def ask(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def serves(self) -> bool:
        with contextlib.suppress(OSError):
            return self.ask("/livez")[0] == 200
        return False


@contextlib.contextmanager
def started(discoverer: Running) -> Iterator[Running]:
    discoverer.thread.start()
    until(discoverer.serves)
    yield discoverer
    discoverer.stop.set()
    discoverer.thread.join(15)


@pytest.fixture(autouse=True)
def _ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time between two checks of a stop."""
    monkeypatch.setattr(queue, "STOP_POLL_S", 0.02)


@pytest.fixture()
def running(ground: Any, port: int) -> Iterator[Running]:
    with started(Running(ground, port)) as discoverer:
        yield discoverer


@pytest.fixture()
def quick(ground: Any, port: int) -> Iterator[Running]:
    """A discoverer whose period is shorter than the flag allows."""
    with started(Running(ground, port, period_s=0.1)) as discoverer:
        yield discoverer


def test_it_serves_what_the_reference_serves(ground: Any, running: Running) -> None:
    until(lambda: ground.secret() is not None)
    assert running.ask("/healthz") == (200, "ok")
    assert "every 1s" in running.ask("/")[1]
    assert "cloud_data_discovery_cloud_request_error" in running.ask("/metrics")[1]
    assert running.ask("/nothing")[0] == 404


def test_it_is_ready_once_the_cloud_has_answered(running: Running) -> None:
    assert running.ask("/readyz")[0] == 500
    running.worked.set()
    assert running.ask("/readyz") == (200, "ok")


def test_a_cloud_that_is_down_is_no_reason_to_restart(
    ground: Any, quick: Running
) -> None:
    ground.cloud.faults = {
        part: errors.Unavailable("down", operation="list") for part in CatalogPart
    }
    observed = len(ground.cloud.reads)
    until(lambda: len(ground.cloud.reads) >= observed + 2)
    assert quick.ask("/healthz") == (200, "ok")
    assert quick.ask("/livez") == (200, "ok")


def test_it_is_not_well_while_the_api_server_refuses_and_well_again_by_itself(
    ground: Any, quick: Running
) -> None:
    quick.discoverer.unwell_after(0.2)
    until(lambda: ground.secret() is not None)
    refused = kube_errors.Forbidden("no", operation="get")
    ground.api.faults += [calls.Fault(refused, "get", "secrets")] * 1000
    until(lambda: quick.ask("/healthz") == (503, "false"))
    assert quick.ask("/livez") == (200, "ok")
    ground.api.faults.clear()
    until(lambda: quick.ask("/healthz") == (200, "ok"))


def test_told_to_stop_it_ends_well(running: Running) -> None:
    running.stop.set()
    running.thread.join(10)
    assert running.codes == [0]
    assert not running.serves()


def test_a_port_that_is_taken_is_told_before_anything_begins(
    ground: Any, port: int
) -> None:
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(Exception, match="a free port"),
    ):
        Running(ground, port).discoverer.run()
    assert ground.api.calls == []
