"""When a daemon acts: as long as it holds its Lease, or always without an election."""

import threading
from collections.abc import Callable

from lib.kube import election
from lib.process import shutdown
from lib.reconcile import loops


class Leadership:
    """Runs the election in a loop that outlives all others, and releases the Lease."""

    def __init__(self, lease: election.Election | None, stop: threading.Event) -> None:
        """lease: None: no election. stop: set when that ends."""
        self._lease = lease
        self._stop = stop
        self._drained = threading.Event()
        self._loops = loops.Loops(self._drained)

    @property
    def has_failed(self) -> bool:
        """True when the election ended by an error."""
        return self._loops.failed.is_set()

    def begin(self, started: Callable[[], None]) -> None:
        """Call `started` once the Lease is held, or immediately without an election."""
        lease = self._lease
        if lease is None:
            started()
            return

        def hold(drained: threading.Event) -> None:
            try:
                lease.run(started, self._lost, drained)
            finally:
                self._stop.set()

        self._loops.start("lease", hold)

    def end(self, timeout_s: float, *, may_release: bool = True) -> tuple[str, ...]:
        """Release the Lease; return the loops that have not ended in time.

        may_release: False while something may still be written.
        """
        if may_release:
            self._drained.set()
        return self._loops.join(timeout_s)

    def _lost(self) -> None:
        """Exit immediately: whatever is still in progress must not continue."""
        shutdown.end_now(shutdown.Exit.FAILURE)
