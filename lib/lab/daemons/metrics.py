"""Reads what a daemon shows under /metrics."""

from collections import Counter
from collections.abc import Mapping

import prometheus_client.parser


def samples(text: str, series: str) -> tuple[tuple[Mapping[str, str], float], ...]:
    """Return labels and values of a series. text: as Prometheus would read it.

    Source: Prometheus, "Exposition formats", text-based format.
    """
    return tuple(
        (sample.labels, sample.value)
        for family in prometheus_client.parser.text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == series
    )


def total(text: str, series: str, **labels: str) -> float:
    """Add up the samples of a series that have these labels."""
    matching = samples(text, series)
    return sum(value for its, value in matching if labels.items() <= its.items())


def by(text: str, series: str, label: str) -> Mapping[str, float]:
    """Add up the samples of a series by the values of one label."""
    totals: Counter[str] = Counter()
    for labels, value in samples(text, series):
        totals[labels[label]] += value  # type: ignore[assignment]  # floats count, too
    return dict(totals)
