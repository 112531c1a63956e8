"""Presets: the services of a cloud and the defaults of its features."""

from typing import Any

from lib.osdpl.api import model

CORE = (
    "database",
    "messaging",
    "memcached",
    "coordination",
    "identity",
    "image",
    "placement",
    "networking",
    "compute",
    "dashboard",
)
"""The reference's preset also has ingress and app-gateway; not supported yet."""

_COMPUTE = (
    *CORE,
    "block-storage",
    "orchestration",
    "load-balancer",
    "dns",
    "key-manager",
)

_SERVICES = {"core": CORE, "compute": _COMPUTE, "compute-tf": _COMPUTE}


def preset(name: str) -> model.Tree:
    """Return the lowest layer of a spec."""
    networks = {"compute-tf": "tungstenfabric"}
    features: dict[str, Any] = {
        "services": list(_SERVICES[name]),
        "neutron": {"backend": networks.get(name, "ml2")},
        "nova": {
            "images": {"backend": "local"},
            "console": {"novnc": {"enabled": True}, "spice": {"enabled": False}},
            "allocation_ratios": {"cpu": 8.0, "disk": 1.6, "ram": 1.0},
        },
    }
    return {
        "region_name": "RegionOne",
        "internal_domain_name": "cluster.local",
        "features": features,
    }
