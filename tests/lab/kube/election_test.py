"""Two candidates for one Lease of a real kube-apiserver, judged by their writes.

Every write creates an object, so etcd's revisions give one order to all writes and to
all changes of the Lease. Run as a program this file is one candidate.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import urllib3

from lib.kube import (
    client,
    election,
    errors,
    guarded,
    kube_config,
    lease,
    objects,
    resources,
    transport,
)
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes, progress, waiting

LEASE = "tests-election"
NAMESPACE = "default"
LEASE_S, RENEW_S, RETRY_S = 8.0, 6.0, 0.5
WRITERS = 4
RENEWALS = 10
HANDED_OVER_S = LEASE_S - 2 * RETRY_S
"""Whoever waited for the end of the Lease would take longer."""
PATIENCE_S = waiting.LIMIT_S
TIMEOUT_S = 10.0
SENT_S, STOPPED_S = 2.0, 3.0
LATE = "late"
BODY = json.dumps(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LATE}}
).encode()
FAULTS = (
    "stopped before the body",
    "renewed under load",
    "SIGTERM",
    "kill -9",
    "SIGSTOP, SIGCONT",
    "frozen API",
)


def candidate(kubeconfig: str, identity: str) -> None:
    """Stand for election; while leading, write as fast as it goes."""
    api = client.KubeClient(
        kube_config.load(kubeconfig, env=os.environ), user_agent=identity
    )
    own = election.Election(
        api,
        namespace=NAMESPACE,
        name=LEASE,
        identity=identity,
        lease_s=LEASE_S,
        renew_s=RENEW_S,
        retry_s=RETRY_S,
    )
    writer = guarded.Guarded(api, own.acting)
    stop, drained = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    writers = [
        threading.Thread(target=write, args=(writer, identity, n, stop), daemon=True)
        for n in range(WRITERS)
    ]

    def started() -> None:
        for writer in writers:
            writer.start()

    def end() -> None:
        stop.wait()
        for writer in writers:
            if writer.ident is not None:
                writer.join()
        drained.set()

    threading.Thread(target=end, daemon=True).start()
    print(identity, flush=True)
    own.run(started, lambda: os._exit(1), drained)


def write(api: client.Api, identity: str, writer: int, stop: threading.Event) -> None:
    count = 0
    while not stop.is_set():
        count += 1
        metadata = {
            "name": f"{identity}-{writer}-{count}",
            "labels": {"wrote": identity},
        }
        body = json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        )
        try:
            api.create(
                resources.CONFIG_MAPS, body.encode(), NAMESPACE, timeout_s=TIMEOUT_S
            )
        except errors.KubeError:
            stop.wait(0.01)
        stop.wait(0.02)


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Race:
    """The candidates' processes, and what became of the Lease: revision by revision."""

    def __init__(self, where: places.Places) -> None:
        self.where = where
        self.kubeconfig = str(control_plane.admin_kubeconfig(where))
        self.api = cluster.connect(control_plane.admin_kubeconfig(where))
        self.history: list[tuple[int, str, float]] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        """Note each change of the Lease: revision, holder, when it was heard of."""
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={LEASE}",
            "resourceVersion": "0",
        }
        opened = self.api.stream(
            resources.LEASES.path(NAMESPACE),
            query,
            connect_timeout_s=TIMEOUT_S,
            read_timeout_s=60,
        )
        # It breaks off when the control plane ends.
        with contextlib.suppress(errors.KubeError), opened as lines:
            for line in lines:
                event = msgspec.json.decode(line, type=Event)
                record = lease.parse(bytes(event.object))
                holder = record.record.holder_identity
                self.history.append((int(record.version), holder, time.monotonic()))

    def enter(self, identity: str) -> None:
        """Start a candidate, and wait until it stands for election."""
        command = [sys.executable, __file__, self.kubeconfig, identity]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
        self.running[identity] = process
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == identity

    def holder(self) -> str:
        return self.history[-1][1] if self.history else ""

    def send(self, identity: str, number: signal.Signals) -> None:
        self.running[identity].send_signal(number)

    def writes(self) -> list[tuple[int, str]]:
        """Return the revision and the author of every write."""
        body = self.api.list_page(
            resources.CONFIG_MAPS,
            NAMESPACE,
            query={"labelSelector": "wrote"},
            timeout_s=TIMEOUT_S,
        )
        items = objects.decode_list(body, objects.Bare).items
        return sorted(
            (int(item.metadata.resource_version), item.metadata.labels["wrote"])
            for item in items
        )

    def check(self) -> int:
        """See that each was written while its author held the Lease; count them."""
        written = self.writes()
        for revision, author in written:
            before = [row for row in self.history if row[0] < revision]
            assert before, f"{author} wrote before anybody held the Lease"
            assert before[-1][1] == author, f"{author} wrote at {revision}: {before}"
        return len(written)

    def wait_for(self, identity: str) -> float:
        """Wait until somebody holds the Lease and writes; give the seconds it took."""
        took_s = waiting.until(
            f"{identity} leads", lambda: self.holder() == identity, poll_s=0.02
        )
        waiting.until(
            f"{identity} writes",
            lambda: any(author == identity for _, author in self.writes()),
            poll_s=0.02,
        )
        return took_s

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.communicate()


