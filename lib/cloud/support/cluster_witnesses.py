"""Objects of a cluster in a cloud: without one, no volume is absent there.

docs/decisions/0230-nodes-as-witnesses-of-volumes.md
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence

from lib.cloud.model import InstanceId
from lib.cloud.volumes import Volume

SEARCH_S = 60.0
"""Between two searches for an object of the cluster, until one is found."""
NODES = 3
"""Instances of Nodes that one search reads; the next one reads the following."""

NodeIds = Callable[[], Sequence[str] | None]
"""Returns the IDs of the instances of the cluster's Nodes; None: they are not known.

Raises Unavailable."""


def no_node_ids() -> None:
    """Return that the Nodes are not known."""
    return


@dataclasses.dataclass(frozen=True, slots=True)
class OfCluster:
    """Which objects are the cluster's. id: in the ownership metadata of volumes."""

    id: str
    node_ids: NodeIds = no_node_ids


class WitnessSearch:
    """Searches an object of a cluster; what it has not found is absent for a minute."""

    def __init__(
        self,
        cluster: OfCluster,
        is_id: Callable[[str], bool],
        has_instance: Callable[[str, float], bool],
        listing: Callable[[], Sequence[Volume]],
        clock: Callable[[], float],
    ) -> None:
        """is_id: reports whether an instance may have this ID. has_instance: reads one
        by its ID, until a time of the clock. listing: of all volumes. clock: monotonic
        seconds.
        """
        self._cluster = cluster
        self._is_id = is_id
        self._reads_instance = has_instance
        self._listing = listing
        self._clock = clock
        self._searched_at = -math.inf
        self._position = 0

    def exist(
        self,
        instances: Sequence[InstanceId | None],
        created: Collection[str],
        deadline: float,
    ) -> bool:
        """Report whether the cloud has an object of the cluster.

        instances: some of the cluster, asked for each time. created: volumes of this
        process, which are wherever its credentials lead.

        Raises:
            CloudError: it is not known.
        """
        if self._has_instance({id_ for id_ in instances if id_}, deadline):
            return True
        if self._clock() < self._searched_at + SEARCH_S:
            return False
        self._searched_at = self._clock()
        node_ids = list(filter(self._is_id, self._cluster.node_ids() or ()))
        if node_ids:
            # A volume shows less: clusters often have the same, usual cluster ID.
            return self._has_instance(self._next(node_ids), deadline)
        return any(
            volume.cluster == self._cluster.id and volume.id not in created
            for volume in self._listing()
        )

    def _next(self, node_ids: Sequence[str]) -> Collection[str]:
        """Return the Nodes that this search reads."""
        begin = self._position % len(node_ids)
        self._position = begin + NODES
        return (*node_ids[begin:], *node_ids[:begin])[:NODES]

    def _has_instance(self, ids: Collection[str], deadline: float) -> bool:
        instances = sorted(filter(self._is_id, ids))
        return any(self._reads_instance(id_, deadline) for id_ in instances)
