"""Metrics of the steps of discovery: the reference's series, and ours.

Source: deckhouse, go_lib/cloud-data/reconciler.go: the four series that begin with
cloud_data_discovery_ and continue with cloud_request_error, update_resource_error,
orphaned_disk_info and cloud_conditions_error. In the reference the next successful
step resets the second of them; here it is 1 while any step fails.
"""

import dataclasses
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping

import prometheus_client

from lib.discovery.model import DiscoveryStep
from lib.discovery.provider import Signal

Pair = tuple[str, str]

REFERENCE_TYPES: Mapping[DiscoveryStep, str] = {
    DiscoveryStep.INSTANCE_TYPES: "instance_types",
    DiscoveryStep.DISCOVERY_DATA: "discovery_data",
    DiscoveryStep.ORPHANED_DISKS: "disks_meta",
}
"""The label `type` of cloud_request_error; other steps are not in it."""


@dataclasses.dataclass(slots=True)
class _Health:
    """State of a step.

    is_failed: its result is not published. refused_since: the API server has refused
    its requests since then; None: it has not.
    """

    is_failed: bool = False
    refused_since: float | None = None


class DiscoveryMetrics:
    """The series of one process. Safe for many threads.

    clock: monotonic seconds. wall: seconds since the epoch. signals: metrics of the
    cloud for states of the cluster.
    """

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        steps: Iterable[DiscoveryStep],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        signals: Mapping[Signal, prometheus_client.Gauge] = types.MappingProxyType({}),
    ) -> None:
        self._signals = signals
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._steps = {step: _Health() for step in steps}
        self._shown: dict[DiscoveryStep, frozenset[Pair]] = {}
        self._cloud = _gauge(
            registry,
            "cloud_data_discovery_cloud_request_error",
            "1 after a failed read of the cloud.",
            ("type",),
        )
        self._update = _gauge(
            registry,
            "cloud_data_discovery_update_resource_error",
            "1 while what a step found can't be published.",
        )
        self._step = _gauge(
            registry,
            "mooring_discovery_step_error",
            "1 while a step of the cycle fails.",
            ("step",),
        )
        self._success = _gauge(
            registry,
            "mooring_discovery_step_last_success_timestamp_seconds",
            "When a step last succeeded; 0 for never.",
            ("step",),
        )
        self._vectors = {
            DiscoveryStep.ORPHANED_DISKS: _gauge(
                registry,
                "cloud_data_discovery_orphaned_disk_info",
                "1 for each disk of the cluster without a PersistentVolume.",
                ("id", "name"),
            ),
            DiscoveryStep.CONDITIONS: _gauge(
                registry,
                "cloud_data_discovery_cloud_conditions_error",
                "1 for each condition of the cloud that is not met.",
                ("name", "message"),
            ),
        }
        for step in self._steps:
            self._step.labels(step.value).set(0)
            self._success.labels(step.value).set(0)
            if step in REFERENCE_TYPES:
                self._cloud.labels(REFERENCE_TYPES[step]).set(0)

    def read(self, step: DiscoveryStep, is_read: bool) -> None:
        """Note whether the cloud could be read for a step."""
        if step in REFERENCE_TYPES:
            self._cloud.labels(REFERENCE_TYPES[step]).set(not is_read)
        if not is_read:
            self._step.labels(step.value).set(1)

    def succeeded(self, step: DiscoveryStep) -> None:
        """Note that a step is done."""
        with self._lock:
            self._steps[step] = _Health()
            self._set_update()
        self._step.labels(step.value).set(0)
        self._success.labels(step.value).set(self._wall())

    def failed(self, step: DiscoveryStep, *, is_refused: bool) -> None:
        """Note that the result of a step could not be published.

        is_refused: by the API server; else by our own validation.
        """
        with self._lock:
            health = self._steps[step]
            health.is_failed = True
            if is_refused and health.refused_since is None:
                health.refused_since = self._clock()
            self._set_update()
        self._step.labels(step.value).set(1)

    def signal(self, signal: Signal, is_on: bool) -> None:
        """Show a state of the cluster, if the cloud has a metric for it."""
        if signal in self._signals:
            self._signals[signal].set(is_on)

    def _set_update(self) -> None:
        self._update.set(any(state.is_failed for state in self._steps.values()))

    def refused_for_s(self) -> float:
        """Return for how long the API server has refused some step, in seconds."""
        with self._lock:
            since = [state.refused_since for state in self._steps.values()]
        known = [at for at in since if at is not None]
        return self._clock() - min(known) if known else 0.0

    def shown(self, step: DiscoveryStep) -> frozenset[Pair]:
        """Return the present samples of a step's vector."""
        return self._shown.get(step, frozenset())

    def show(self, step: DiscoveryStep, pairs: frozenset[Pair]) -> None:
        """Replace the samples of a step's vector by exactly these."""
        vector = self._vectors[step]
        for gone in self.shown(step) - pairs:
            vector.remove(*gone)
        for pair in pairs:
            vector.labels(*pair).set(1)
        self._shown[step] = pairs


def _gauge(
    registry: prometheus_client.CollectorRegistry,
    name: str,
    help_: str,
    labels: tuple[str, ...] = (),
) -> prometheus_client.Gauge:
    return prometheus_client.Gauge(name, help_, labels, registry=registry)
