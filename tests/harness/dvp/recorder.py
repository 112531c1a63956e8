"""What became of the objects of a parent, in order, by watches of a test."""

import threading
from collections.abc import Mapping, Sequence

from lib.kube import client, resources, store
from lib.kube.resources import Resource
from lib.lab.dvp import kinds
from lib.lab.dvp.kinds import Item
from lib.reconcile import loops

KINDS = (
    *kinds.SIMULATED,
    kinds.ADDRESS_LEASES,
    resources.PODS,
    resources.SERVICES,
    resources.ENDPOINT_SLICES,
    resources.CLAIMS,
)


class Recorder:
    """Keeps every version of every object that a watch shows.

    Watches may skip versions that follow each other quickly; delays of the simulator
    keep apart those that a test asks about.
    """

    def __init__(self, api: client.Api, namespace: str) -> None:
        self._versions: dict[tuple[str, str], list[Item | None]] = {}
        self._stop = threading.Event()
        self._threads = loops.Loops(self._stop)
        self._stores: list[store.Store[Item]] = []
        for kind in KINDS:
            within = namespace if kind.namespaced else None
            watched = store.Store(api, kind, Item, namespace=within)
            watched.subscribe(self._subscriber(kind))
            self._stores.append(watched)
            self._threads.start("watch", watched.run)

    def _subscriber(self, kind: Resource) -> store.Subscriber[Item]:
        def note(key: str, old: Item | None, new: Item | None) -> None:
            del old
            name = key.rpartition("/")[2]
            self._versions.setdefault((kind.kind, name), []).append(new)

        return note

    def wait_synced(self, timeout_s: float) -> None:
        """Return once every watch has its first list."""
        for watched in self._stores:
            assert watched.synced.wait(timeout_s)

    def versions(self, kind: Resource, name: str) -> Sequence[Item | None]:
        """Return all versions of an object; None: it was deleted."""
        return tuple(self._versions.get((kind.kind, name), ()))

    def names(self, kind: Resource, prefix: str = "") -> Sequence[str]:
        """Return the names of all objects of a kind that there were."""
        own = [name for of, name in tuple(self._versions) if of == kind.kind]
        return [name for name in own if name.startswith(prefix)]

    def phases(self, kind: Resource, name: str) -> Sequence[str]:
        """Return the phases of an object, each change once; "gone" in the end."""
        phases: list[str] = []
        for version in self.versions(kind, name):
            phase = "gone" if version is None else version.phase
            if not phases or phases[-1] != phase:
                phases.append(phase)
        return phases

    def conditions(
        self, kind: Resource, name: str
    ) -> Mapping[tuple[str, str], Sequence[str]]:
        """Return all reasons that an object had, by type and status of a condition."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for version in self.versions(kind, name):
            for row in version.status.get("conditions", ()) if version else ():
                key = (row["type"], row["status"])
                reasons.setdefault(key, []).append(row.get("reason", ""))
        return reasons

    def close(self) -> None:
        """End the watches."""
        self._stop.set()
        self._threads.join(2)
