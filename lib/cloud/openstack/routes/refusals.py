"""What Neutron has refused lately; kept in memory, and forgotten after ten minutes."""

import dataclasses
import threading
from collections.abc import Callable

from lib.cloud import errors
from lib.cloud.openstack.routes import actions
from lib.cloud.openstack.routes.native import KnownLimits
from lib.cloud.routes import Entry

KEPT_S = 600.0
"""After it a limit may have been raised, or a policy changed: it is tried again."""


@dataclasses.dataclass(slots=True)
class _Router:
    """What one router refused. Until when, by monotonic seconds."""

    routes: int | None = None
    routes_until: float = 0.0
    singly_until: float = 0.0


class Refusals:
    """Rejected requests by router. Safe for many threads. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._routers: dict[str, _Router] = {}
        self._entries: dict[Entry, tuple[str, float]] = {}
        self._is_atomic = True

    def limits(self, router_id: str) -> KnownLimits:
        """Return what is not to be asked for now."""
        now = self._clock()
        with self._lock:
            router = self._routers.get(router_id, _Router())
            self._entries = {e: m for e, m in self._entries.items() if m[1] > now}
            return KnownLimits(
                routes=router.routes if router.routes_until > now else None,
                refused={entry: text for entry, (text, _) in self._entries.items()},
                is_singly=router.singly_until > now,
                is_atomic=self._is_atomic,
            )

    def learn(self, action: actions.Action, error: errors.CloudError) -> bool:
        """Note a refusal; return whether the next plan avoids it."""
        with self._lock:
            match action:
                case actions.AddRoutes():
                    return self._adding(action, error)
                case actions.WriteRoutes():
                    return self._writing(action, error)
                case actions.WritePairs():
                    return self._refuse(action.added, error)
        return False

    def _adding(self, action: actions.AddRoutes, error: errors.CloudError) -> bool:
        if isinstance(error, errors.NotFound | errors.Unsupported):
            # The router was just read: it is the extension that is missing.
            self._is_atomic = False
            return True
        if isinstance(error, errors.LimitReached):
            return self._limit(action.router_id, action.total)
        if len(action.routes) == 1:
            return self._refuse(action.routes, error)
        return self._one_by_one(action.router_id, error)

    def _writing(self, action: actions.WriteRoutes, error: errors.CloudError) -> bool:
        if isinstance(error, errors.LimitReached):
            return self._limit(action.router_id, len(action.routes))
        return self._refuse(action.added, error)

    def _limit(self, router_id: str, total: int) -> bool:
        router = self._routers.setdefault(router_id, _Router())
        router.routes, router.routes_until = total, self._clock() + KEPT_S
        return True

    def _one_by_one(self, router_id: str, error: errors.CloudError) -> bool:
        if not isinstance(error, errors.InvalidRequest):
            return False
        router = self._routers.setdefault(router_id, _Router())
        router.singly_until = self._clock() + KEPT_S
        return True

    def _refuse(self, entries: tuple[Entry, ...], error: errors.CloudError) -> bool:
        """Note entries that are refused as they are, not those that come too early."""
        lasting = errors.InvalidRequest, errors.LimitReached, errors.Forbidden
        if not entries or not isinstance(error, lasting):
            return False
        until = self._clock() + KEPT_S
        self._entries |= {entry: (error.message, until) for entry in entries}
        return True
