"""Which engine and data center this is: where absence counts."""

import threading
import time
from collections.abc import Callable

from lib.cloud import errors
from lib.cloud.support import absence_scope
from lib.cloud.zvirt import client
from lib.cloud.zvirt.engine_product import EngineProduct

KEEP_S = 600.0
"""For which the engine is not asked again who it is, unless an absence is confirmed."""
WORDS = absence_scope.ScopeWords("engine", "data center")


class EngineHome:
    """The engine that the credentials lead to. Safe for several threads."""

    def __init__(
        self,
        access: client.EngineClient,
        data_center: str = "",
        memory: absence_scope.HomeMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """data_center: its name or ID; empty: any. memory: of the home before."""
        self._access = access
        self._clock = clock
        self._lock = threading.Lock()
        self._product: EngineProduct | None = None
        self._read_at = 0.0
        self.guard = absence_scope.Guard(self.id, data_center, memory, WORDS)

    def product(self, *, fresh: bool = False) -> EngineProduct:
        """Return what the engine shows of itself. fresh: it is asked now.

        Raises:
            CloudError: it is not known, or not an engine that can be used.
        """
        with self._lock:
            is_old = self._clock() - self._read_at >= KEEP_S
            if self._product is None or fresh or is_old:
                self._product, self._read_at = self._access.product(), self._clock()
            return self._product

    def id(self) -> str:
        """Return the ID of the engine.

        Raises:
            CloudError: it is not known.
        """
        return self.product().id

    def check_absence(
        self, operation: str, has_witness: Callable[[], bool] | None = None
    ) -> None:
        """Check that a "not found" counts here; the engine is asked who it is.

        has_witness: see `Guard.check`.

        Raises:
            CloudError: it does not, or that is not known.
        """
        product = self.product(fresh=True)
        if not product.id:
            raise errors.Unavailable("the engine has no ID", operation=operation)
        self.guard.check(operation, has_witness)
