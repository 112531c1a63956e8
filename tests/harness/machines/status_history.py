"""Every version of Machines, of their objects of DVP and of Nodes, by watches.

What is reported once stays: a Machine is never less far than before, and a Node is
deleted with its Machine alone.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence

from lib.kube import client, resources, store
from lib.kube.resources import Resource
from lib.lab.dvp.kinds import Item
from lib.reconcile import loops
from tests.harness.machines import cluster_objects

SYNCED_S = 60.0
PHASES = ("", "Pending", "Provisioning", "Provisioned", "Running", "Deleting")
"""Of a Machine, in their order. Source: Cluster API, MachinePhase."""
LASTING = (
    ("spec", "providerID"),
    ("status", "initialization", "infrastructureProvisioned"),
    ("status", "initialization", "provisioned"),
    ("status", "nodeRef"),
    ("status", "ready"),
)
"""Fields that keep their value once they have one."""
KINDS = (
    cluster_objects.MACHINES,
    cluster_objects.DVP_MACHINES,
    resources.NODES,
)
Versions = Sequence[Item | None]


class StatusHistory:
    """Keeps what the watches show while the block of `watched` runs."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[Item | None]] = {}
        self._lost: list[str] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def watched(self, api: client.Api) -> Iterator[None]:
        """Watch the objects of a child while the block runs."""
        stop = threading.Event()
        threads = loops.Loops(stop)
        stores = [store.Store(api, kind, Item) for kind in KINDS]
        for kind, kept in zip(KINDS, stores, strict=True):
            kept.subscribe(self._subscriber(kind))
            threads.start("watch", kept.run)
        try:
            assert all(kept.synced.wait(SYNCED_S) for kept in stores)
            yield
        finally:
            stop.set()
            threads.join(2)

    def _subscriber(self, kind: Resource) -> store.Subscriber[Item]:
        def note(key: str, old: Item | None, new: Item | None) -> None:
            del old
            name = key.rpartition("/")[2]
            with self._lock:
                self._versions.setdefault((kind.kind, name), []).append(new)
                if kind is resources.NODES and new is None and not self._ends(name):
                    self._lost.append(f"Node {name} was deleted, its Machine was not")

        return note

    def _ends(self, name: str) -> bool:
        """Report whether a Machine is being deleted, or does not exist."""
        last = (self._versions.get((cluster_objects.MACHINES.kind, name)) or [None])[-1]
        return last is None or last.is_ending

    def reversals(self) -> list[str]:
        """Return each step back that an object has made, in words."""
        with self._lock:
            return [
                *self._lost,
                *(
                    f"{kind} {name}: {text}"
                    for (kind, name), versions in self._versions.items()
                    for text in reversals(versions)
                ),
            ]

    def versions(self, kind: str, name: str) -> Sequence[Item]:
        """Return the versions of an object. kind: as in its documents."""
        with self._lock:
            return [v for v in self._versions.get((kind, name), ()) if v is not None]

    def count(self) -> int:
        """Return the number of versions."""
        with self._lock:
            return sum(map(len, self._versions.values()))


def reversals(versions: Versions) -> Iterator[str]:
    """Yield each step back of an object. versions: in their order; None: deleted."""
    existing = [version for version in versions if version is not None]
    for old, new in itertools.pairwise(existing):
        if old.uid != new.uid:
            yield "it was deleted and created again"
            continue
        for path in LASTING:
            before, after = _field(old, path), _field(new, path)
            if before and before != after:
                yield f"{'.'.join(path)} was {before!r}, is {after!r}"
        if _rank(old) > _rank(new):
            yield f"phase was {old.phase}, is {new.phase}"


def _rank(item: Item) -> int:
    return PHASES.index(item.phase) if item.phase in PHASES else -1


def _field(item: Item, path: Sequence[str]) -> object:
    value: object = {"spec": item.spec, "status": item.status}
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
