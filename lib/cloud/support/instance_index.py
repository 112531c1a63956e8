"""Native instances by id and by name, as references of Nodes name them."""

import collections
from collections.abc import Collection
from typing import Generic, Protocol, TypeVar

from lib.cloud import errors, provider_id
from lib.cloud.model import Absent, InstanceRef, Observation, Seen, Unknown


class NamedInstance(Protocol):
    """A native instance."""

    @property
    def id(self) -> str:
        """Its ID, as provider IDs have it."""
        ...

    @property
    def name(self) -> str | None:
        """Its name; None is the same as an empty one."""
        ...


T = TypeVar("T", bound=NamedInstance)


class InstanceIndex(Generic[T]):
    """Native instances by id, by exact name, and by name in lower case.

    kind: what the cloud calls them, in the singular.
    """

    def __init__(self, items: Collection[T], kind: str) -> None:
        self._kind = kind
        self._by_id = {item.id: item for item in items}
        self._by_name = collections.defaultdict[str, list[T]](list)
        self._by_folded = collections.defaultdict[str, list[T]](list)
        for item in items:
            name = item.name or ""
            self._by_name[name].append(item)
            self._by_folded[name.lower()].append(item)

    def find(self, ref: InstanceRef) -> Observation[T]:
        """Find the instance of a reference.

        A name counts exactly; failing that with letter case aside, for Nodes are
        always in lower case, and references' searches by name ignore case too.
        """
        if ref.provider_id:
            item = self._by_id.get(provider_id.parse(ref.provider_id).id)
            return Absent(by_id=True) if item is None else Seen(item)
        name = ref.node_name
        matches = self._by_name.get(name) or self._by_folded.get(name.lower()) or []
        if len(matches) > 1:
            message = f"{len(matches)} {self._kind}s have this name"
            return Unknown(
                errors.Ambiguous(message, operation=f"find {self._kind}", resource=name)
            )
        return Seen(matches[0]) if matches else Absent(by_id=False)
