"""Compares the wanted listeners, pools, members and monitors with those there: pure.

Rules: listeners are known by protocol and port, members by address and port. Names of
what is there are left alone. What needs an id that is not known yet comes with the next
comparison. What is not ours is not touched.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go (which
settings are compared).
"""

import dataclasses
from collections.abc import Iterator, Sequence

from lib.cloud.load_balancers import Problem, Reason, Ref, Step
from lib.cloud.openstack.load_balancers import bodies, members, names, requests
from lib.cloud.openstack.load_balancers.bodies import Body, Context
from lib.cloud.openstack.load_balancers.lists import quoted
from lib.cloud.openstack.load_balancers.native import (
    Listener,
    LoadBalancer,
    Monitor,
    Pool,
)
from lib.cloud.openstack.load_balancers.observed import Children, Relation
from lib.cloud.openstack.load_balancers.wanted import WantedPort


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The load balancer that is looked at, and what it is to the Service.

    adopts: see `identity.adopts`.
    """

    ref: Ref
    balancer: LoadBalancer
    relation: Relation
    children: Children
    adopts: bool

    @property
    def path(self) -> tuple[str, ...]:
        """How steps name the load balancer."""
        return (f"load balancer {self.balancer.name}",)

    def owns(self, listener: Listener) -> bool:
        """Say whether a listener is this Service's.

        Our mark decides; without any, where listeners are adopted, the tag that the
        reference writes does, or on an own load balancer the lack of every tag.
        """
        marks = names.marks(listener.tags)
        if marks:
            own = names.mark(self.ref)
            return any(mark == own or names.is_former(mark, self.ref) for mark in marks)
        if not self.adopts:
            return False
        if names.load_balancer(self.ref) in listener.tags:
            return True
        if self.relation is not Relation.OWNED:
            return False
        return not listener.tags or self.balancer.name in listener.tags

    @property
    def has_unmarked(self) -> bool:
        """Say whether one of the Service's listeners lacks our mark."""
        some = self.children.listeners
        return any(self.owns(one) and not names.marks(one.tags) for one in some)

    @property
    def former_tags(self) -> tuple[str, ...]:
        """The Service's tags under another cluster ID on the load balancer."""
        tags = self.balancer.tags
        return tuple(tag for tag in tags if names.is_former(tag, self.ref))

    def pool_of(self, listener: Listener) -> Pool | None:
        """Give a listener's pool."""
        if listener.default_pool_id:
            return self.children.pools.get(listener.default_pool_id)
        return None


def conflicts(place: Place, context: Context) -> tuple[Problem, ...]:
    """Find wanted ports that somebody else's listener has."""
    taken = {
        (bodies.transport(one.protocol), one.protocol_port)
        for one in place.children.listeners
        if not place.owns(one)
    }
    wanted = [
        f"{port.port}/{port.protocol}"
        for port in context.wanted.ports
        if (_transport(context, port), port.port) in taken
    ]
    if not wanted:
        return ()
    message = (
        f"load balancer {place.balancer.id} has listeners of others on ports"
        f" {', '.join(wanted)}"
    )
    return (Problem(Reason.PORT_CONFLICT, message, is_fatal=True),)


def steps(place: Place, context: Context) -> tuple[Step, ...]:
    """Say what brings the tree closer, in the order in which it must happen."""
    ours = [one for one in place.children.listeners if place.owns(one)]
    found = {(one.protocol, one.protocol_port): one for one in ours}
    wanted = {
        (bodies.listener_protocol(context.wanted, port), port.port): port
        for port in context.wanted.ports
    }
    left = [one for key, one in found.items() if key not in wanted]
    missing = {
        (_transport(context, port), port.port)
        for key, port in wanted.items()
        if key not in found
    }
    in_the_way = [
        one
        for one in left
        if (bodies.transport(one.protocol), one.protocol_port) in missing
    ]
    result = list(removals(place, in_the_way, "its port gets another protocol"))
    for key, port in wanted.items():
        if key in found:
            result += _changes(place, context, port, found[key])
        else:
            result.append(_new_listener(place, context, port))
    rest = [one for one in left if one not in in_the_way]
    return (*result, *removals(place, rest, "the Service has no such port"))


