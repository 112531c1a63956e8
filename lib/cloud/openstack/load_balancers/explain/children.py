"""Describes steps on listeners, pools, members and monitors: pure."""

import typing
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud.explained import FieldChange, Touched
from lib.cloud.openstack.load_balancers.explain import differences
from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Action, Body, Kind, Path
from lib.cloud.openstack.load_balancers.read.native import Pool
from lib.cloud.steps import Step, Verb


def of_step(step: Step) -> Iterator[Touched]:
    """Describe a step on something below a load balancer."""
    action = actions.of(step)
    if step.verb is Verb.CREATE:
        yield from _created(step, action)
        return
    changes = _members(action) if action.kind is Kind.MEMBERS else ()
    if step.verb is Verb.CHANGE:
        changes = changes or differences.changed(action)
    yield Touched(_at(step, action), step.verb, changes, "" if changes else step.why)
    if step.verb is Verb.DELETE and isinstance(action.observed, Pool):
        yield from _gone_with_pool(step, action, action.observed)


def new_listeners(
    path: Path, listeners: object, *, is_later: bool = False
) -> Iterator[Touched]:
    """Describe new listeners with everything below them."""
    for body in filter(_is_body, _list(listeners)):
        at = (*path, _label(body))
        yield Touched(at, Verb.CREATE, differences.new(body), is_later=is_later)
        yield from _new_pool(at, body.get("default_pool"), is_later=is_later)


def _created(step: Step, action: Action) -> Iterator[Touched]:
    """Describe a new object, and what comes below it once it exists."""
    at = _at(step, action)
    yield Touched(at, Verb.CREATE, differences.new(action.fields), step.why)
    if action.kind is Kind.LISTENER:
        yield from _new_pool(at, action.later, is_later=True)
    else:
        yield from _under_pool(at, action.later, is_later=True)


def _new_pool(path: Path, body: object, *, is_later: bool) -> Iterator[Touched]:
    if _is_body(body):
        at = (*path, f"pool {body['name']}")
        yield Touched(at, Verb.CREATE, differences.new(body), is_later=is_later)
        yield from _under_pool(at, body, is_later=is_later)


def _under_pool(path: Path, body: Body, *, is_later: bool) -> Iterator[Touched]:
    if "members" in body:
        named = list(filter(_is_body, _list(body["members"])))
        changes = tuple(differences.members(named, (), is_full=True, is_additive=True))
        yield Touched((*path, "members"), Verb.CREATE, changes, is_later=is_later)
    monitor = body.get("healthmonitor")
    if _is_body(monitor):
        changes = differences.new(monitor)
        yield Touched((*path, "monitor"), Verb.CREATE, changes, is_later=is_later)


def _gone_with_pool(step: Step, action: Action, pool: Pool) -> Iterator[Touched]:
    at = _at(step, action)
    gone = differences.members((), action.members)
    yield Touched((*at, "members"), step.verb, tuple(gone))
    if pool.healthmonitor_id:
        yield Touched((*at, "monitor"), step.verb)


def _members(action: Action) -> tuple[FieldChange, ...]:
    return tuple(
        differences.members(
            action.batch,
            action.members,
            is_full=action.is_full,
            is_additive=action.is_additive,
        )
    )


def _at(step: Step, action: Action) -> Path:
    """Return the object's path: each below its listener, with its port."""
    listener = action.listener
    if listener is None:
        return (*step.path[:1], _label(action.fields))
    name = listener.name or listener.id
    label = f"listener {name} ({listener.protocol} {listener.protocol_port})"
    path = (*step.path[:1], label)
    match action.kind:
        case Kind.POOL:
            return (*path, step.path[-1])
        case Kind.MEMBERS | Kind.MONITOR:
            pool = action.pool
            return (*path, f"pool {pool.name if pool else ''}", step.path[-1])
    return path


def _label(body: Body) -> str:
    """Return a listener's name; the port distinguishes two of the same name."""
    return f"listener {body['name']} ({body['protocol']} {body['protocol_port']})"


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) else ()


def _is_body(value: object) -> typing.TypeGuard[Body]:
    return isinstance(value, Mapping)
