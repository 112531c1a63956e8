"""Presets: the services of a cloud and the defaults of its features."""

import copy
from collections.abc import Iterator
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import catalog

CORE = tuple(service.name for service in catalog.SERVICES if service.preset == "core")
"""The reference's preset also has ingress and app-gateway; not supported yet."""

_OF_COMPUTE = (
    "block-storage",
    "orchestration",
    "load-balancer",
    "dns",
    "key-manager",
)
"""Services of the reference's preset, whether they are supported or not."""
_COMPUTE = tuple(
    dict.fromkeys((*(service.name for service in catalog.SERVICES), *_OF_COMPUTE))
)

_SERVICES = {"core": CORE, "compute": _COMPUTE, "compute-tf": _COMPUTE}


NOT_APPLIED = {
    "features.network_policies": "network policies",
    "features.database.cleanup.nova": "the clean-up of Nova's database",
    "features.stacklight": "users for StackLight",
}
"""What the reference's presets turn on, and this program does not support.

Source: rockoon/templates/preset of the reference."""
WITHOUT_TLS = (
    "the certificate of features.ssl.public_endpoints is in the values; TLS is"
    " terminated by an ingress controller or gateway of your own"
)


def not_applied(spec: model.Tree) -> Iterator[str]:
    """Yield a text per default of the reference's presets that is not applied here.

    spec: as the user wrote it. A feature with `enabled` is a decision of the user.
    """
    features = spec.get("features") or {}
    left = []
    for path, name in NOT_APPLIED.items():
        node: Any = features
        for key in path.split(".")[1:]:
            node = (node if isinstance(node, dict) else {}).get(key)
        if not isinstance(node, dict) or "enabled" not in node:
            left.append(f"{name} ({path}.enabled)")
    if left:
        yield f"the reference's presets also turn on {', '.join(left)}: not supported"
    if (features.get("ssl") or {}).get("public_endpoints"):
        yield WITHOUT_TLS


def preset(name: str) -> model.Tree:
    """Return the lowest layer of a spec."""
    features: dict[str, Any] = {"services": list(_SERVICES[name])}
    for service in catalog.SERVICES:
        features |= copy.deepcopy(service.defaults)
    if name == "compute-tf":
        features["neutron"]["backend"] = "tungstenfabric"
    return {
        "region_name": "RegionOne",
        "internal_domain_name": "cluster.local",
        "features": features,
    }
