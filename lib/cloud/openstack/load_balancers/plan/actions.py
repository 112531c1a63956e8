"""What the steps of this room do: kind, object and fields of each. Pure.

Rules: HTTP is made of a step last, by `requests`. A preview describes a step by its
action, not by its request.
"""

import dataclasses
import enum
from collections.abc import Mapping

import msgspec

from lib.cloud.openstack.load_balancers.read.native import Listener, Member, Pool
from lib.cloud.steps import Step, Verb

Body = Mapping[str, object]
Path = tuple[str, ...]


class Kind(enum.StrEnum):
    """What kind of object a step is about, as the collections of the API are called.

    Source: Octavia API v2 reference; Networking API v2 reference.
    """

    LOAD_BALANCER = "loadbalancers"
    LISTENER = "listeners"
    POOL = "pools"
    MEMBERS = "members"
    """All members of one pool; the object is the pool."""
    MONITOR = "healthmonitors"
    FLOATING_IP = "floatingips"
    SECURITY_GROUP = "security-groups"
    RULE = "security-group-rules"
    PORT = "ports"


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """What one step does; its verb is the step's.

    id: of the object; empty for a new one. fields: that are set. alternatives: fields
    to be tried when those are refused as impossible. batch: fields of several objects
    that one request sets (members, rules), instead of `fields`. is_additive: members
    that are not in the batch stay. balancer_id: load balancer that is busy afterwards;
    empty: none. revision: the number that the object must still have. cascades: the
    object is deleted with all below it. forgets: the Service leads to no load balancer
    afterwards. fails_over: Octavia builds the machines of the load balancer again.

    The rest describes the step, and is no part of its request:
    observed: the object as it is. listener, pool: that it belongs to. members: of the
    pool, as they are. is_full: of these members all settings are known. later: fields
    of what comes below a new object once it exists.
    """

    kind: Kind
    id: str = ""
    fields: Body = dataclasses.field(default_factory=dict)
    alternatives: tuple[Body, ...] = ()
    batch: tuple[Body, ...] = ()
    is_additive: bool = False
    balancer_id: str = ""
    revision: int | None = None
    cascades: bool = False
    forgets: bool = False
    fails_over: bool = False
    observed: msgspec.Struct | None = dataclasses.field(default=None, compare=False)
    listener: Listener | None = dataclasses.field(default=None, compare=False)
    pool: Pool | None = dataclasses.field(default=None, compare=False)
    members: tuple[Member, ...] = dataclasses.field(default=(), compare=False)
    is_full: bool = dataclasses.field(default=True, compare=False)
    later: Body = dataclasses.field(default_factory=dict, compare=False)


_MADE_TWICE = frozenset({Kind.LOAD_BALANCER, Kind.FLOATING_IP, Kind.SECURITY_GROUP})
"""Nothing keeps OpenStack from creating two of them."""


def create(path: Path, why: str, action: Action) -> Step:
    """Create an object; below a load balancer it waits for the gate."""
    is_repeatable = action.kind not in _MADE_TWICE
    return _step(Verb.CREATE, path, why, action, is_repeatable=is_repeatable)


def change(path: Path, why: str, action: Action) -> Step:
    """Update an object."""
    return _step(Verb.CHANGE, path, why, action)


def delete(path: Path, why: str, action: Action) -> Step:
    """Delete an object; one that is not found counts as deleted."""
    return _step(Verb.DELETE, path, why, action)


def ungated(step: Step) -> Step:
    """Return the step as one that does not wait for a gate."""
    return dataclasses.replace(step, is_gated=False)


def of(step: Step) -> Action:
    """Return what a step of this room does."""
    if not isinstance(step.native, Action):
        raise TypeError("the step is of another provider package")
    return step.native


def _step(
    verb: Verb, path: Path, why: str, action: Action, *, is_repeatable: bool = True
) -> Step:
    is_gated = bool(action.balancer_id)
    return Step(verb, path, why, action, is_gated, is_repeatable)
