"""Metrics of a cloud controller manager: its controllers, Nodes and Services."""

import collections
import datetime
import functools
from collections.abc import Callable, Iterable, Mapping

import prometheus_client

from lib.balancers import model as balancers_model
from lib.cloud import model
from lib.cloud.steps import ProblemReason
from lib.daemon import counting
from lib.nodes.problems import NodeProblem

_NEW_NODE_BUCKETS_S = (1, 4, 16, 64, 256, 1024)
_RECONCILE_BUCKETS_S = (0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_HOST_BUCKETS_S = tuple(2**power for power in range(15))


class InstanceMetrics:
    """Counts observations of the Nodes' instances by result.

    "unknown" also increases when all calls succeed and their answers are implausible.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "mooring_instance_observations",
            "Observed instances by result.",
            ("result",),
            registry=registry,
        )
        for result in _RESULTS.values():
            self._total.labels(result)

    def observed(
        self, observations: Iterable[model.Observation[model.Instance]]
    ) -> None:
        """Count observations."""
        counted = collections.Counter(
            _RESULTS[type(instance)] for instance in observations
        )
        for result, number in counted.items():
            self._total.labels(result).inc(number)


_RESULTS: dict[type[model.Observation[model.Instance]], str] = {
    model.Seen: "present",
    model.Absent: "absent",
    model.Unknown: "unknown",
    model.NotManaged: "other_provider",
}


class DeletionMetrics:
    """Counts deleted Nodes, and those that the deletion budget retains."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "mooring_node_deletions",
            "Nodes deleted because their instances do not exist.",
            registry=registry,
        )
        self._blocked = prometheus_client.Gauge(
            "mooring_node_deletions_blocked",
            "Nodes whose deletion is suspended by the deletion budget.",
            registry=registry,
        )

        self._waiting = prometheus_client.Gauge(
            "mooring_node_deletions_waiting",
            "Deleted Nodes that wait for the finalizers of other controllers.",
            registry=registry,
        )

    def deleted(self) -> None:
        """Count one."""
        self._total.inc()

    def watch(self, suspended: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Set the functions that count the deletions that do not end."""
        self._blocked.set_function(suspended)
        self._waiting.set_function(waiting)


class NodeMetrics:
    """Measures how long a new Node waits for its initialisation.

    Both metrics have the same value: taint and labels are one write here.

    Source: k8s.io/cloud-provider controllers/node/metrics.go.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._taint_removal = prometheus_client.Histogram(
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "Seconds from a Node's creation until its uninitialized taint was removed.",
            buckets=_NEW_NODE_BUCKETS_S,
            registry=registry,
        )
        self._initial_sync = prometheus_client.Histogram(
            "node_controller_initial_node_sync_delay_seconds",
            "Seconds from a Node's creation until it was initialised.",
            buckets=_NEW_NODE_BUCKETS_S,
            registry=registry,
        )

    def initialised(self, created: datetime.datetime, now: datetime.datetime) -> None:
        """Record that a Node was initialised."""
        # The creation has whole seconds of the clock of another machine.
        delay_s = max(0.0, (now - created).total_seconds())
        self._taint_removal.observe(delay_s)
        self._initial_sync.observe(delay_s)


class NodeProblemMetrics:
    """Counts Nodes with a problem."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._problems = prometheus_client.Gauge(
            "mooring_node_problem",
            "Nodes with a problem, by reason.",
            ("reason",),
            registry=registry,
        )

    def watch(self, counts: Callable[[], Mapping[NodeProblem, int]]) -> None:
        """Set the function that counts each problem when the metrics are read."""

        def count(problem: NodeProblem) -> float:
            return counts().get(problem, 0)

        for problem in NodeProblem:
            count_of = functools.partial(count, problem)
            self._problems.labels(problem).set_function(count_of)


class _Reconciliations:
    """Metrics of Services under the names of a reference daemon."""

    def __init__(
        self, prefix: str, registry: prometheus_client.CollectorRegistry
    ) -> None:
        self._seconds = prometheus_client.Histogram(
            f"{prefix}_reconcile_duration_seconds",
            "Seconds from the first write for a Service until all is done.",
            ("operation",),
            buckets=_RECONCILE_BUCKETS_S,
            registry=registry,
        )
        self._total = prometheus_client.Counter(
            f"{prefix}_reconcile",
            "Services for which something was done.",
            ("operation",),
            registry=registry,
        )
        self._errors = prometheus_client.Counter(
            f"{prefix}_reconcile_errors",
            "Passes for a Service that failed.",
            ("operation",),
            registry=registry,
        )
        for operation in balancers_model.Operation:
            for family in (self._seconds, self._total, self._errors):
                family.labels(operation)

    def ended(
        self, operation: balancers_model.Operation, seconds: float, has_worked: bool
    ) -> None:
        """See `BalancerMetrics.ended`."""
        self._total.labels(operation).inc()
        self._seconds.labels(operation).observe(seconds)
        if not has_worked:
            self._errors.labels(operation).inc()


class BalancerMetrics:
    """Counts and measures reconciliations of Services, and counts their problems.

    The duration includes the time in which a Service waits for its load balancer to
    become ACTIVE: it is what its user waits, over all reconciliations.

    Source: k8s.io/cloud-provider controllers/service/metrics.go.
    """

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        reference: counting.Reference | None = None,
    ) -> None:
        """reference: names of its metrics of reconciliations; None: not shown."""
        self._reconciliations = None
        if reference is not None and reference.reconciliations:
            self._reconciliations = _Reconciliations(
                reference.reconciliations, registry
            )
        self._problems = prometheus_client.Gauge(
            "mooring_load_balancer_problem",
            "Services with a load balancer problem, by reason.",
            ("reason",),
            registry=registry,
        )
        self._syncs = prometheus_client.Counter(
            "service_controller_loadbalancer_sync",
            "Load balancers made or changed for the sake of Services or Nodes.",
            registry=registry,
        )
        self._node_errors = prometheus_client.Counter(
            "service_controller_nodesync_error",
            "Load balancers that could not be given other Nodes.",
            registry=registry,
        )
        self._node_seconds = prometheus_client.Histogram(
            "service_controller_update_loadbalancer_host_latency_seconds",
            "Seconds it took to give a load balancer other Nodes.",
            buckets=_HOST_BUCKETS_S,
            registry=registry,
        )

    def ended(
        self, operation: balancers_model.Operation, seconds: float, has_worked: bool
    ) -> None:
        """Record a finished or failed operation for a Service."""
        is_update = operation is balancers_model.Operation.UPDATE
        if self._reconciliations is not None:
            self._reconciliations.ended(operation, seconds, has_worked)
        if not has_worked:
            if is_update:
                self._node_errors.inc()
        elif operation is not balancers_model.Operation.DELETE:
            self._syncs.inc()
            if is_update:
                self._node_seconds.observe(seconds)

    def watch(
        self,
        problems: Callable[[], Mapping[ProblemReason, int]],
        reasons: Iterable[ProblemReason],
    ) -> None:
        """Count the Services with each problem whenever the metrics are read."""
        _watch(self._problems, problems, reasons)


def _watch(
    gauge: prometheus_client.Gauge,
    problems: Callable[[], Mapping[ProblemReason, int]],
    reasons: Iterable[ProblemReason],
) -> None:
    for reason in reasons:
        gauge.labels(reason).set_function(functools.partial(_count, problems, reason))


def _count(
    problems: Callable[[], Mapping[ProblemReason, int]], reason: ProblemReason
) -> float:
    return problems().get(reason, 0)


class RouteMetrics:
    """Counts problems of routes to Pods."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._problems = prometheus_client.Gauge(
            "mooring_route_problem",
            "Nodes and route tables with a problem, by reason.",
            ("reason",),
            registry=registry,
        )

    def watch(
        self,
        problems: Callable[[], Mapping[ProblemReason, int]],
        reasons: Iterable[ProblemReason],
    ) -> None:
        """Set the function that counts each problem when the metrics are read."""
        _watch(self._problems, problems, reasons)


class ControllerMetrics:
    """Shows the controllers that run in this process.

    Source: k8s.io/component-base metrics/prometheus/controllers
    running_managed_controllers{name,manager}.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._running = prometheus_client.Gauge(
            "running_managed_controllers",
            "1 for each controller that runs in this process.",
            ("name", "manager"),
            registry=registry,
        )

    def started(self, name: str) -> None:
        """Record that a controller runs. name: the short one, such as cloud-node."""
        self._running.labels(name, "cloud-controller-manager").set(1)
