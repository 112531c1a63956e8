"""All there is of a project's load balancers at two times, and what has changed.

`balancers.py` reads some of it; here nothing may be missing.
"""

import concurrent.futures
import dataclasses
from collections.abc import Iterator, Mapping

import openstack.connection

from tests.harness.openstack import balancers
from tests.harness.openstack.balancers import Json

Inventory = Mapping[str, Mapping[str, Json]]
"""Kind, then id: every field as the cloud shows it."""

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


def take(connection: openstack.connection.Connection) -> Inventory:
    """Read everything of the connection's project.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = {
            kind: pool.submit(balancers.listed, connection, kind)
            for kind in balancers.KINDS
        }
        objects = {kind: future.result() for kind, future in asked.items()}
        lists = pool.map(
            lambda id_: balancers.members(connection, id_), objects[balancers.POOLS]
        )
        members = {str(member["id"]): member for some in lists for member in some}
    return {**objects, balancers.MEMBERS: members}


def changes(before: Inventory, after: Inventory) -> tuple[Change, ...]:
    """Return what differs, thing by thing and field by field.

    Neither what passes by itself counts, nor the order of lists: it says nothing in
    these APIs.
    """
    kinds = sorted(before.keys() | after.keys())
    return tuple(
        change
        for kind in kinds
        for change in _changes(kind, before.get(kind, {}), after.get(kind, {}))
    )


def _changes(
    kind: str, before: Mapping[str, Json], after: Mapping[str, Json]
) -> Iterator[Change]:
    for id_ in sorted(before.keys() | after.keys()):
        old, new = before.get(id_), after.get(id_)
        if old is None or new is None:
            yield Change(kind, id_, "", old and _named(old), new and _named(new))
            continue
        for field in sorted((old.keys() | new.keys()) - _PASSING):
            if _still(old.get(field)) != _still(new.get(field)):
                yield Change(kind, id_, field, old.get(field), new.get(field))


def _named(fields: Json) -> object:
    return fields.get("name") or fields.get("floating_ip_address") or fields["id"]


def _still(value: object) -> object:
    match value:
        case list():
            return sorted(map(_still, value), key=repr)
        case dict():
            kept = value.keys() - _PASSING
            return {key: _still(value[key]) for key in sorted(kept)}
    return value
