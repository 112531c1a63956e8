"""References of Nodes to instances: whose they are, and which instance is meant."""

import collections
from collections.abc import Collection
from typing import Generic, Protocol, TypeVar

from lib.cloud import errors, provider_id
from lib.cloud.model import Absent, Foreign, InstanceRef, Observation, Seen, Unknown


def foreign(ref: InstanceRef, cloud: str, region: str = "") -> Foreign | None:
    """Return why a reference is of another cloud or region; None when it is not.

    A reference without a provider ID, or whose ID names no region, is of this cloud.
    """
    if not ref.provider_id:
        return None
    try:
        parsed = provider_id.parse(ref.provider_id)
    except provider_id.ProviderIdError as error:
        return Foreign(str(error))
    if parsed.cloud != cloud:
        return Foreign(f"provider id {ref.provider_id!r} is of another cloud")
    if parsed.region and parsed.region != region:
        return Foreign(
            f"provider id {ref.provider_id!r} is of region {parsed.region!r},"
            f" not of {region!r}"
        )
    return None


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