def removals(place: Place, listeners: Sequence[Listener], why: str) -> Iterator[Step]:
    """Delete listeners, each behind its pool; a pool takes members and monitor along.

    In this order a death between the two leaves nothing that belongs to nobody.
    """
    for one in listeners:
        path = (*place.path, _shown(one))
        pool = place.pool_of(one)
        if pool is not None and [each.id for each in pool.listeners] == [one.id]:
            yield _delete_pool(place, path, pool, why)
        url = f"lbaas/listeners/{quoted(one.id)}"
        yield requests.delete(path, why, url, place.balancer.id)


def _changes(
    place: Place, context: Context, port: WantedPort, listener: Listener
) -> Iterator[Step]:
    path = (*place.path, _shown(listener))
    changed = _listener_changes(context, listener)
    if changed:
        yield requests.change(
            path,
            _told(changed, listener),
            f"lbaas/listeners/{quoted(listener.id)}",
            {"listener": changed},
            place.balancer.id,
        )
    yield from _pool(place, context, port, listener)


def _pool(
    place: Place, context: Context, port: WantedPort, listener: Listener
) -> Iterator[Step]:
    path = (*place.path, _shown(listener))
    pool = place.pool_of(listener)
    protocol = bodies.pool_protocol(context.wanted, port)
    if pool is not None and pool.protocol != protocol:
        why = f"its protocol is {pool.protocol}, wanted {protocol}"
        yield _delete_pool(place, path, pool, why)
        pool = None
    if pool is None:
        name = names.child("pool", port.index, context.owner)
        body = bodies.pool(context, port, name) | {"listener_id": listener.id}
        why = "the listener has none"
        yield requests.create(
            (*path, f"pool {name}"),
            why,
            "lbaas/pools",
            {"pool": body},
            place.balancer.id,
        )
        return
    path = (*path, f"pool {pool.name}")
    changed = _pool_changes(context, pool)
    if changed:
        url = f"lbaas/pools/{quoted(pool.id)}"
        yield requests.change(
            path, _told(changed, pool), url, {"pool": changed}, place.balancer.id
        )
    there = members.There(
        pool.id,
        place.children.members.get(pool.id, ()),
        place.children.monitors.get(pool.healthmonitor_id or ""),
        is_full=pool.id in place.children.full,
    )
    difference = members.compare(context, port, there)
    if difference:
        where = (*place.path, f"pool {pool.name}", "members")
        at = members.At(where, place.balancer.id)
        yield members.step(context, port, there, difference, at)
    yield from _monitor(place, context, port, pool)


def _listener_changes(context: Context, found: Listener) -> Body:
    """Give the settings of a listener that are otherwise than wanted."""
    wanted, can = context.wanted, context.can
    changed: Body = {}
    if missing := [tag for tag in context.tags if tag not in found.tags]:
        changed["tags"] = names.renewed(found.tags, missing)
    if found.connection_limit != wanted.connection_limit:
        changed["connection_limit"] = wanted.connection_limit
    headers = found.insert_headers or {}
    forwards = wanted.forwards_for and bodies.transport(found.protocol) == "TCP"
    if (headers.get(bodies.FORWARDED_FOR) == "true") != forwards:
        rest = {k: v for k, v in headers.items() if k != bodies.FORWARDED_FOR}
        more = {bodies.FORWARDED_FOR: "true"} if forwards else {}
        changed["insert_headers"] = rest | more
    is_tls = found.protocol == "TERMINATED_HTTPS"
    if is_tls and found.default_tls_container_ref != wanted.tls_ref:
        changed["default_tls_container_ref"] = wanted.tls_ref
    if can.timeouts:
        for key, value in bodies.timeouts(wanted.timeouts).items():
            if getattr(found, key) != value:
                changed[key] = value
    if can.cidrs and set(found.allowed_cidrs or ()) != set(wanted.cidrs):
        changed["allowed_cidrs"] = list(wanted.cidrs)
    return changed | _switched_on(found)


