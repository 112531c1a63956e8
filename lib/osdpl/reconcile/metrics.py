"""Metrics of helm runs and releases.

Rules: labels come from closed sets; what the caches and the slots know is read when it
is scraped, and kept nowhere else.
"""

import contextlib
import datetime
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import prometheus_client
from prometheus_client import registry as prometheus_registry
from prometheus_client.core import GaugeMetricFamily, Metric

from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.osdpl.values import graph

CHARTS = {name: chart for pairs in graph.RELEASES.values() for name, chart in pairs}
"""Chart of each release."""
OTHER = "other"
"""Chart of a release that no service of this version has."""
SUCCESS = "success"
UNEXPECTED = "unexpected_error"


def _kinds(base: type[helm_errors.HelmError]) -> Iterator[type[helm_errors.HelmError]]:
    """Yield all errors below one."""
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


RESULTS: Mapping[type[BaseException], str] = {
    kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    for kind in _kinds(helm_errors.HelmError)
}
"""Result of a run that failed; any other error is UNEXPECTED."""
_BUCKETS_S = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200)


class Slots(Protocol):
    """Slots in which helm runs."""

    def running(self) -> frozenset[str]:
        """Return the releases that hold a slot."""
        ...


class HelmRuns:
    """Counts helm runs and measures them in seconds, by chart."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._runs = prometheus_client.Counter(
            "mooring_osdpl_helm_runs",
            "Runs of helm by operation, chart and result.",
            ("operation", "chart", "result"),
            registry=registry,
        )
        self._seconds = prometheus_client.Histogram(
            "mooring_osdpl_helm_run_duration_seconds",
            "Seconds a run of helm took, by operation and chart.",
            ("operation", "chart"),
            buckets=_BUCKETS_S,
            registry=registry,
        )

    @contextlib.contextmanager
    def measured(self, operation: str, release: str) -> Iterator[None]:
        """Count and measure the run within the block; its error passes through."""
        chart = CHARTS.get(release, OTHER)
        began = time.monotonic()
        result = UNEXPECTED
        try:
            yield
            result = SUCCESS
        except helm_errors.HelmError as error:
            result = RESULTS[type(error)]
            raise
        finally:
            self._runs.labels(operation, chart, result).inc()
            seconds = time.monotonic() - began
            self._seconds.labels(operation, chart).observe(seconds)


class Releases(prometheus_registry.Collector):
    """Releases by state, the age of the oldest pending one, and the slots in use.

    revisions: the newest revision of each release. slots: how many there are.
    """

    def __init__(
        self,
        revisions: Callable[[], Mapping[str, helm.Revision]],
        jobs: Slots,
        slots: int,
        now: Callable[[], datetime.datetime],
    ) -> None:
        self._revisions = revisions
        self._jobs = jobs
        self._slots = slots
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        revisions = tuple(self._revisions().values())
        states = GaugeMetricFamily(
            "mooring_osdpl_releases",
            "Releases by the status of their newest revision.",
            labels=("status",),
        )
        for status in helm.Status:
            count = sum(revision.status is status for revision in revisions)
            states.add_metric((status.value,), count)
        yield states
        yield GaugeMetricFamily(
            "mooring_osdpl_oldest_pending_release_age_seconds",
            "Age of the release that is pending longest; 0: no release is pending.",
            value=max((self._age_s(revision) for revision in revisions), default=0.0),
        )
        yield GaugeMetricFamily(
            "mooring_osdpl_helm_slots", "Slots for helm runs.", value=self._slots
        )
        yield GaugeMetricFamily(
            "mooring_osdpl_helm_slots_in_use",
            "Slots in which helm runs, or a chart is read.",
            value=len(self._jobs.running()),
        )

    def _age_s(self, revision: helm.Revision) -> float:
        if not revision.status.is_pending or revision.modified_at is None:
            return 0.0
        return max(0.0, (self._now() - revision.modified_at).total_seconds())
