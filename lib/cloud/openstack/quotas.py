"""Quotas and their use, as each service reports them; pure."""

from collections.abc import Mapping

import msgspec

from lib.cloud.checkup import Quota
from lib.process import decoding

_NOVA = {
    "servers": ("totalInstancesUsed", "maxTotalInstances"),
    "cores": ("totalCoresUsed", "maxTotalCores"),
    "RAM (MiB)": ("totalRAMUsed", "maxTotalRAMSize"),
    "server groups": ("totalServerGroupsUsed", "maxServerGroups"),
}
_CINDER = {
    "volumes": ("totalVolumesUsed", "maxTotalVolumes"),
    "snapshots": ("totalSnapshotsUsed", "maxTotalSnapshots"),
    "volumes (GiB)": ("totalGigabytesUsed", "maxTotalVolumeGigabytes"),
}
"""Source, both: "Show Rate And Absolute Limits" of the Compute and Block Storage APIs:
by resource, the keys of use and limit."""
_NEUTRON = {
    "port": "ports",
    "floatingip": "floating IPs",
    "security_group": "security groups",
    "security_group_rule": "security group rules",
    "network": "networks",
    "subnet": "subnets",
    "router": "routers",
}
"""Source: Networking API v2, "Quotas details extension"."""


class _Limits(msgspec.Struct, frozen=True):
    absolute: Mapping[str, int | None]


class _LimitsAnswer(msgspec.Struct, frozen=True):
    limits: _Limits


class _Detail(msgspec.Struct, frozen=True):
    used: int
    limit: int
    reserved: int = 0


class _Details(msgspec.Struct, frozen=True):
    quota: Mapping[str, _Detail]


class _Balancers(msgspec.Struct, frozen=True):
    """Source: octavia api/v2/types/quotas.py: the latter is deprecated since Rocky."""

    loadbalancer: int | None = None
    load_balancer: int | None = None


class _BalancersAnswer(msgspec.Struct, frozen=True):
    quota: _Balancers


class _Named(msgspec.Struct, frozen=True):
    id: str


class _LoadBalancers(msgspec.Struct, frozen=True):
    loadbalancers: tuple[_Named, ...]


def of_nova(body: bytes) -> tuple[Quota, ...]:
    """Read GET /limits of Nova.

    Raises:
        msgspec.DecodeError: it is malformed; so with the others here.
    """
    return _absolute(body, _NOVA)


def of_cinder(body: bytes) -> tuple[Quota, ...]:
    """Read GET /limits of Cinder."""
    return _absolute(body, _CINDER)


def of_neutron(body: bytes) -> tuple[Quota, ...]:
    """Read GET /quotas/{project}/details of Neutron."""
    quota = decoding.decode(body, _Details).quota
    return tuple(
        Quota(name, detail.used + detail.reserved, _limit(detail.limit))
        for key, name in _NEUTRON.items()
        if (detail := quota.get(key)) is not None
    )


def of_octavia(quota: bytes, balancers: bytes) -> tuple[Quota, ...]:
    """Read GET /lbaas/quotas/{project}, which has no usage, and the list."""
    limits = decoding.decode(quota, _BalancersAnswer).quota
    listed = decoding.decode(balancers, _LoadBalancers).loadbalancers
    limit = limits.load_balancer
    if limits.loadbalancer is not None:
        limit = limits.loadbalancer
    return (Quota("load balancers", len(listed), _limit(limit)),)


def _absolute(body: bytes, keys: Mapping[str, tuple[str, str]]) -> tuple[Quota, ...]:
    absolute = decoding.decode(body, _LimitsAnswer).limits.absolute
    return tuple(
        Quota(name, absolute[used] or 0, _limit(absolute[most]))
        for name, (used, most) in keys.items()
        if used in absolute and most in absolute
    )


def _limit(value: int | None) -> int | None:
    """-1 is "no limit" everywhere; Octavia says null for its default, too."""
    return None if value is None or value < 0 else value
