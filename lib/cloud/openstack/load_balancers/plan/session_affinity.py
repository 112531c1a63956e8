"""A Service's sessionAffinity: how clients are kept at their member of a pool. Pure."""

from collections.abc import Mapping

from lib.cloud.openstack.load_balancers.read.native import Pool
from lib.cloud.openstack.load_balancers.spec.desired import Desired

_FIELD = "session_persistence"
_BY_ADDRESS: Mapping[str, object] = {"type": "SOURCE_IP"}


def of_new_pool(desired: Desired) -> dict[str, object]:
    """Return the field with which a pool is created; none without affinity."""
    return {_FIELD: dict(_BY_ADDRESS)} if desired.has_affinity else {}


def changes(desired: Desired, pool: Pool) -> dict[str, object]:
    """Return the field that brings a pool to what is desired; none if it is so."""
    if (pool.session_persistence is not None) == desired.has_affinity:
        return {}
    return {_FIELD: dict(_BY_ADDRESS) if desired.has_affinity else None}
