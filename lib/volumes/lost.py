"""Requests of unknown outcome, by what they are about. Kept in memory only."""

import threading

from lib.cloud.volumes import VolumeId
from lib.volumes import callers, outcomes

Key = tuple[str, ...]
"""What a request is about: see `creation` and `attach`."""


def creation(name: str) -> Key:
    """Return the key of requests to create a volume."""
    return ("create", name)


def attach(volume_id: VolumeId, instance_id: str) -> Key:
    """Return the key of requests to attach a volume to an instance."""
    return ("attach", volume_id, instance_id)


class Lost:
    """When the outcome of a request became unknown: it may still be carried out."""

    def __init__(self, effects: callers.CallEffects) -> None:
        self._effects = effects
        self._lock = threading.Lock()
        self._at: dict[Key, float] = {}

    def note(self, key: Key) -> None:
        """Note that the outcome of a request is unknown."""
        now = self._effects.clock()
        with self._lock:
            self._at = {
                k: at for k, at in self._at.items() if at > now - outcomes.LOST_S
            }
            self._at[key] = now

    def forget(self, key: Key) -> None:
        """Forget a request."""
        with self._lock:
            self._at.pop(key, None)

    def age_s(self, prefix: Key) -> float | None:
        """Return the age of the youngest request that a key begins with."""
        with self._lock:
            times = [at for k, at in self._at.items() if k[: len(prefix)] == prefix]
        return self._effects.clock() - max(times) if times else None
