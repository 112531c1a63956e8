"""What a cloud controller manager counts of Nodes, Events and its Lease."""

import collections
import datetime
from collections.abc import Callable, Iterable

import prometheus_client

from lib.cloud import model

_NEW_NODE_BUCKETS_S = (1, 4, 16, 64, 256, 1024)


class EventMetrics:
    """Counts what is told in Events: the same things, for who watches metrics."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "events_recorded",
            "Events recorded, by type and reason; those said again included.",
            ("type", "reason"),
            registry=registry,
        )

    def emitted(self, type: str, reason: str) -> None:
        """Count one; both are words of closed sets."""
        self._total.labels(type, reason).inc()


class InstanceMetrics:
    """Counts what the cloud says of the Nodes' instances.

    "unknown" grows also when each call succeeds and the answers can't be believed.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "instance_observations",
            "Instances asked for: seen, absent, unknown or foreign.",
            ("result",),
            registry=registry,
        )
        for result in _RESULTS.values():
            self._total.labels(result)

    def observed(self, found: Iterable[model.Observation[model.Instance]]) -> None:
        """Count them."""
        counted = collections.Counter(_RESULTS[type(one)] for one in found)
        for result, number in counted.items():
            self._total.labels(result).inc(number)


_RESULTS: dict[type[model.Observation[model.Instance]], str] = {
    model.Seen: "seen",
    model.Absent: "absent",
    model.Unknown: "unknown",
    model.Foreign: "foreign",
}


class DeletionMetrics:
    """Counts Nodes deleted, and those held back by the limit on deletions."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "node_deletions",
            "Nodes deleted because their instances were gone.",
            registry=registry,
        )
        self._blocked = prometheus_client.Gauge(
            "node_deletions_blocked",
            "Nodes not deleted now because too many would go at once.",
            registry=registry,
        )

    def deleted(self) -> None:
        """Count one."""
        self._total.inc()

    def watch(self, held_back: Callable[[], int]) -> None:
        """Ask this, whenever the metrics are read, how many are held back."""
        self._blocked.set_function(held_back)


class NodeMetrics:
    """Tells how long a new Node waits for us.

    Both names tell the same time: taint and labels are one write here.

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
        """Note that a Node was initialised."""
        # Its creation is told in whole seconds, by another machine's clock.
        delay_s = max(0.0, (now - created).total_seconds())
        self._taint_removal.observe(delay_s)
        self._initial_sync.observe(delay_s)


class LeaderMetrics:
    """Tells whether this process holds the Lease, and how it is renewed.

    Source: client-go leader_election_master_status{name} and
    leader_election_slowpath_total{name}.
    """

    def __init__(
        self, name: str, registry: prometheus_client.CollectorRegistry
    ) -> None:
        """name: of the Lease."""
        gauge = prometheus_client.Gauge(
            "leader_election_master_status",
            "1 while this process holds the Lease.",
            ("name",),
            registry=registry,
        )
        counter = prometheus_client.Counter(
            "leader_election_slowpath",
            "Renewals of the Lease that had to read it first.",
            ("name",),
            registry=registry,
        )
        self._status = gauge.labels(name)
        self._slow_paths = counter.labels(name)

    def leading(self) -> None:
        """Note that the Lease is ours."""
        self._status.set(1)

    def slow_path(self) -> None:
        """Count a renewal that was not the usual single write."""
        self._slow_paths.inc()


class ControllerMetrics:
    """Tells which controllers run in this process.

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
        """Note that a controller runs; name: the short one, such as cloud-node."""
        self._running.labels(name, "cloud-controller-manager").set(1)