def _pool_changes(context: Context, found: Pool) -> Body:
    changed: Body = {}
    if found.lb_algorithm != context.wanted.algorithm:
        changed["lb_algorithm"] = context.wanted.algorithm
    kept = found.session_persistence is not None
    if kept != context.wanted.has_affinity:
        changed["session_persistence"] = bodies.persistence(context.wanted)
    return changed | _switched_on(found)


def _switched_on(found: Listener | Pool | Monitor) -> Body:
    return {} if found.admin_state_up else dict(bodies.SWITCHED_ON)


def _monitor(
    place: Place, context: Context, port: WantedPort, pool: Pool
) -> Iterator[Step]:
    path = (*place.path, f"pool {pool.name}", "monitor")
    found = place.children.monitors.get(pool.healthmonitor_id or "")
    if found is not None:
        url = f"lbaas/healthmonitors/{quoted(found.id)}"
        kind = bodies.monitor_type(context, port)
        if not context.monitors:
            yield requests.delete(path, "none is wanted", url, place.balancer.id)
            return
        if found.type == kind:
            changed = _monitor_changes(context, port, found)
            if changed:
                why = _told(changed, found)
                yield requests.change(
                    path, why, url, {"healthmonitor": changed}, place.balancer.id
                )
            return
        why = f"its type is {found.type}, wanted {kind}"
        yield requests.delete(path, why, url, place.balancer.id)
    elif pool.healthmonitor_id or not context.monitors:
        return  # one that was made since the monitors were listed, or none is wanted
    name = names.child("monitor", port.index, context.owner)
    body = bodies.monitor(context, port, name) | {"pool_id": pool.id}
    yield requests.create(
        path,
        "the pool has none",
        "lbaas/healthmonitors",
        {"healthmonitor": body},
        place.balancer.id,
    )


def _monitor_changes(context: Context, port: WantedPort, found: Monitor) -> Body:
    wanted: Body = dict(bodies.monitor_settings(context, port))
    if found.delay == context.wanted.monitoring.delay_s:
        del wanted["delay"]  # the cloud allows what we would not dare to ask for
    if found.type == "HTTP":
        wanted |= bodies.HTTP_MONITOR
    wanted |= bodies.SWITCHED_ON
    return {key: value for key, value in wanted.items() if getattr(found, key) != value}


def _new_listener(place: Place, context: Context, port: WantedPort) -> Step:
    name = names.child("listener", port.index, context.owner)
    body = bodies.listener(context, port, name) | {"loadbalancer_id": place.balancer.id}
    if spare := _spare_pool(place, context, port):
        body["default_pool_id"] = spare.id
    return requests.create(
        (*place.path, f"listener {name}"),
        f"there is none for port {port.port}/{port.protocol}",
        "lbaas/listeners",
        {"listener": body},
        place.balancer.id,
    )


def _spare_pool(place: Place, context: Context, port: WantedPort) -> Pool | None:
    """Find the pool that a listener of ours had which somebody has deleted."""
    name = names.child("pool", port.index, context.owner)
    protocol = bodies.pool_protocol(context.wanted, port)
    return next(
        (
            pool
            for pool in place.children.pools.values()
            if not pool.listeners and (pool.name, pool.protocol) == (name, protocol)
        ),
        None,
    )


def _delete_pool(place: Place, path: tuple[str, ...], pool: Pool, why: str) -> Step:
    url = f"lbaas/pools/{quoted(pool.id)}"
    return requests.delete((*path, f"pool {pool.name}"), why, url, place.balancer.id)


def _transport(context: Context, port: WantedPort) -> str:
    return bodies.transport(bodies.listener_protocol(context.wanted, port))


def _shown(listener: Listener) -> str:
    return f"listener {listener.name or listener.id}"


def _told(changed: Body, found: Listener | Pool | Monitor) -> str:
    """Say what is, and what is wanted."""
    return "; ".join(
        f"{key} is {_plain(getattr(found, key))}, wanted {_plain(value)}"
        for key, value in changed.items()
    )


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(getattr(value, "type", value))
