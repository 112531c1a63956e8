"""How long all compilations of a start still take, by the packages that remain.

How many of a module's packages Go's cache has is known when its turn comes; until then
the number of an empty cache counts.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping

PACKAGES: Mapping[str, int] = {
    "etcd": 565,
    "kube": 2466,
    "containerd": 770,
    "pause": 1,
    "csi": 1041,
    "csi-provisioner": 940,
    "helm": 368,
}
"""Packages that no module before has, in the order of building, by `go list`."""
USUAL = 300
"""Of any other module."""
_KNOWN_SHARE = 0.05
"""Below it the pace is not that of the rest."""


class Outlook:
    """Counts packages. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._began: float | None = None

    def expect(self, modules: Collection[str]) -> None:
        """Count modules that will be compiled."""
        with self._lock:
            for module in modules:
                self._totals.setdefault(module, PACKAGES.get(module, USUAL))

    def advance(self, module: str, done: int, total: int) -> None:
        """Report how many packages of a module are compiled, of those not cached."""
        with self._lock:
            if self._began is None:
                self._began = self._clock()
            self._totals[module], self._done[module] = total, done

    def remaining_s(self) -> float | None:
        """Return the seconds until all is compiled; None while that is not known."""
        with self._lock:
            total, done = sum(self._totals.values()), sum(self._done.values())
            if self._began is None or done < total * _KNOWN_SHARE:
                return None
            return (self._clock() - self._began) / done * (total - done)
