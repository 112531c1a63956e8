"""All that makes up the load balancers of a project, as the cloud shows it.

Read past every client that is tested, and raw, so that nothing is lost on the way.
"""

import concurrent.futures
import dataclasses
from collections.abc import Iterator, Mapping
from typing import cast

import openstack.connection

from lib.lab.openstack import cloud

TIMEOUT_S = 60.0
_OCTAVIA = {
    "load balancer": ("lbaas/loadbalancers", "loadbalancers"),
    "listener": ("lbaas/listeners", "listeners"),
    "pool": ("lbaas/pools", "pools"),
    "monitor": ("lbaas/healthmonitors", "healthmonitors"),
}
_NEUTRON = {
    "floating IP": ("v2.0/floatingips", "floatingips"),
    "security group": ("v2.0/security-groups", "security_groups"),
    "port": ("v2.0/ports", "ports"),
}
_PASSING = frozenset(
    {
        "updated_at",
        "provisioning_status",
        "operating_status",
        "revision_number",
        "status",
    }
)
"""Fields that change by themselves, or with every write of any other."""

Fields = Mapping[str, object]
Snapshot = Mapping[tuple[str, str], Fields]
"""The fields of each thing, by its kind and id."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One field that is otherwise than before; None: the thing is not there."""

    kind: str
    id: str
    field: str
    before: object
    after: object

    @property
    def is_addition(self) -> bool:
        """True when a list has all that it had, and more."""
        if not (isinstance(self.before, list) and isinstance(self.after, list)):
            return False
        return set(self.before) < set(self.after)


def snapshot(connection: openstack.connection.Connection) -> Snapshot:
    """Read everything of the connection's project.

    Raises:
        LabError: the cloud does not answer.
    """
    with cloud.sentences(), concurrent.futures.ThreadPoolExecutor(8) as pool:
        lists = {
            kind: pool.submit(_listed, connection, kind)
            for kind in (*_OCTAVIA, *_NEUTRON)
        }
        found = {kind: one.result() for kind, one in lists.items()}
        pools = [str(one["id"]) for one in found["pool"]]
        members = pool.map(lambda one: _members(connection, one), pools)
        found["member"] = [one for some in members for one in some]
    return {
        (kind, str(one["id"])): {k: v for k, v in one.items() if k not in _PASSING}
        for kind, things in found.items()
        for one in things
    }


def changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Say what differs, thing by thing and field by field."""
    return tuple(_changes(before, after))


def _changes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    for kind, id_ in sorted(before.keys() | after.keys()):
        old, new = before.get((kind, id_)), after.get((kind, id_))
        if old is None or new is None:
            yield Change(kind, id_, "", old and _named(old), new and _named(new))
            continue
        for field in sorted(old.keys() | new.keys()):
            if _plain(old.get(field)) != _plain(new.get(field)):
                yield Change(kind, id_, field, old.get(field), new.get(field))


def _named(fields: Fields) -> object:
    return fields.get("name") or fields.get("floating_ip_address") or fields["id"]


def _plain(value: object) -> object:
    """Bring lists, whose order says nothing in these APIs, into one order."""
    return sorted(map(repr, value)) if isinstance(value, list) else value


def _listed(connection: openstack.connection.Connection, kind: str) -> list[Fields]:
    if kind in _OCTAVIA:
        path, key = _OCTAVIA[kind]
        return _got(connection, "load-balancer", f"v2.0/{path}", key)
    path, key = _NEUTRON[kind]
    project = connection.current_project_id
    return _got(connection, "network", f"{path}?project_id={project}", key)


def _members(connection: openstack.connection.Connection, pool_id: str) -> list[Fields]:
    path = f"v2.0/lbaas/pools/{pool_id}/members"
    return _got(connection, "load-balancer", path, "members")


def _got(
    connection: openstack.connection.Connection, service: str, path: str, key: str
) -> list[Fields]:
    root = str(connection.session.get_endpoint(service_type=service)).rstrip("/")
    root = root.removesuffix("/v2.0").removesuffix("/v2")
    answer = connection.session.get(f"{root}/{path}", timeout=TIMEOUT_S)
    return cast("list[Fields]", answer.json()[key])
