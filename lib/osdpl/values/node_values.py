"""Values of single DaemonSets on nodes with a label: spec.nodes.<label>.services.

Charts of openstack-helm render a second DaemonSet for the nodes with the label. libvirt
can override any value there; nova and neutron can override their configuration (the
value `conf`) only, and openvswitch nothing.

Source: helm-toolkit 2025.1.0 to 2026.1.0, templates/utils/_daemonset_overrides.tpl and
_daemonset_overrides_root.tpl; the spec is that of the reference (rockoon/layers.py).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lib.osdpl.api import merge, model
from lib.osdpl.values import catalog
from lib.osdpl.values.context import Context
from lib.process import config

SEPARATOR = "::"
"""Between key and value of a label in spec.nodes."""


def values(context: Context, service: str, chart: str) -> model.Tree:
    """Return the values with which a chart overrides its DaemonSets on nodes.

    Raises:
        ConfigError: the chart has no such DaemonSet, or cannot override a value.
    """
    problems: list[config.FieldProblem] = []
    merged: model.Tree = {}
    for label, nodes in context.get("nodes", {}).items():
        charts = (nodes.get("services") or {}).get(service) or {}
        path = f"spec.nodes.{label}.services.{service}.{chart}"
        for daemonset, override in (charts.get(chart) or {}).items():
            below = f"{path}.{daemonset}"
            invalid = tuple(_problems(below, label, chart, daemonset, override))
            problems += invalid
            if not invalid:
                layer = _layer(label, chart, daemonset, override.get("values") or {})
                merged = merge.merge(merged, layer, path)
    config.require(problems)
    return merged


def _problems(
    path: str, label: str, chart: str, daemonset: str, override: Mapping[str, Any]
) -> Iterator[config.FieldProblem]:
    key, separator, value = label.partition(SEPARATOR)
    if not (key and separator and value) or SEPARATOR in value:
        expected = f"<label>{SEPARATOR}<value>, such as rack{SEPARATOR}a"
        yield config.FieldProblem("spec.nodes", label, expected)
    known = catalog.CHARTS[chart].daemonsets
    if daemonset not in known:
        expected = f"a DaemonSet of the chart: {', '.join(known) or 'it has none'}"
        yield config.FieldProblem(path, None, expected)
        return
    values = override.get("values")
    if values is not None and not isinstance(values, dict):
        yield config.FieldProblem(f"{path}.values", None, "an object")
        return
    if catalog.CHARTS[chart].has_conf_only:
        expected = "conf: the chart overrides nothing else on single nodes"
        for name in sorted(set(values or {}) - {"conf"}):
            yield config.FieldProblem(f"{path}.values.{name}", None, expected)


def _layer(
    label: str, chart: str, daemonset: str, override: Mapping[str, Any]
) -> model.Tree:
    if not catalog.CHARTS[chart].has_conf_only:
        labels: Any = {label: {"values": dict(override)}}
        return {"overrides": {daemonset: {"labels": labels}}}
    key, _, value = label.partition(SEPARATOR)
    selector = {"key": key, "values": [value]}
    labels = [{"label": selector, "conf": dict(override.get("conf") or {})}]
    return {"conf": {"overrides": {daemonset: {"labels": labels}}}}
