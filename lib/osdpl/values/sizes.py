"""Sizes: replicas and limits of the services, as values of their charts.

Replicas, disruption budgets, pools, worker processes and time-outs of agents are those
of the reference. A size is a layer below the spec, so
spec.services.<service>.<chart>.values overrides it.
"""

from typing import Any

from lib.osdpl.api import merge, model
from lib.osdpl.values import catalog
from lib.osdpl.values.service import SIZES, Chart

_POOL = {
    "max_pool_size": 10,
    "max_retries": -1,
    "connection_recycle_time": 300,
}
_AT_ONCE = "10%"
"""Nodes on which a DaemonSet is upgraded at the same time, as in the reference."""


def size(name: str) -> model.Tree:
    """Return the layer of a size."""
    column = SIZES.index(name)
    services: dict[str, Any] = {}
    for service in catalog.SERVICES:
        for chart in service.charts:
            if chart.replicas:
                values = {"values": _values(chart, column)}
                services.setdefault(service.name, {})[chart.name] = values
    return {"services": services}


def with_volume(base: model.Tree, spec: model.Tree) -> model.Tree:
    """Return the layers below a spec, with one Glance if its volume is the default one.

    Several need a volume that several Nodes mount, which block storage does not have:
    the reference takes one for images only where the spec names it.
    """
    if _at(spec, ("features", "glance", "backends", "file")):
        return base
    alone: model.Tree = {"pod": {"replicas": {"api": 1}}}
    layer = {"services": {"image": {"glance": {"values": alone}}}}
    changed: model.Tree = merge.merge(base, layer)
    return changed


def fit(spec: model.Tree, written: model.Tree) -> model.Tree:
    """Return a spec whose budgets let a Node be drained: one replica less at most.

    written: as the user wrote it; a budget of the user is kept.
    """
    fitted = spec
    for service in catalog.SERVICES:
        for chart in service.charts:
            path = ("services", service.name, chart.name, "values", "pod")
            fitted = merge.merge(fitted, _fitting(spec, written, path, chart))
    return fitted


def _fitting(
    spec: model.Tree, written: model.Tree, path: tuple[str, ...], chart: Chart
) -> model.Tree:
    """Return the budgets of a chart that must be smaller."""
    place = (*path, "lifecycle", "disruption_budget")
    own = _at(written, place) or {}
    replicas = _at(spec, (*path, "replicas")) or {}
    minimum = _at(spec, place) or {}
    budgets: dict[str, Any] = {}
    for name in chart.budgets:
        count = replicas.get(chart.counted.get(name, name))
        least = (minimum.get(name) or {}).get("min_available")
        if name in own or not isinstance(count, int) or not isinstance(least, int):
            continue
        if least > max(count - 1, 0):
            budgets[name] = {"min_available": max(count - 1, 0)}
    for key in reversed(place if budgets else ()):
        budgets = {key: budgets}
    return budgets


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _values(chart: Chart, column: int) -> model.Tree:
    pod: dict[str, Any] = {
        "replicas": {name: counts[column] for name, counts in chart.replicas.items()}
    }
    if chart.budgets:
        minimum = {
            name: {"min_available": counts[column]}
            for name, counts in chart.budgets.items()
        }
        pod["lifecycle"] = {"disruption_budget": minimum}
    if chart.in_parallel:
        daemons = {name: {"max_unavailable": _AT_ONCE} for name in chart.in_parallel}
        upgrades = {"upgrades": {"daemonsets": daemons}}
        pod["lifecycle"] = pod.get("lifecycle", {}) | upgrades
    values: model.Tree = {"pod": pod}
    if chart.pool:
        pool = {**_POOL, "max_overflow": chart.pool.max_overflow[column]}
        sections = {section: dict(pool) for section in chart.pool.sections}
        values["conf"] = {chart.name: sections}
    for path, numbers in chart.settings.items():
        option: Any = numbers[column] if isinstance(numbers, tuple) else numbers
        for part in reversed(path.split(".")):
            option = {part: option}
        values = merge.merge(values, {"conf": option})
    return values
