"""What the nodes flow would do now, from one look at cluster and cloud.

The flow's own reads and decisions; nothing is written, nothing is kept.
"""

import dataclasses

from lib.ccm import dry
from lib.cloud import protocol
from lib.kube import client, resources, store
from lib.nodes import flow, model, observe, plan


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The actions of one pass over all Nodes.

    nodes: how many there are. foreign: how many of them are of another cloud or region.
    unread: those that could not be judged, each with the reason.
    """

    rows: tuple[plan.Row, ...]
    nodes: int
    foreign: int
    unread: tuple[tuple[str, str], ...]


def nodes(
    api: client.Api,
    instances: protocol.Instances,
    settings: model.Settings,
    clocks: observe.Clocks | None = None,
) -> Plan:
    """Read all Nodes and their instances once, and say what would be done.

    Deletions are planned after one direct look, where the flow makes two; and as many
    of them as a process may carry out that has just begun to follow the Nodes.

    Raises:
        KubeError: the Nodes can't be read.
    """
    reading = dry.read_only(api)
    kept = store.Store(reading, resources.NODES, model.Node)
    kept.relist()
    once = dataclasses.replace(settings, confirm_after_s=0.0)
    observer = observe.Observer(kept, reading, instances, once, clocks)
    topics = flow.topics_served(once)
    names = sorted(kept.items())
    seen = observer.observe([(name, topics) for name in names])
    return Plan(
        rows=tuple(row for name in names for row in plan.rows(seen[name], once)),
        nodes=len(names),
        foreign=sum(plan.is_foreign(seen[name]) for name in names),
        unread=tuple((n, why) for n in names if (why := plan.unread(seen[n]))),
    )
