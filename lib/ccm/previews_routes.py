"""Actions of the routes flow now, from one observation of cluster and cloud.

Its own reads and decisions; nothing is written, no state is kept.
"""

import dataclasses
import time
from collections.abc import Sequence

from lib.ccm import cluster_id
from lib.cloud import routes as tables
from lib.daemon import read_only
from lib.kube import client, resources, store
from lib.kube import nodes as kube_nodes
from lib.process.clock import utc_now
from lib.routes import desired, model, observe, preview, records


@dataclasses.dataclass(frozen=True, slots=True)
class RoutesPreview:
    """What would be done to a table. nodes: how many there are. unread: why it could
    not be read; empty if it was."""

    table: str
    rows: tuple[preview.RoutesRow, ...]
    nodes: int
    unread: str


def routes(
    api: client.Api,
    cloud: tables.Routes,
    given_id: str = "",
    cluster_cidrs: Sequence[desired.Cidr] = (),
) -> RoutesPreview:
    """Read Nodes, record and table once, and return what would be done.

    given_id: the daemon's --cluster-id; empty: the UID of namespace kube-system.

    Raises:
        KubeError: Nodes or record cannot be read.
    """
    reading = read_only.read_only(api)
    cluster = cluster_id.read(reading, given_id, "")
    kept = store.Store(reading, resources.NODES, kube_nodes.Node)
    kept.relist()
    sources = observe.Sources(
        kept,
        lambda: cloud,
        records.Records(reading, reading),
        lambda: cluster.id,
        cluster_cidrs,
        utc_now,
    )
    memory = model.Memory(time.monotonic)
    snapshot = observe.Observer(sources, memory).table(tables.Depth.FULL)
    nodes = kept.items()
    rows = preview.rows(snapshot, nodes, has_conditions=cloud.has_routes)
    return RoutesPreview(cloud.table, tuple(rows), len(nodes), preview.unread(snapshot))
