"""Presets: the services of a cloud and the defaults of its features."""

import copy
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
