"""Cache of all volumes: for ListVolumes, which must not cost a list each time.

Every reading updates the cache, whatever its reason, so that our own writes are visible
immediately; changes by other clients are visible after the next list.
"""

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from lib.cloud.volumes import (
    ById,
    Found,
    Ref,
    Volume,
    VolumeId,
    Volumes,
    VolumesReading,
)
from lib.volumes import callers

LIST_S = 60.0
"""Shortest time between two lists, however often the volumes are requested."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Fact:
    """Volume as observed by a read that began at `at`; None: absent."""

    volume: Volume | None
    at: float


class Cache:
    """All volumes of one project. Safe for many threads."""

    def __init__(
        self, cloud: Callable[[], Volumes], effects: callers.CallEffects
    ) -> None:
        self._cloud = cloud
        self._effects = effects
        self._changed = threading.Condition()
        self._facts: dict[VolumeId, _Fact] = {}
        self._listed_at: float | None = None
        self._is_listing = False

    def learn(self, refs: Collection[Ref], reading: VolumesReading, at: float) -> None:
        """Add a reading to the cache; at: when it began."""
        with self._changed:
            if reading.listing is not None:
                self._replace(reading.listing, at)
            for ref in refs:
                self._learn(ref, reading.by_ref.get(ref, ()), at)

    def _learn(self, ref: Ref, observed: Found, at: float) -> None:
        if not isinstance(observed, tuple):
            return
        if not observed and isinstance(ref, ById):
            self._put(ref.id, _Fact(None, at))
        for volume in observed:
            if isinstance(ref, ById) or not self._is_attached(volume.id):
                self._put(volume.id, _Fact(volume, at))

    def _is_attached(self, volume_id: VolumeId) -> bool:
        """Report whether attachments are known, which a read by name may lack."""
        fact = self._facts.get(volume_id)
        return bool(fact is not None and fact.volume and fact.volume.attachments)

    def _put(self, volume_id: VolumeId, fact: _Fact) -> None:
        before = self._facts.get(volume_id)
        if before is None or before.at <= fact.at:
            self._facts[volume_id] = fact

    def _replace(self, listing: Iterable[Volume], at: float) -> None:
        """Replace the cache by a list; keep what was observed after it began."""
        kept = {key: fact for key, fact in self._facts.items() if fact.at > at}
        self._facts = {volume.id: _Fact(volume, at) for volume in listing} | kept
        self._listed_at = max(at, self._listed_at or at)

    def all(self, call: callers.Caller) -> Mapping[VolumeId, Volume]:
        """Return all volumes by id, from a list at most a minute old.

        Raises:
            CloudError: they can't be listed.
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
        """
        with self._changed:
            while not self._is_fresh():
                if self._is_listing:
                    call.wait(self._changed, call.deadline, self._effects)
                else:
                    self._list()
            return {
                key: fact.volume
                for key, fact in self._facts.items()
                if fact.volume is not None
            }

    def _is_fresh(self) -> bool:
        if self._listed_at is None:
            return False
        return self._effects.clock() < self._listed_at + LIST_S

    def _list(self) -> None:
        at = self._effects.clock()
        self._is_listing = True
        self._changed.release()
        try:
            listing = self._cloud().listing()
        finally:
            self._changed.acquire()
            self._is_listing = False
            self._changed.notify_all()
        self._replace(listing, at)
