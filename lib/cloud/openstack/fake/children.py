"""Objects that belong to load balancers."""

import collections

from lib.cloud.openstack.fake.wire import Json, objects


class Children(collections.UserDict[str, Json]):
    """Objects by ID; those of one load balancer are found without a search."""

    def __init__(self) -> None:
        self._of: dict[str, set[str]] = collections.defaultdict(set)
        super().__init__()

    def __setitem__(self, id_: str, item: Json) -> None:
        super().__setitem__(id_, item)
        for parent in _parents(item):
            self._of[parent].add(id_)

    def __delitem__(self, id_: str) -> None:
        for parent in _parents(self[id_]):
            self._of[parent].discard(id_)
        super().__delitem__(id_)

    def of(self, balancer_id: str) -> list[Json]:
        """Return those of a load balancer, in the order of their IDs."""
        return [self[id_] for id_ in sorted(self._of.get(balancer_id, ()))]


def _parents(item: Json) -> list[str]:
    return [str(reference["id"]) for reference in objects(item, "loadbalancers")]
