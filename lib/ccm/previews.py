"""What the flows would do now, from one look at cluster and cloud.

Their own reads and decisions; nothing is written, nothing is kept.
"""

import dataclasses
import time
from collections.abc import Callable

from lib.balancers import model as balancers_model
from lib.balancers import observe as balancers_observe
from lib.balancers import preview as balancers_preview
from lib.balancers import receivers
from lib.balancers.model import Topic
from lib.ccm import cluster_id, read_only
from lib.cloud import explained, load_balancers, protocol
from lib.kube import client, errors, resources, store
from lib.kube import nodes as kube_nodes
from lib.nodes import flow, model, observe, preview
from lib.plans.engine import Engine
from lib.process.clock import utc_now
from lib.reconcile import runner


@dataclasses.dataclass(frozen=True, slots=True)
class NodesPreview:
    """Actions of one reconciliation of all Nodes.

    nodes: their number. not_managed: the number of those of another cloud or region.
    unread: Nodes with an unknown state, each with the reason.
    """

    rows: tuple[preview.Row, ...]
    nodes: int
    not_managed: int
    unread: tuple[tuple[str, str], ...]


def nodes(
    api: client.Api,
    instances: protocol.Instances,
    settings: model.NodeSettings,
    clocks: runner.Clocks | None = None,
) -> NodesPreview:
    """Read all Nodes and their instances once, and say what would be done.

    Deletions are planned after one direct look, where the flow makes two; and as many
    of them as a process may carry out that has just begun to follow the Nodes.

    Raises:
        KubeError: the Nodes can't be read.
    """
    reading = read_only.read_only(api)
    kept = store.Store(reading, resources.NODES, kube_nodes.Node)
    kept.relist()
    once = dataclasses.replace(settings, confirm_after_s=0.0)
    observer = observe.NodeObserver(kept, reading, lambda: instances, once, clocks)
    topics = flow.topics_served(once)
    names = sorted(kept.items())
    seen = observer.observe([(name, topics) for name in names])
    return NodesPreview(
        rows=tuple(row for name in names for row in preview.rows(seen[name], once)),
        nodes=len(names),
        not_managed=sum(preview.is_not_managed(seen[name]) for name in names),
        unread=tuple((n, why) for n in names if (why := preview.unread(seen[n]))),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ServicesRequest:
    """Which Services are asked about, and in whose name.

    cluster_id: empty: the uid of namespace kube-system. names: "namespace/name" or
    "name"; empty: all. is_deep: also look at what takes a call for each pool.
    """

    cluster_id: str = ""
    cluster_name: str = "kubernetes"
    namespace: str = ""
    names: tuple[str, ...] = ()
    is_deep: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ServicesPreview:
    """What would become of Services of type LoadBalancer.

    others: how many have a class, and thus are another controller's.
    """

    rows: tuple[balancers_preview.Row, ...]
    others: int

    @property
    def unread(self) -> tuple[balancers_preview.Row, ...]:
        """Return the Services with an unknown state."""
        unknown = balancers_preview.State.UNKNOWN
        return tuple(row for row in self.rows if row.state is unknown)


def services(
    api: client.Api,
    balancers: load_balancers.LoadBalancers,
    explain: explained.Explain,
    wanted: ServicesRequest,
    clock: Callable[[], float] = time.monotonic,
) -> ServicesPreview:
    """Read Nodes, Services and their load balancers once, and say what would be done.

    The cloud is read as a look for drift reads it: a few lists for all Services, and
    one call for each load balancer.

    Raises:
        KubeError: they can't be read. NotFound: one that was named is not there, or
        is none of ours.
    """
    reading = read_only.read_only(api)
    cluster = cluster_id.read(reading, wanted.cluster_id, wanted.cluster_name)
    kept = store.Store(reading, resources.SERVICES, balancers_model.Service)
    kept.relist()
    asked = [one for _, one in sorted(kept.items().items()) if _is_asked(one, wanted)]
    _check_names(wanted, asked)
    ours = [one.key for one in asked if one.concerns_us]
    receiving = _receiving(reading)
    sources = balancers_observe.Sources(
        kept, reading, lambda: receiving, lambda: cluster
    )
    memory = balancers_model.Memory(clock)
    observer = balancers_observe.ServiceObserver(
        sources,
        lambda: balancers,
        memory,
        Engine(lambda: balancers, memory, clock),
        clock,
    )
    topic = Topic.DEEP_DRIFT if wanted.is_deep else Topic.DRIFT
    some = observer.observe([(key, frozenset({topic})) for key in ours])
    seen = observer.read(some)
    now = utc_now()
    rows = [
        balancers_preview.row(seen[key], now, balancers.plan, explain) for key in ours
    ]
    return ServicesPreview(tuple(rows), sum(map(_is_of_others, asked)))


def _receiving(api: client.Api) -> tuple[load_balancers.Node, ...]:
    nodes = store.Store(api, resources.NODES, kube_nodes.Node)
    nodes.relist()
    found = (receivers.of(node) for _, node in sorted(nodes.items().items()))
    return tuple(one for one in found if one is not None)


def _is_asked(service: balancers_model.Service, wanted: ServicesRequest) -> bool:
    about = service.metadata
    if wanted.namespace and about.namespace != wanted.namespace:
        return False
    return not wanted.names or bool({about.name, service.key} & set(wanted.names))


def _check_names(wanted: ServicesRequest, found: list[balancers_model.Service]) -> None:
    for name in wanted.names:
        named = [one for one in found if name in (one.metadata.name, one.key)]
        if not any(one.concerns_us or _is_of_others(one) for one in named):
            where = f" in namespace {wanted.namespace}" if wanted.namespace else ""
            why = "none of that name" if not named else "no load balancer to plan for"
            text = f"there is {why}{where}"
            raise errors.NotFound(text, operation=f"find Service {name}")


def _is_of_others(service: balancers_model.Service) -> bool:
    spec = service.spec
    return spec.type == balancers_model.TYPE and bool(spec.load_balancer_class)
