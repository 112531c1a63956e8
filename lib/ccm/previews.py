"""Actions of the flows now, from one observation of cluster and cloud.

Their own reads and decisions; nothing is written, no state is kept.
"""

import dataclasses
import time
from collections.abc import Callable

from lib.balancers import model as balancers_model
from lib.balancers import observe as balancers_observe
from lib.balancers import preview as balancers_preview
from lib.balancers import receivers, serving_nodes
from lib.balancers.model import Topic
from lib.ccm import cluster_id
from lib.cloud import explained, load_balancers, protocol
from lib.daemon import read_only
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
    """Read all Nodes and their instances once; return the actions.

    Deletions are planned after one direct read, the flow requires two; their number is
    that of a process that has just begun to follow the Nodes.

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
    snapshots = observer.observe([(name, topics) for name in names])
    return NodesPreview(
        rows=tuple(
            row for name in names for row in preview.rows(snapshots[name], once)
        ),
        nodes=len(names),
        not_managed=sum(preview.is_not_managed(snapshots[name]) for name in names),
        unread=tuple((n, why) for n in names if (why := preview.unread(snapshots[n]))),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ServicesRequest:
    """Services to plan for, and the cluster that owns their load balancers.

    cluster_id: empty: the uid of namespace kube-system. names: "namespace/name" or
    "name"; empty: all. is_deep: also read fields that require a call per pool.
    """

    cluster_id: str = ""
    cluster_name: str = "kubernetes"
    namespace: str = ""
    names: tuple[str, ...] = ()
    is_deep: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ServicesPreview:
    """Plans of Services of type LoadBalancer.

    others: number of Services with a class of another controller.
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
    request: ServicesRequest,
    clock: Callable[[], float] = time.monotonic,
) -> ServicesPreview:
    """Read Nodes, Services and their load balancers once; return the plans.

    The cloud is read as for drift detection: a few lists for all Services, and one call
    for each load balancer.

    Raises:
        KubeError: they cannot be read. NotFound: a named Service is not found, or has
        no load balancer to plan for.
    """
    reading = read_only.read_only(api)
    cluster = cluster_id.read(reading, request.cluster_id, request.cluster_name)
    kept = store.Store(reading, resources.SERVICES, balancers_model.Service)
    kept.relist()
    asked = [s for _, s in sorted(kept.items().items()) if _is_asked(s, request)]
    _check_names(request, asked)
    keys = [service.key for service in asked if service.concerns_us]
    receiving = _receiving(reading)
    serving = _serving(reading) if balancers.uses_endpoints else None
    sources = balancers_observe.Sources(
        kept,
        reading,
        lambda: receiving,
        lambda: cluster,
        lambda key: None if serving is None else serving.of(key),
    )
    memory = balancers_model.Memory(clock)
    observer = balancers_observe.ServiceObserver(
        sources,
        lambda: balancers,
        memory,
        Engine(lambda: balancers, memory, clock),
        clock,
    )
    topic = Topic.DEEP_DRIFT if request.is_deep else Topic.DRIFT
    some = observer.observe([(key, frozenset({topic})) for key in keys])
    snapshots = observer.read(some)
    now = utc_now()
    rows = [
        balancers_preview.row(snapshots[key], now, balancers.plan, explain)
        for key in keys
    ]
    return ServicesPreview(tuple(rows), sum(map(_is_of_others, asked)))


def _receiving(api: client.Api) -> tuple[load_balancers.Node, ...]:
    nodes = store.Store(api, resources.NODES, kube_nodes.Node)
    nodes.relist()
    receiving = (receivers.of(node) for _, node in sorted(nodes.items().items()))
    return tuple(node for node in receiving if node is not None)


def _serving(api: client.Api) -> serving_nodes.ServingNodes:
    serving = serving_nodes.ServingNodes(lambda key: None)
    slices = store.Store(
        api,
        resources.ENDPOINT_SLICES,
        serving_nodes.EndpointSlice,
        label_selector=serving_nodes.SELECTOR,
    )
    slices.subscribe(serving.follow)
    slices.relist()
    return serving


def _is_asked(service: balancers_model.Service, request: ServicesRequest) -> bool:
    about = service.metadata
    if request.namespace and about.namespace != request.namespace:
        return False
    return not request.names or bool({about.name, service.key} & set(request.names))


def _check_names(
    request: ServicesRequest, services: list[balancers_model.Service]
) -> None:
    for name in request.names:
        named = [s for s in services if name in (s.metadata.name, s.key)]
        if not any(s.concerns_us or _is_of_others(s) for s in named):
            where = f" in namespace {request.namespace}" if request.namespace else ""
            why = "none of that name" if not named else "no load balancer to plan for"
            text = f"there is {why}{where}"
            raise errors.NotFound(text, operation=f"find Service {name}")


def _is_of_others(service: balancers_model.Service) -> bool:
    spec = service.spec
    return spec.type == balancers_model.TYPE and bool(spec.load_balancer_class)