class StoppedBeforeBody(urllib3.connection.HTTPSConnection):
    """Between the last check of the time and the body, the process is stopped."""

    stopped_s = STOPPED_S

    def send(self, data: Any) -> None:
        """Send the head at once, the body later; stay connected for a while."""
        if data == BODY:
            time.sleep(self.stopped_s)
        super().send(data)
        if data == BODY:
            time.sleep(self.stopped_s)


class InTime(StoppedBeforeBody):
    """The same, for less time than the request has."""

    stopped_s = 0.0


def sent(race: Race, connection: type[StoppedBeforeBody]) -> int:
    """Create a ConfigMap through such a connection; return the status, 0 for none."""

    class Pool(urllib3.HTTPSConnectionPool):
        ConnectionCls = connection

    configuration = kube_config.load(race.kubeconfig, env=os.environ)
    pool = configuration.pool(1)
    pool.pool_classes_by_scheme = {"https": Pool}
    path = resources.CONFIG_MAPS.path(NAMESPACE)
    headers = {"Content-Type": "application/json"}
    call = transport.HttpCall("POST", path, configuration.host + path, headers, BODY)
    try:
        with transport.exchange(pool, call, time.monotonic() + SENT_S) as response:
            return response.status
    except errors.Unavailable:
        return 0


def late_body(race: Race) -> str:
    """What is sent when its time has passed is not carried out by the API server."""

    def exists() -> bool:
        try:
            race.api.read(resources.CONFIG_MAPS, LATE, NAMESPACE, timeout_s=TIMEOUT_S)
        except errors.NotFound:
            return False
        return True

    status = sent(race, StoppedBeforeBody)
    assert not 200 <= status < 300, status
    assert not exists(), "it was carried out"
    assert (sent(race, InTime), exists()) == (201, True)
    return f"status {status}, no object; without a stop 201"


def under_load(race: Race) -> str:
    """With four threads that write, the leader stays the leader."""
    race.enter("a")
    race.wait_for("a")
    race.enter("b")

    def times() -> list[float]:
        return [at for _, holder, at in race.history if holder == "a"]

    waiting.until("renewals", lambda: len(times()) >= RENEWALS, poll_s=0.02)
    longest_s = max(b - a for a, b in itertools.pairwise(times()))
    assert {holder for _, holder, _ in race.history} == {"a"}
    assert race.running["a"].poll() is None, "it has lost the Lease"
    return f"longest gap {longest_s:.2f} s"


def terminated(race: Race) -> str:
    """A leader told to end hands over at once."""
    race.send("a", signal.SIGTERM)
    took_s = race.wait_for("b")
    assert took_s < HANDED_OVER_S
    assert race.running["a"].wait(PATIENCE_S) == 0
    return f"b after {took_s:.2f} s"


def killed(race: Race) -> str:
    """A leader that died is followed when its time is over."""
    race.enter("c")
    race.send("b", signal.SIGKILL)
    took_s = race.wait_for("c")
    assert took_s > LEASE_S - RENEW_S
    return f"c after {took_s:.2f} s"


def stopped(race: Race) -> str:
    """A leader that slept through its time writes nothing more and ends."""
    race.enter("d")
    race.send("c", signal.SIGSTOP)
    took_s = race.wait_for("d")
    race.send("c", signal.SIGCONT)
    assert race.running["c"].wait(PATIENCE_S) == 1
    return f"d after {took_s:.2f} s"


def frozen(race: Race) -> str:
    """With a frozen API server the leader ends, and the follower waits for it."""
    race.enter("e")
    process = processes.find(race.where, "kube-apiserver")
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        assert race.running["d"].wait(PATIENCE_S) == 1
        time.sleep(LEASE_S - RENEW_S)
    finally:
        process.send_signal(signal.SIGCONT)
    took_s = race.wait_for("e")
    return f"e {took_s:.2f} s after the thaw"


@pytest.fixture()
def race(elsewhere: places.Places) -> Iterator[Race]:
    control_plane.up(elsewhere, progress.Silent())
    new_race = Race(elsewhere)
    try:
        yield new_race
    finally:
        new_race.end()
        processes.stop(elsewhere, control_plane.PROGRAMS, patience_s=1)


def test_two_candidates_never_act_together(race: Race) -> None:
    """Whatever ends a term, each write lies within the Lease of its author."""
    steps = (late_body, under_load, terminated, killed, stopped, frozen)
    shown: dict[str, str] = {}
    try:
        for fault, step in zip(FAULTS, steps, strict=True):
            result = step(race)
            shown[fault] = f"{result}; {race.check()} writes, none out of turn"
    finally:
        for fault in FAULTS:
            print(f"{fault:20} {shown.get(fault, 'MISSING')}")
    assert shown.keys() == set(FAULTS)


if __name__ == "__main__":
    candidate(*sys.argv[1:])
