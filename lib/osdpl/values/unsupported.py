"""Features that are not supported yet: their service is refused, never ignored."""

from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.process import config

_SUPPORTED_DISKS = ("local", "qcow2", "raw", "lvm")

_ANYWHERE = (
    "features.network_policies.enabled",
    "features.ssl.tls_proxy.enabled",
    "features.policies.strict_admin.enabled",
    "features.logging.cadf.enabled",
)
"""Features of every OpenStack service."""

_NODES = {"nova": "compute", "neutron": "networking", "cinder": "block-storage"}
"""Service of the features that nodes may override."""

_ENABLED: dict[str, tuple[str, ...]] = {
    "identity": (
        "features.keystone.keycloak.enabled",
        "features.keystone.federation.openid.enabled",
        "features.keystone.domain_specific_configuration.enabled",
    ),
    "image": (
        "features.glance.signature.enabled",
        "features.glance.backends.cinder",
    ),
    "networking": (
        "features.neutron.dvr.enabled",
        "features.neutron.bgpvpn.enabled",
        "features.neutron.ipsec.enabled",
        "features.neutron.floating_network.enabled",
        "features.neutron.baremetal",
        "features.neutron.extensions.vpnaas.enabled",
        "features.neutron.extensions.dynamic_routing.enabled",
        "features.neutron.extensions.portprober.enabled",
    ),
    "compute": (
        "features.nova.libvirt.tls.enabled",
        "features.nova.console.novnc.tls.enabled",
        "features.nova.images.encryption.enabled",
    ),
    "database": (
        "features.database.backup.enabled",
        "features.database.cleanup.nova.enabled",
        "features.database.cleanup.glance.enabled",
        "features.database.cleanup.horizon.enabled",
    ),
    "dashboard": (
        "features.horizon.themes",
        "features.horizon.motd",
        "features.horizon.default_theme",
    ),
    "messaging": (
        "features.messaging.components_with_dedicated_messaging",
        "features.messaging.notifications.external.enabled",
        "features.stacklight.enabled",
    ),
}
"""Paths of features by service: a service is refused if one of them is set."""


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
    ceph = _ceph(context, service)
    if ceph:
        return _refuse(service, model.Reason.REQUIRES_CEPH, ceph)
    problems = _unsupported(context, service)
    if problems:
        return _refuse(service, model.Reason.UNSUPPORTED, problems)
    return None


def _refuse(
    service: str, reason: model.Reason, problems: list[config.FieldProblem]
) -> model.Refusal:
    return model.Refusal(service=service, reason=reason, problems=tuple(problems))


def _ceph(context: Context, service: str) -> list[config.FieldProblem]:
    """Return the settings of a service that require Ceph."""
    expected = "another backend: Ceph is not supported yet"
    if service == "image" and context.get("features.glance.backends.rbd"):
        backends = ", ".join(context.get("features.glance.backends.rbd"))
        return [
            config.FieldProblem("spec.features.glance.backends.rbd", backends, expected)
        ]
    disks = context.get("features.nova.images.backend")
    if service == "compute" and disks == "ceph":
        expected = f"one of {', '.join(_SUPPORTED_DISKS)}: Ceph is not supported yet"
        return [
            config.FieldProblem("spec.features.nova.images.backend", disks, expected)
        ]
    return []


def _unsupported(context: Context, service: str) -> list[config.FieldProblem]:
    paths = _ENABLED.get(service, ())
    if service in secret_shapes.USERS:
        paths = (*paths, *_ANYWHERE)
    problems = [
        config.FieldProblem(
            f"spec.{path}", _shown(context.get(path)), "no value or false"
        )
        for path in paths
        if context.get(path)
    ]
    problems += _node_overrides(context, service)
    stores = context.get("features.glance.backends.file") or {}
    if service == "image" and len(stores) > 1:
        names = ", ".join(sorted(stores))
        path = "spec.features.glance.backends.file"
        problems.append(config.FieldProblem(path, names, "one backend"))
    backend = context.get("features.neutron.backend")
    if service == "networking" and backend != "ml2":
        problems.append(
            config.FieldProblem("spec.features.neutron.backend", backend, "ml2")
        )
    return problems


def _node_overrides(context: Context, service: str) -> list[config.FieldProblem]:
    """Return the features of a service that nodes with a label override."""
    expected = (
        "no value: features of single nodes are not supported yet; the values of their"
        " DaemonSets are, in spec.nodes.<label>::<value>.services"
    )
    return [
        config.FieldProblem(f"spec.nodes.{label}.features.{feature}", None, expected)
        for label, nodes in context.get("nodes", {}).items()
        for feature in nodes.get("features") or {}
        if _NODES.get(feature) == service
    ]


def _shown(value: Any) -> str | None:
    """Return a flag; anything else may hold secrets."""
    return str(value).lower() if isinstance(value, bool) else None
