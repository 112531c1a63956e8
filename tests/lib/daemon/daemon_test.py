"""The skeleton of every daemon, run by a manager that is no CCM."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from typing import Any

import prometheus_client
import pytest

from lib.daemon import daemon
from lib.kube import election, resources
from lib.kube.fake import api as fake_api
from lib.lab.run import waiting
from lib.process import exchange
from lib.reconcile import loops


class Log:
    """What happened, in order."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def server(self, name: str) -> "Server":
        return Server(name, self)

    def part(self, name: str, then: Callable[[], None] = lambda: None) -> "Part":
        return Part(name, self, then)


class Server:
    def __init__(self, name: str, log: Log) -> None:
        self.name, self.log = name, log

    def start(self) -> None:
        self.log.entries.append(f"serve {self.name}")

    def stop(self) -> None:
        self.log.entries.append(f"stop {self.name}")


class Part:
    """A controller of machines: watches, and acts until the stop."""

    def __init__(self, name: str, log: Log, then: Callable[[], None]) -> None:
        self.name, self.log, self.then = name, log, then
        self.acts = threading.Event()

    def watch(self, loop: loops.Loops) -> None:
        self.log.entries.append(f"watch {self.name}")

    def start(self, loop: loops.Loops) -> None:
        self.log.entries.append(f"start {self.name}")
        loop.start(self.name, self.run)

    def run(self, stop: threading.Event) -> None:
        self.acts.set()
        self.then()
        stop.wait()
        self.log.entries.append(f"end {self.name}")


class Life:
    """A daemon in a thread of its own."""

    def __init__(
        self,
        *parts: daemon.DaemonPart,
        servers: tuple[Server, ...] = (),
        lease_s: float = 20.0,
    ) -> None:
        self.stop = threading.Event()
        registry = prometheus_client.CollectorRegistry()
        grace = daemon.Grace(20.0, lease_s, drain_s=7.0)
        self.daemon = daemon.Daemon(registry, self.stop, grace)
        for server in servers:
            self.daemon.serve(server)
        self.codes: list[int] = []
        self.parts = parts
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.codes.append(self.daemon.run(self.parts))

    def end(self) -> int:
        self.stop.set()
        self.thread.join(60)
        (code,) = self.codes
        return code


def lease(api: fake_api.FakeApi, identity: str) -> election.Election:
    return election.Election(
        api, namespace="machines", name="manager", identity=identity
    )


def holders(api: fake_api.FakeApi) -> list[str]:
    """Return the holder of each Lease; empty: not held."""
    leases: list[dict[str, Any]] = [dict(lease) for lease in api.all(resources.LEASES)]
    return [lease["spec"].get("holderIdentity") or "" for lease in leases]


def test_servers_come_first_and_go_last_and_parts_act_in_between() -> None:
    log = Log()
    machines, clusters = log.part("machines"), log.part("clusters")
    life = Life(machines, clusters, servers=(log.server("a"), log.server("b")))
    life.thread.start()
    for part in (machines, clusters):
        assert part.acts.wait(60)
    assert life.end() == 0
    assert log.entries[:6] == [
        "serve a",
        "serve b",
        "watch machines",
        "watch clusters",
        "start machines",
        "start clusters",
    ]
    assert sorted(log.entries[6:8]) == ["end clusters", "end machines"]
    assert log.entries[8:] == ["stop b", "stop a"]


def test_only_one_of_two_managers_acts_and_the_other_succeeds_it() -> None:
    api, log = fake_api.FakeApi(), Log()
    first_part, second_part = log.part("first"), log.part("second")
    first, second = Life(first_part), Life(second_part)
    first.daemon.elect(lease(api, "first"))
    second.daemon.elect(lease(api, "second"))
    first.thread.start()
    assert first_part.acts.wait(60)
    second.thread.start()
    waiting.until("the second watches", lambda: "watch second" in log.entries)
    assert not second_part.acts.is_set()
    assert first.end() == 0
    assert second_part.acts.wait(60)
    assert second.end() == 0
    assert log.entries.index("end first") < log.entries.index("start second")
    assert holders(api) == [""]


def test_a_part_that_fails_ends_the_daemon_with_an_error() -> None:
    def fail() -> None:
        raise RuntimeError("no machines")

    log = Log()
    broken, well = log.part("broken", fail), log.part("well")
    life = Life(broken, well, servers=(log.server("a"),))
    life.thread.start()
    life.thread.join(60)
    assert life.codes == [1]
    assert log.entries[-2:] == ["end well", "stop a"]


def test_only_a_loop_that_acts_waits_for_the_lease() -> None:
    api = fake_api.FakeApi()
    other = Life()
    other.daemon.elect(lease(api, "other"))
    other.thread.start()
    waiting.until("the other leads", lambda: holders(api) == ["other"])
    watches, acts = threading.Event(), threading.Event()

    def loop(started: threading.Event) -> Callable[[threading.Event], None]:
        def run(stop: threading.Event) -> None:
            started.set()
            stop.wait()

        return run

    life = Life(
        daemon.Acting("acts", loop(acts)), daemon.Background("watches", loop(watches))
    )
    life.daemon.elect(lease(api, "ours"))
    life.thread.start()
    assert watches.wait(60)
    assert not acts.is_set()
    assert life.end() == 0
    assert not acts.is_set()
    assert other.end() == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_plain_http_serves_probes_and_metrics() -> None:
    """On an address of its own, as Cluster API managers do; port 0 serves nothing."""
    life, port = Life(), free_port()
    routes = exchange.HttpRoutes(life.daemon.handlers(), exchange.everybody)
    life.daemon.serve_http(("127.0.0.1", port), routes)
    life.daemon.serve_http(("127.0.0.1", 0), routes)
    life.daemon.probes.add_ready("caches", lambda: "not listed yet")
    life.thread.start()

    def ask(path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status

    waiting.until("it serves", lambda: ask("/livez") == 200)
    assert ask("/metrics") == 200
    assert ask("/readyz") == 500
    assert life.end() == 0


@pytest.mark.parametrize("left", [(), ("helm of keystone",)])
def test_what_runs_outside_the_loops_is_drained_first(left: tuple[str, ...]) -> None:
    """The Lease is released only when all of that has ended."""
    api, log = fake_api.FakeApi(), Log()
    part = log.part("machines")
    # What is not released is waited for.
    lease_s = 0.2 if left else 20.0
    life = Life(part, servers=(log.server("a"),), lease_s=lease_s)
    life.daemon.elect(lease(api, "first"))

    def drain(seconds: float) -> tuple[str, ...]:
        log.entries.append(f"drain within {seconds:g} s, by {holders(api)[0]}")
        return left

    life.daemon.drain(drain)
    life.thread.start()
    assert part.acts.wait(60)
    life.end()
    drained = log.entries.index("drain within 7 s, by first")
    assert drained < log.entries.index("stop a")
    assert holders(api) == ["first" if left else ""]
