"""Differences between the providers of Octavia that matter to plans: pure.

A load balancer keeps the provider it was created with, whatever cloud.conf names now.

Source: Octavia, "Available Providers" and the feature matrix of providers;
octavia/api/drivers/amphora_driver/v2/driver.py (_validate_pool_algorithm).
"""

from collections.abc import Sequence

from lib.cloud.openstack.config import settings

OVN = "ovn"
_ALIASES = {"octavia": "amphora"}
"""Providers with two names."""
_OF_AMPHORA = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP")
_ALGORITHMS = {
    OVN: (settings.OVN_LB_METHOD,),
    "amphora": _OF_AMPHORA,
    "amphorav2": _OF_AMPHORA,
}


def canonical(name: str | None) -> str:
    """Return the name of a provider; empty: it is not known."""
    return _ALIASES.get(name or "", name or "")


def algorithms(provider: str) -> Sequence[str]:
    """Return the algorithms of pools that a provider has; all, if it is not known."""
    return _ALGORITHMS.get(canonical(provider), settings.LB_METHODS)
