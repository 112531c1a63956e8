"""Objects that this process writes itself, never older than its own last write."""

import dataclasses
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from lib.kube import client, errors, objects, resources, store
from lib.process import decoding

HOLD_S = 5.0
"""How long an object waits for the watch to bring our own write back."""
READ_TIMEOUT_S = 10.0

T = TypeVar("T", bound=objects.HasMetadata)


# No slots: Python 3.11 then could not make it as Reading[...](...).
@dataclasses.dataclass(frozen=True)
class FreshObject(Generic[T]):
    """Newest known state of an object.

    value: None: it is not there. held: our own last write is not in it yet.
    """

    value: T | None
    held: bool = False


class Fresh(Generic[T]):
    """Reads from a store, and past it when the watch is late.

    clock: monotonic seconds.
    """

    def __init__(
        self,
        kept: store.Store[T],
        api: client.Api,
        resource: resources.Resource,
        decode_type: type[T],
        clock: Callable[[], float],
    ) -> None:
        self._kept = kept
        self._api = api
        self._resource = resource
        self._type = decode_type
        self._clock = clock
        self._held_since: dict[str, float] = {}
        self._log = structlog.stdlib.get_logger().bind(resource=resource.plural)

    def read(self, key: str) -> FreshObject[T]:
        """Return an object by its key; it is held back until our own write is seen.

        After HOLD_S it is read from the API server; it stays held while that fails.
        """
        is_current = self._kept.is_current(key)
        # Read after that: what is newer still is current all the more.
        value = self._kept.get(key)
        if is_current:
            self._held_since.pop(key, None)
            return FreshObject(value)
        since = self._held_since.setdefault(key, self._clock())
        if self._clock() - since < HOLD_S:
            return FreshObject(value, held=True)
        return self._directly(key, value)

    def _directly(self, key: str, known: T | None) -> FreshObject[T]:
        namespace, _, name = key.rpartition("/")
        try:
            body = self._api.read(
                self._resource, name, namespace or None, timeout_s=READ_TIMEOUT_S
            )
        except errors.NotFound:
            return FreshObject(None)
        except errors.KubeError as error:
            self._log.warning("cannot read the object", key=key, error=str(error))
            return FreshObject(known, held=True)
        return FreshObject(decoding.decode(body, self._type))

    def forget(self, key: str) -> None:
        """Drop what is kept for a deleted object."""
        self._held_since.pop(key, None)
