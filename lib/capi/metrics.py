"""Metrics of an infrastructure provider: its machines."""

import functools
from collections.abc import Callable, Iterable, Mapping

import prometheus_client

from lib.cloud.steps import ProblemReason


class MachineMetrics:
    """Counts machines, and their problems by reason."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._machines = prometheus_client.Gauge(
            "mooring_machines",
            "Machine objects, by whether their instance is provisioned.",
            ("provisioned",),
            registry=registry,
        )
        self._problems = prometheus_client.Gauge(
            "mooring_machine_problem",
            "Machines with a problem, by reason.",
            ("reason",),
            registry=registry,
        )

    def watch(
        self,
        machines: Callable[[bool], int],
        problems: Callable[[], Mapping[ProblemReason, int]],
        reasons: Iterable[ProblemReason],
    ) -> None:
        """Count whenever the metrics are read. machines: by whether provisioned."""
        for value in (True, False):
            gauge = self._machines.labels(str(value).lower())
            gauge.set_function(functools.partial(machines, value))
        for reason in reasons:
            gauge = self._problems.labels(reason)
            gauge.set_function(functools.partial(_count, problems, reason))


def _count(
    problems: Callable[[], Mapping[ProblemReason, int]], reason: ProblemReason
) -> float:
    return problems().get(reason, 0)
