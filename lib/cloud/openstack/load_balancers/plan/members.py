"""Compares the members of a pool with the desired ones: one request sets all. Pure.

Members are known by address and port.
"""

import dataclasses
from collections.abc import Sequence

from lib.cloud.openstack.load_balancers.plan import actions, bodies
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.bodies import Context
from lib.cloud.openstack.load_balancers.read.native import Member, Monitor
from lib.cloud.openstack.load_balancers.spec.desired import DesiredMember, DesiredPort
from lib.cloud.steps import Step

SHOWN = 3
"""Members named in a step's reason, at most."""

Key = tuple[str, int]
"""Address and port."""


@dataclasses.dataclass(frozen=True, slots=True)
class PoolState:
    """Observed members and monitor of a pool.

    is_full: the members show everything, not only name, address and port.
    """

    pool_id: str
    members: Sequence[Member]
    monitor: Monitor | None
    is_full: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Differences from the desired members. moved: those in a wrong subnet.

    A member's subnet can't be changed: such a one is taken out, and comes back with
    the next batch.
    """

    pool_id: str
    new: tuple[Key, ...] = ()
    changed: tuple[Key, ...] = ()
    gone: tuple[Key, ...] = ()
    moved: tuple[Key, ...] = ()

    def __bool__(self) -> bool:
        """True when anything differs."""
        return bool(self.new or self.changed or self.gone or self.moved)


def compare(context: Context, port: DesiredPort, state: PoolState) -> Difference:
    """Return which members are to be added, changed and removed."""
    observed, desired = _found(state), _wanted(context, port)
    both = observed.keys() & desired.keys()
    moved = {key for key in both if state.is_full and _is_moved(context, observed[key])}
    is_odd = not state.is_full and _has_other_health_port(context, port, state)
    changed = {
        key
        for key in both - moved
        if is_odd
        or not bodies.is_same_member(
            observed[key],
            bodies.member(context, port, desired[key]),
            is_full=state.is_full,
        )
    }
    return Difference(
        state.pool_id,
        tuple(sorted(desired.keys() - observed.keys())),
        tuple(sorted(changed)),
        tuple(sorted(observed.keys() - desired.keys())),
        tuple(sorted(moved)),
    )


def step(
    context: Context,
    port: DesiredPort,
    state: PoolState,
    difference: Difference,
    path: actions.Path,
    on_pool: Action,
) -> Step:
    """Return the step that sets them: only what differs, where that will do.

    on_pool: an action on the pool.
    """
    desired, observed = _wanted(context, port), _found(state)
    removes = bool(difference.gone or difference.moved)
    additive = not removes and context.can.additive_members
    named = {*difference.new, *difference.changed}
    if not additive:
        named = desired.keys() - set(difference.moved)
    sent = [
        (
            bodies.member(context, port, desired[key])
            if key in difference.new
            else bodies.changed_member(
                context, port, desired[key], observed[key], full=state.is_full
            )
        )
        for key in sorted(named)
    ]
    action = dataclasses.replace(
        on_pool, kind=Kind.MEMBERS, batch=tuple(sent), is_additive=additive
    )
    return actions.change(path, _why(difference), action)


def _found(state: PoolState) -> dict[Key, Member]:
    return {(member.address, member.protocol_port): member for member in state.members}


def _wanted(context: Context, port: DesiredPort) -> dict[Key, DesiredMember]:
    if not port.node_port:
        return {}
    return {
        (member.address, port.node_port): member for member in context.desired.members
    }


def _has_other_health_port(
    context: Context, port: DesiredPort, state: PoolState
) -> bool:
    """Report whether members must be asked elsewhere now, by the monitor they have.

    Their own monitor ports are not known without a list of them; the monitor is
    changed only after they are.
    """
    is_http = state.monitor is not None and state.monitor.type == "HTTP"
    return is_http != bodies.asks_health_port(context, port)


def _is_moved(context: Context, member: Member) -> bool:
    subnet_id = context.member_subnet_id
    return bool(subnet_id and member.subnet_id and member.subnet_id != subnet_id)


def _why(difference: Difference) -> str:
    parts = {
        "to add": difference.new,
        "to change": difference.changed,
        "to remove": difference.gone,
        "in a wrong subnet": difference.moved,
    }
    changes = [f"{verb}: {_some(keys)}" for verb, keys in parts.items() if keys]
    return "members " + "; ".join(changes)


def _some(keys: Sequence[Key]) -> str:
    shown = ", ".join(address for address, _ in keys[:SHOWN])
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return shown + more
