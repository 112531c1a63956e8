"""Layers of the spec: preset, size, and what the user wrote."""

from collections.abc import Mapping
from typing import Any

from lib.osdpl.api import merge, model, schema_features
from lib.osdpl.values import graph, presets, sizes
from lib.process import config


def effective(spec: model.Tree) -> model.Tree:
    """Return the spec with the layers below it, preset first, then size.

    Raises:
        ConfigError: layers hold different types at a path.
    """
    config.require(_override_problems(spec))
    base = merge.merge(presets.preset(spec["preset"]), sizes.size(spec["size"]))
    try:
        base = sizes.with_volume(base, spec)
        merged: model.Tree = merge.merge(base, spec, "spec", removes=True)
    except merge.MergeError as error:
        raise config.ConfigError([problem_of(error)]) from None
    return sizes.fit(merged, spec)


def services(spec: model.Tree) -> tuple[str, ...]:
    """Return the services of an effective spec."""
    return tuple(spec["features"]["services"])


def problem_of(error: merge.MergeError) -> config.FieldProblem:
    """Return the problem of two layers that hold different types at a path."""
    expected = f"the type of the layer below, {error.base}, not {error.override}"
    return config.FieldProblem(error.path, None, expected)


def _override_problems(spec: Mapping[str, Any]) -> list[config.FieldProblem]:
    """Return the services and charts of spec.services that do not exist."""
    problems: list[config.FieldProblem] = []
    for service, charts in (spec.get("services") or {}).items():
        path = f"spec.services.{service}"
        if service not in schema_features.SERVICES:
            expected = f"a service: {', '.join(sorted(schema_features.SERVICES))}"
            problems.append(config.FieldProblem(path, None, expected))
        elif not isinstance(charts, dict):
            problems.append(config.FieldProblem(path, None, "an object of charts"))
        elif service in graph.CHARTS:
            problems += _chart_problems(path, charts, graph.CHARTS[service])
    return problems


def _chart_problems(
    path: str, charts: Mapping[str, Any], known: tuple[str, ...]
) -> list[config.FieldProblem]:
    problems = [
        config.FieldProblem(f"{path}.{chart}", None, f"a chart: {', '.join(known)}")
        for chart in charts
        if chart not in known
    ]
    for chart, overrides in charts.items():
        if chart in known and not _is_values(overrides):
            expected = "an object with the field values, an object"
            problems.append(config.FieldProblem(f"{path}.{chart}", None, expected))
    return problems


def _is_values(overrides: object) -> bool:
    if not isinstance(overrides, dict) or set(overrides) - {"values"}:
        return False
    return isinstance(overrides.get("values", {}), dict)
