"""Renders the desired releases of an OpenStackDeployment."""

import dataclasses
from typing import Any

from lib.osdpl.api import confidential, hashing, merge, model, schema, versions
from lib.osdpl.values import (
    catalog,
    contract,
    credentials,
    graph,
    ignored,
    layers,
    node_values,
    presets,
    unsupported,
)
from lib.osdpl.values.context import Context
from lib.process import config

DEFAULT_CHART_VERSION = "2026.1.0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a render is made from.

    deployment: its spec has no references any more. written: the spec with them; what
    is shown is made from it. None: it has none. repository_default: source of the
    charts when the spec names none.
    """

    deployment: model.Deployment
    credentials: credentials.Credentials
    repository_default: model.Source | None = None
    written: model.Tree | None = dataclasses.field(default=None, repr=False)


def render(inputs: Inputs) -> model.Rendered:
    """Return the desired releases, and the services that can't be rendered.

    Raises:
        ConfigError: nothing can be rendered.
    """
    spec = layers.effective(inputs.deployment.spec)
    version = spec["openstack_version"]
    context = Context(
        namespace=inputs.deployment.namespace,
        spec=spec,
        credentials=inputs.credentials,
        release=versions.image_release(version),
        endpoints=catalog.ENDPOINTS,
        users=catalog.USERS,
    )
    shown = inputs.deployment.spec if inputs.written is None else inputs.written
    written = dataclasses.replace(context, spec=layers.effective(shown))
    bundles: list[model.Bundle] = []
    refusals: list[model.Refusal] = []
    for service in layers.services(spec):
        refused = unsupported.refusal(written, service, tuple(graph.RELEASES))
        result = refused or _service(context, inputs.repository_default, service)
        if isinstance(result, model.Refusal):
            refusals.append(result)
        else:
            bundles.append(result)
    return model.Rendered(
        bundles=tuple(bundles),
        refusals=tuple(refusals),
        openstack_version=version,
        fingerprint=hashing.digest(confidential.masked(written.spec)),
        ignored=ignored.fields(shown, layers.services(spec)),
        defaults=tuple(presets.not_applied(shown)),
    )


def _service(
    context: Context, default: model.Source | None, service: str
) -> model.Bundle | model.Refusal:
    try:
        releases = tuple(
            _release(context, default, service, name, chart)
            for name, chart in graph.RELEASES[service]
        )
    except merge.MergeError as error:
        problems: tuple[config.FieldProblem, ...] = (layers.problem_of(error),)
    except config.ConfigError as error:
        problems = tuple(
            problem
            for problem in error.problems
            if isinstance(problem, config.FieldProblem)
        )
    else:
        name = f"openstack-{service}"
        return model.Bundle(name=name, service=service, releases=releases)
    reason = model.Reason.INVALID_VALUES
    return model.Refusal(service=service, reason=reason, problems=problems)


def _release(
    context: Context,
    default: model.Source | None,
    service: str,
    name: str,
    chart: str,
) -> model.Release:
    group = "openstack" if chart in schema.OPENSTACK_CHARTS else "infra"
    reference = _chart(context, default, group, chart)
    field = f"spec.common.{group}.releases.version"
    generations = contract.generations(field, reference.version)
    template = catalog.CHARTS[chart].values(context, contract.load(chart, generations))
    values = _values(context, group, service, chart, template)
    images_base = str(context.get("artifacts.images_base_url", ""))
    return model.Release(
        name=name,
        chart=reference,
        namespace=context.namespace,
        service=service,
        values=values,
        gates=graph.gates(name, layers.services(context.spec)),
        openstack_version=context.spec["openstack_version"],
        images_base=images_base,
        contents=hashing.contents(values, has_images=not images_base),
    )


def _values(
    context: Context, group: str, service: str, chart: str, template: model.Tree
) -> model.Tree:
    """Return the values: template, common, those of the service, those of nodes.

    Raises:
        MergeError: layers hold different types at a path.
        ConfigError: a chart cannot override a value on single nodes.
    """
    values: model.Tree = template
    for path in (
        "common.charts.values",
        "common.charts.releases.values",
        f"common.{group}.values",
        f"services.{service}.{chart}.values",
    ):
        values = merge.merge(
            values, context.get(path) or {}, f"spec.{path}", removes=True
        )
    nodes = node_values.values(context, service, chart)
    merged: model.Tree = merge.merge(values, nodes, "spec.nodes", removes=True)
    return merged


def _chart(
    context: Context, default: model.Source | None, group: str, chart: str
) -> model.ChartRef:
    """Return the chart: repository, version, and the digest if the spec pins it."""
    pins: dict[str, Any] = context.get(f"common.{group}.releases", {})
    own: dict[str, Any] = pins.get(chart, {})
    version = own.get("version") or pins.get("version") or DEFAULT_CHART_VERSION
    # The digest of a group would be that of a single chart.
    return model.ChartRef(
        repository=_repository(context, default, group),
        name=chart,
        version=version,
        digest=own.get("digest"),
    )


def _repository(
    context: Context, default: model.Source | None, group: str
) -> model.Source:
    """Return the repository of a group: the named one, the only one, the default.

    Raises:
        ConfigError: none exists of that name, or none at all.
    """
    path = "common.charts.repositories"
    sources = {
        repository["name"]: model.Source(name=repository["name"], url=repository["url"])
        for repository in context.get(path, [])
    }
    name = context.get(f"common.{group}.repo")
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    if name is None and not sources and default is not None:
        return default
    if name in sources:
        return sources[name]
    expected = f"a name of spec.{path}: {', '.join(sources) or 'it is empty'}"
    problem = config.FieldProblem(f"spec.common.{group}.repo", name, expected)
    raise config.ConfigError([problem])
