"""Features that are not supported yet: their service is refused, never ignored."""

from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import catalog
from lib.osdpl.values.context import Context
from lib.osdpl.values.service import Service
from lib.process import config

_ANYWHERE = (
    "features.network_policies.enabled",
    "features.ssl.tls_proxy.enabled",
    "features.policies.strict_admin.enabled",
    "features.logging.cadf.enabled",
)
"""Features of every OpenStack service."""


def refusal(
    context: Context, service: str, services: tuple[str, ...]
) -> model.Refusal | None:
    """Return why a service can't be rendered, if it can't.

    services: the supported ones, for the message.
    """
    if service not in services:
        expected = f"a supported service: {', '.join(sorted(services))}"
        problem = config.FieldProblem("spec.features.services", service, expected)
        return _refuse(service, model.Reason.UNSUPPORTED, [problem])
    record = catalog.BY_NAME[service]
    ceph = list(record.ceph(context))
    if ceph:
        return _refuse(service, model.Reason.REQUIRES_CEPH, ceph)
    problems = _unsupported(context, record)
    if problems:
        return _refuse(service, model.Reason.UNSUPPORTED, problems)
    return None


def _refuse(
    service: str, reason: model.Reason, problems: list[config.FieldProblem]
) -> model.Refusal:
    return model.Refusal(service=service, reason=reason, problems=tuple(problems))


_NOT_YET = "no value or false: this feature is not supported yet"


def _unsupported(context: Context, service: Service) -> list[config.FieldProblem]:
    problems = [
        config.FieldProblem(f"spec.{path}", _shown(context.get(path)), _NOT_YET)
        for path in (*service.unsupported, *(_ANYWHERE if service.user else ()))
        if context.get(path)
    ]
    problems += _node_overrides(context, service)
    return [*problems, *service.problems(context)]


def _node_overrides(context: Context, service: Service) -> list[config.FieldProblem]:
    """Return the features of a service that nodes with a label override."""
    expected = (
        "no value: features of single nodes are not supported yet; the values of their"
        " DaemonSets are, in spec.nodes.<label>::<value>.services"
    )
    return [
        config.FieldProblem(f"spec.nodes.{label}.features.{feature}", None, expected)
        for label, nodes in context.get("nodes", {}).items()
        for feature in nodes.get("features") or {}
        if feature in service.node_features
    ]


def _shown(value: Any) -> str | None:
    """Return a flag; anything else may hold secrets."""
    return str(value).lower() if isinstance(value, bool) else None
