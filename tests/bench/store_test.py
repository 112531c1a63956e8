"""What one watched object costs: our store against the `kubernetes` client's models.

Both read the same lines of a watch, as kube-apiserver writes them for a Node of a busy
cluster. Ours keeps what a flow needs; the client's models hold all. Each is measured in
a process of its own.
"""

import concurrent.futures
import contextlib
import dataclasses
import gc
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import psutil
import rich.console
import rich.table

from lib.kube import client, resources, store
from lib.kube import nodes as kube_nodes

NODES = 2000
CHANGES = 2
"""So often each Node changes after it was first seen; memory must not grow by it."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """Events per second; and memory once all are there, and after all the changes."""

    events_per_s: float
    first_mib: float
    last_mib: float


def node(number: int, version: int) -> bytes:
    """Return a line of a watch: a Node with images, conditions and managed fields."""
    images = [
        {
            "names": [f"registry.example/team/image-{n}@sha256:{'0' * 64}"],
            "sizeBytes": n,
        }
        for n in range(40)
    ]
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": "KubeletHas",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in kinds
    ]
    nothing: dict[str, str] = {}
    fields = {f"f:{n}": {"f:status": nothing, "f:type": nothing} for n in range(30)}
    body = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": f"node-{number:04}",
            "uid": f"uid-{number}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"label-{n}": "value" for n in range(15)},
            "managedFields": [
                {"manager": "kubelet", "operation": "Update", "fieldsV1": fields}
            ],
        },
        "spec": {"providerID": f"openstack:///id-{number}", "podCIDR": "10.0.0.0/24"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": conditions,
            "images": images,
            "nodeInfo": {
                "machineID": "m",
                "systemUUID": "u",
                "bootID": "b",
                "kernelVersion": "6.1",
                "osImage": "Debian",
                "containerRuntimeVersion": "containerd://2",
                "kubeletVersion": "v1.36.0",
                "kubeProxyVersion": "v1.36.0",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }
    kind = "ADDED" if version <= NODES else "MODIFIED"
    return json.dumps({"type": kind, "object": body}).encode()


def lines() -> Iterator[bytes]:
    """Yield every Node once, then every change; one line at a time, none is kept."""
    for version in range(1, (1 + CHANGES) * NODES + 1):
        yield node((version - 1) % NODES, version)


class Lines:
    """A watch that ends with its last line."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._found = lines

    def __iter__(self) -> Iterator[bytes]:
        return self._found

    def __next__(self) -> bytes:
        return next(self._found)

    def abort(self) -> None:
        """Note that reading was stopped."""


class Recorded(client.Api):
    """An API server with an empty list, and one watch that has been recorded."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._found = lines

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        del method, path, query, body, content_type, timeout_s
        return b'{"metadata":{"resourceVersion":"0"},"items":[]}'

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[client.WatchLines]:
        del path, query, connect_timeout_s, read_timeout_s
        yield Lines(self._found)


def rss_mib() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 2**20


class Watching:
    """Times the taking in of lines, without their making, and weighs what stays."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._handed_at: float | None = None
        self._begin_mib = rss_mib()
        self.first_mib = 0.0

    def lines(self) -> Iterator[bytes]:
        for number, line in enumerate(lines()):
            if number == NODES:
                self.first_mib = rss_mib() - self._begin_mib
            handed = time.perf_counter()
            yield line
            self._spent_s += time.perf_counter() - handed

    def cost(self) -> Cost:
        events = (1 + CHANGES) * NODES
        last_mib = rss_mib() - self._begin_mib
        return Cost(events / self._spent_s, self.first_mib, last_mib)


def ours() -> Cost:
    """Have our store take all in."""
    watching = Watching()
    nodes = store.Store(Recorded(watching.lines()), resources.NODES, kube_nodes.Node)
    stop = threading.Event()

    def note(key: str, old: object, new: kube_nodes.Node | None) -> None:
        del key, old
        if new and new.metadata.resource_version == str((1 + CHANGES) * NODES):
            stop.set()

    nodes.subscribe(note)
    nodes.run(stop)
    assert len(nodes.items()) == NODES
    return watching.cost()


def typed() -> Cost:
    """Have the `kubernetes` client's models take all in, as its Watch does."""
    # The door is open to benches for this comparison; nothing else here uses it.
    import kubernetes

    reader = kubernetes.watch.Watch()  # type: ignore[no-untyped-call] # ships no types
    kubernetes.client.V1Node()  # imports all the models
    watching = Watching()
    nodes = {}
    for line in watching.lines():
        event = reader.unmarshal_event(  # type: ignore[no-untyped-call] # the same
            line.decode(), "V1Node"
        )
        nodes[event["object"].metadata.name] = event["object"]
    assert len(nodes) == NODES
    return watching.cost()


def apart(measure: Callable[[], Cost]) -> Cost:
    """Measure in a process that has done nothing else."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(measure).result(timeout=300)


def test_our_store_against_typed_models() -> None:
    """Prints both; ours is several times quicker and smaller, and stays as small."""
    costs: Sequence[tuple[str, Cost]] = [
        ("kubernetes client, typed models", apart(typed)),
        ("our store", apart(ours)),
    ]
    table = rich.table.Table(
        f"{NODES:,} Nodes of {len(node(1, 1)) / 1000:.0f} KB",
        "events per second",
        "KB a Node",
        f"MiB after {CHANGES} changes of each",
    )
    for title, cost in costs:
        each_kb = cost.first_mib * 2**20 / 1000 / NODES
        mib = f"{cost.first_mib:.0f} -> {cost.last_mib:.0f}"
        table.add_row(title, f"{cost.events_per_s:,.0f}", f"{each_kb:.1f}", mib)
    rich.console.Console(width=110).print(table)
    stock, mine = (cost for _, cost in costs)
    assert mine.events_per_s > 3 * stock.events_per_s
    assert mine.first_mib * 3 < stock.first_mib
    assert mine.last_mib < mine.first_mib * 1.5 + 5
