"""Puts requests for listeners, pools, members and monitors into words: pure."""

import typing
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud.explained import Change, Touched
from lib.cloud.load_balancers import Step, Target, Verb
from lib.cloud.openstack import client
from lib.cloud.openstack.load_balancers import bodies, creation, differences
from lib.cloud.openstack.load_balancers import plan as plans
from lib.cloud.openstack.load_balancers.differences import Body, inside
from lib.cloud.openstack.load_balancers.native import Listener, Monitor, Pool
from lib.cloud.openstack.load_balancers.observe import wanted_of
from lib.cloud.openstack.load_balancers.observed import Children, Tree

Path = tuple[str, ...]
Thing = Listener | Pool | Monitor


def of_step(
    target: Target, seen: Tree, step: Step, write: client.Write, parts: Sequence[str]
) -> Iterator[Touched]:
    """Tell what a request for a child does. parts: of the path below lbaas."""
    there = seen.children or Children()
    body = inside(write)
    match write.method, tuple(parts):
        case "POST", ("listeners",):
            at = (*step.path[:1], _label(body))
            yield Touched(at, Verb.CREATE, differences.new(body), step.why)
            yield from _pool_later(target, seen, at, body)
        case "POST", ("pools",):
            listener = _listener(there, body.get("listener_id"))
            at = (*step.path[:1], _label_of(listener), step.path[-1])
            yield Touched(at, Verb.CREATE, differences.new(body), step.why)
            if listener is not None:
                port = (listener.protocol, listener.protocol_port)
                pool = _whole_pool(target, seen, *port)
                yield from _under_pool(at, pool, is_later=True)
        case "POST", ("healthmonitors",):
            at = _at(there, step.path, str(body.get("pool_id")), "monitor")
            yield Touched(at, Verb.CREATE, differences.new(body), step.why)
        case "PUT", ("pools", id_, "members"):
            changes = _members(there, id_, write)
            why = "" if changes else step.why
            at = _at(there, step.path, id_, "members")
            yield Touched(at, Verb.CHANGE, changes, why)
        case method, (kind, id_):
            yield from _of_thing(there, step, kind, id_, body, method == "DELETE")


def new_listeners(
    path: Path, listeners: Sequence[object], *, is_later: bool = False
) -> Iterator[Touched]:
    """Tell of listeners with all that is under them."""
    for body in filter(_is_body, listeners):
        at = (*path, _label(body))
        yield Touched(at, Verb.CREATE, differences.new(body), is_later=is_later)
        yield from _new_pool(at, body.get("default_pool"), is_later=is_later)


def _new_pool(path: Path, body: object, *, is_later: bool) -> Iterator[Touched]:
    if _is_body(body):
        at = (*path, f"pool {body['name']}")
        yield Touched(at, Verb.CREATE, differences.new(body), is_later=is_later)
        yield from _under_pool(at, body, is_later=is_later)


def _under_pool(path: Path, body: Body, *, is_later: bool) -> Iterator[Touched]:
    members = body.get("members")
    if isinstance(members, Sequence):
        named = list(filter(_is_body, members))
        changes = tuple(differences.members(named, (), is_full=True, is_additive=True))
        at = (*path, "members")
        yield Touched(at, Verb.CREATE, changes, is_later=is_later)
    monitor = body.get("healthmonitor")
    if _is_body(monitor):
        changes = differences.new(monitor)
        at = (*path, "monitor")
        yield Touched(at, Verb.CREATE, changes, is_later=is_later)


def _pool_later(
    target: Target, seen: Tree, path: Path, listener: Body
) -> Iterator[Touched]:
    """Tell of the pool that a new listener gets once it is there."""
    protocol, number = listener.get("protocol"), listener.get("protocol_port")
    body = _whole_pool(target, seen, str(protocol), int(str(number)))
    if body:
        yield from _new_pool(path, body, is_later=True)


def _whole_pool(target: Target, seen: Tree, protocol: str, number: int) -> Body:
    wanted, balancer = wanted_of(target), seen.identity.load_balancer
    if wanted is None or balancer is None:
        return {}
    context = plans.context_on(target.ref, wanted, balancer, seen)
    for port in wanted.ports:
        if (bodies.listener_protocol(wanted, port), port.port) == (protocol, number):
            return creation.pool(context, port)
    return {}


def _of_thing(
    there: Children, step: Step, kind: str, id_: str, body: Body, is_gone: bool
) -> Iterator[Touched]:
    """Tell what a request changes on a thing that is there, or takes with it."""
    found: Mapping[str, Thing]
    match kind:
        case "listeners":
            found = {one.id: one for one in there.listeners}
            at = (*step.path[:1], _label_of(_listener(there, id_)))
        case "pools":
            found, at = there.pools, _at(there, step.path, id_)
        case _:
            found = there.monitors
            at = _at(there, step.path, _pool_with(there, id_), "monitor")
    thing = found.get(id_)
    if is_gone:
        yield Touched(at, step.verb, why=step.why)
        if isinstance(thing, Pool):
            gone = differences.members((), there.members.get(id_, ()))
            yield Touched((*at, "members"), step.verb, tuple(gone))
            if thing.healthmonitor_id:
                yield Touched((*at, "monitor"), step.verb)
        return
    changes = () if thing is None else differences.changed(body, thing)
    yield Touched(at, step.verb, changes, "" if changes else step.why)


def _members(there: Children, pool_id: str, write: client.Write) -> tuple[Change, ...]:
    sent = (write.body or {}).get("members")
    named = list(filter(_is_body, sent)) if isinstance(sent, Sequence) else []
    return tuple(
        differences.members(
            named,
            there.members.get(pool_id, ()),
            is_full=pool_id in there.full,
            is_additive=bool(write.query),
        )
    )


def _at(there: Children, path: Path, pool_id: str, *more: str) -> Path:
    """Put a pool, and what is under it, below its listener."""
    pool = there.pools.get(pool_id)
    if pool is None:
        return path
    for one in there.listeners:
        if one.default_pool_id == pool_id:
            return (*path[:1], _label_of(one), f"pool {pool.name}", *more)
    return path


def _label(body: Body) -> str:
    """Name a listener; of two that have one name in turn the port tells them apart."""
    return f"listener {body['name']} ({body['protocol']} {body['protocol_port']})"


def _label_of(one: Listener | None) -> str:
    if one is None:
        return "listener"
    name = one.name or one.id
    return f"listener {name} ({one.protocol} {one.protocol_port})"


def _pool_with(there: Children, monitor_id: str) -> str:
    found = there.pools.values()
    return next((one.id for one in found if one.healthmonitor_id == monitor_id), "")


def _listener(there: Children, id_: object) -> Listener | None:
    return next((one for one in there.listeners if one.id == id_), None)


def _is_body(value: object) -> typing.TypeGuard[Body]:
    return isinstance(value, Mapping)
