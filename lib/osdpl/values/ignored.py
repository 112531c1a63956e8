"""Fields of a spec that have no effect; they are reported, never ignored silently.

A field has no effect if no service reads it, or if its service or chart is not
installed. Details of a feature that is switched off are not reported. A service that is
desired and not supported is refused instead, see lib/osdpl/values/unsupported.py.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lib.osdpl.api import schema, schema_types
from lib.osdpl.values import catalog, graph
from lib.osdpl.values.services import compute

UNREAD = ("artifacts.binary_base_url", "migration")
"""Fields that no service reads."""
UNREAD_FEATURES = ("logging.horizon", "telemetry")

_UNSUPPORTED = {
    "barbican": "key-manager",
    "cinder": "block-storage",
    "cloudprober": "cloudprober",
    "designate": "dns",
    "ironic": "baremetal",
    "manila": "shared-file-system",
    "masakari": "instance-ha",
    "octavia": "load-balancer",
}
"""Service of the features whose service is not supported yet."""
_BY_CHART = ("policies", "logging", "database.cleanup")
"""Features that have one key per chart, and others."""
_OF_NO_CHART = ("strict_admin", "cadf")
_NOT_INSTALLED = {
    "ceph-adapter-rook": "object-storage",
    "aodh": "alarming",
    "barbican": "key-manager",
    "ceilometer": "metering",
    "ceph-rgw": "object-storage",
    "cinder": "block-storage",
    "designate": "dns",
    "gnocchi": "metric",
    "heat": "orchestration",
    "ironic": "baremetal",
    "manila": "shared-file-system",
    "masakari": "instance-ha",
    "octavia": "load-balancer",
    "powerdns": "dns",
    "redis": "redis",
    "tempest": "tempest",
}
"""Service of the charts that are not supported yet."""


def fields(spec: Mapping[str, Any], services: Collection[str]) -> tuple[str, ...]:
    """Return a text per field without effect: its path and why it has none.

    spec: as the user wrote it. services: the desired ones.
    """
    reasons = {
        **dict(_unread(spec)),
        **dict(_of_absent_services(spec, services)),
        **dict(_of_absent_charts(spec, services)),
        **dict(_of_choices(spec)),
        **dict(_of_open_objects(spec, schema.spec(), "")),
    }
    return tuple(f"spec.{path}: {why}" for path, why in sorted(reasons.items()))


def _at(spec: Mapping[str, Any], path: str) -> Any:
    node: Any = spec
    for key in path.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node


def _below(spec: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    node = _at(spec, path)
    return node if isinstance(node, Mapping) else {}


def _unread(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path in (*UNREAD, *(f"features.{feature}" for feature in UNREAD_FEATURES)):
        if _at(spec, path) not in (None, {}, ""):
            yield path, "this field is not supported yet"


def _features() -> dict[str, str]:
    """Return the service of each feature; the schema requires nova and neutron."""
    return _UNSUPPORTED | {
        feature: service.name
        for service in catalog.SERVICES
        for feature in service.features
    }


def _absent(service: str) -> str:
    return f"the service {service} is not in spec.features.services"


def _of_absent_services(
    spec: Mapping[str, Any], services: Collection[str]
) -> Iterator[tuple[str, str]]:
    for feature, service in _features().items():
        if service not in services and _below(spec, f"features.{feature}"):
            yield f"features.{feature}", _absent(service)
    for service in _below(spec, "services"):
        if service not in services:
            yield f"services.{service}", _absent(service)
    for label, nodes in _below(spec, "nodes").items():
        for service in nodes.get("services") or {}:
            if service not in services:
                yield f"nodes.{label}.services.{service}", _absent(service)
        if (
            "cinder" in (nodes.get("features") or {})
            and "block-storage" not in services
        ):
            yield f"nodes.{label}.features.cinder", _absent("block-storage")


def _of_absent_charts(
    spec: Mapping[str, Any], services: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the settings of charts that belong to no desired service."""
    owners = _NOT_INSTALLED | {
        chart: service for service, charts in graph.CHARTS.items() for chart in charts
    }
    groups = [f"features.{chart}" for chart in _BY_CHART]
    groups += [f"common.{group}.releases" for group in ("openstack", "infra")]
    for group in groups:
        for chart in _below(spec, group):
            if chart == "version" or chart in _OF_NO_CHART:
                continue
            service = owners.get(chart)
            if service is None:
                yield f"{group}.{chart}", f"the chart {chart} is not installed"
            elif service not in services:
                yield f"{group}.{chart}", _absent(service)


def _of_open_objects(
    node: Any, known: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    """Yield fields that the reference accepts beside its own, and does not read."""
    if isinstance(node, list):
        for number, entry in enumerate(node):
            yield from _of_open_objects(
                entry, known.get("items") or {}, f"{path}[{number}]"
            )
    if not isinstance(node, Mapping):
        return
    properties = known.get("properties") or {}
    others = known.get("additionalProperties")
    for key, value in node.items():
        below = f"{path}.{key}" if path else str(key)
        if key in properties:
            yield from _of_open_objects(value, properties[key], below)
        elif isinstance(others, Mapping):
            yield from _of_open_objects(value, others, below)
        elif properties and known.get(schema_types.PRESERVE):
            yield below, "this field is unknown, and nothing reads it"


def _of_choices(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings of an alternative that is not the chosen one."""
    spice = "features.nova.console.spice.enabled"
    console = compute.console_kind(_below(spec, "features.nova.console"))
    if _at(spec, spice) and console != "spice":
        yield spice, "noVNC is enabled, and the chart has one kind of console"
    backend = _at(spec, "features.nova.images.backend")
    if backend != "lvm" and _below(spec, "features.nova.images.lvm"):
        yield "features.nova.images.lvm", "the backend of images is not lvm"
