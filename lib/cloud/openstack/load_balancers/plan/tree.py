"""Compares desired listeners, pools, members and monitors with observed ones: pure.

Rules: listeners are known by protocol and port, members by address and port. Names of
existing objects are not changed. Objects that need an unknown ID follow with the next
comparison. Objects that are not owned are not changed.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go (which
settings are compared).
"""

import dataclasses
from collections.abc import Iterator, Sequence

from lib.cloud.load_balancers import Reason, Ref
from lib.cloud.openstack.load_balancers.plan import (
    actions,
    bodies,
    creation,
    members,
    protocols,
    session_affinity,
)
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.bodies import Body, Context
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import (
    Listener,
    LoadBalancer,
    Monitor,
    Pool,
)
from lib.cloud.openstack.load_balancers.read.observed import Children, Relation
from lib.cloud.openstack.load_balancers.spec import annotations, names
from lib.cloud.openstack.load_balancers.spec.desired import DesiredPort
from lib.cloud.steps import Problem, Step, grouped


@dataclasses.dataclass(frozen=True, slots=True)
class TreePlace:
    """One load balancer, and its relation to the Service.

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
        """Report whether a listener is this Service's.

        The ownership tag decides; without any, where listeners are adopted, the tag
        of the reference does, or on an owned load balancer the lack of every tag.
        """
        tags = identity.ownership_tags(listener.tags)
        if tags:
            own = identity.names_of(self.ref).ownership_tag
            return any(tag == own or names.is_former(tag, self.ref) for tag in tags)
        if not self.adopts:
            return False
        if names.load_balancer(self.ref) in listener.tags:
            return True
        if self.relation is not Relation.OWNED:
            return False
        return not listener.tags or self.balancer.name in listener.tags

    @property
    def has_untagged(self) -> bool:
        """Report whether one of the Service's listeners lacks the ownership tag."""
        some = self.children.listeners
        return any(
            self.owns(listener) and not identity.ownership_tags(listener.tags)
            for listener in some
        )

    @property
    def former_tags(self) -> tuple[str, ...]:
        """The Service's tags under another cluster ID on the load balancer."""
        tags = self.balancer.tags
        return tuple(tag for tag in tags if names.is_former(tag, self.ref))

    def setting(self, fields: actions.Body) -> Action:
        """Return what sets fields of the load balancer itself."""
        balancer = self.balancer
        return Action(
            Kind.LOAD_BALANCER,
            balancer.id,
            fields,
            balancer_id=balancer.id,
            observed=balancer,
        )

    def pool_of(self, listener: Listener) -> Pool | None:
        """Return a listener's pool."""
        if listener.default_pool_id:
            return self.children.pools.get(listener.default_pool_id)
        return None


def conflicts(place: TreePlace, context: Context) -> tuple[Problem, ...]:
    """Find desired ports that a listener of another owner has."""
    taken = {
        (protocols.transport(listener.protocol), listener.protocol_port)
        for listener in place.children.listeners
        if not place.owns(listener)
    }
    conflicting = [
        f"{port.port}/{port.protocol}"
        for port in context.desired.ports
        if (_transport(context, port), port.port) in taken
    ]
    if not conflicting:
        return ()
    message = (
        f"load balancer {place.balancer.id}: ports {', '.join(conflicting)}: already in"
        " use by listeners that the Service does not own; choose other ports, or"
        f" another load balancer by annotation {annotations.LOAD_BALANCER_ID}"
    )
    return (Problem(Reason.PORT_CONFLICT, message, is_fatal=True),)


def steps(place: TreePlace, context: Context) -> tuple[Step, ...]:
    """Return what brings the tree closer, in the order in which it must happen."""
    owned = [listener for listener in place.children.listeners if place.owns(listener)]
    observed = {
        (listener.protocol, listener.protocol_port): listener for listener in owned
    }
    desired = {
        (protocols.of_listener(context.desired, port), port.port): port
        for port in context.desired.ports
    }
    left = [listener for key, listener in observed.items() if key not in desired]
    missing = {
        (_transport(context, port), port.port)
        for key, port in desired.items()
        if key not in observed
    }
    in_the_way = [
        listener
        for listener in left
        if (protocols.transport(listener.protocol), listener.protocol_port) in missing
    ]
    result = list(removals(place, in_the_way, "its port gets another protocol"))
    for key, port in desired.items():
        group = _group(_transport(context, port), port.port)
        if key in observed:
            changes = _changes(place, context, port, observed[key])
        else:
            changes = iter((_new_listener(place, context, port),))
        result += grouped(group, changes)
    rest = [listener for listener in left if listener not in in_the_way]
    result += removals(place, rest, "the Service has no such port")
    # Stable: a listener that is refused keeps no member from being replaced.
    return tuple(sorted(result, key=_is_of_other_than_members))


def _is_of_other_than_members(step: Step) -> bool:
    return actions.of(step).kind is not Kind.MEMBERS


def _group(transport: str, port: int) -> str:
    """Return the group of the steps of one port; see `Step.group`."""
    return f"port {port}/{transport}"


def removals(
    place: TreePlace, listeners: Sequence[Listener], why: str
) -> Iterator[Step]:
    """Delete listeners, each behind its pool; a pool takes members and monitor along.

    In this order a crash between the two leaves no object without an owner.
    """
    for listener in listeners:
        path = (*place.path, _shown(listener))
        pool = place.pool_of(listener)
        transport = protocols.transport(listener.protocol)
        group = _group(transport, listener.protocol_port)
        if pool is not None and [each.id for each in pool.listeners] == [listener.id]:
            yield from grouped(group, (_delete_pool(place, listener, pool, why),))
        step = actions.delete(path, why, _on_listener(place, listener))
        yield from grouped(group, (step,))


def stray_pools(place: TreePlace) -> Iterator[Step]:
    """Delete the Service's pools whose listener was deleted by others."""
    tag = names.ownership_tag(place.ref)
    for pool in place.children.pools.values():
        if tag in pool.tags and not pool.listeners:
            action = Action(
                Kind.POOL, pool.id, balancer_id=place.balancer.id, observed=pool
            )
            path = (*place.path, f"pool {pool.name or pool.id}")
            step = actions.delete(path, "it has no listener", action)
            yield from grouped(path[-1], (step,))


def _changes(
    place: TreePlace, context: Context, port: DesiredPort, listener: Listener
) -> Iterator[Step]:
    path = (*place.path, _shown(listener))
    changed = _listener_changes(context, listener)
    if changed:
        action = _on_listener(place, listener, changed)
        yield actions.change(path, _described(changed, listener), action)
    yield from _pool(place, context, port, listener)


def _on_listener(
    place: TreePlace, listener: Listener, fields: actions.Body | None = None
) -> Action:
    """Return an action on a listener that exists."""
    return Action(
        Kind.LISTENER,
        listener.id,
        fields or {},
        balancer_id=place.balancer.id,
        observed=listener,
        listener=listener,
    )


def _pool(
    place: TreePlace, context: Context, port: DesiredPort, listener: Listener
) -> Iterator[Step]:
    path = (*place.path, _shown(listener))
    pool = place.pool_of(listener)
    protocol = protocols.of_pool(context.desired, port)
    if pool is not None and pool.protocol != protocol:
        why = f"its protocol is {pool.protocol}, desired {protocol}"
        yield _delete_pool(place, listener, pool, why)
        pool = None
    if pool is None:
        yield _new_pool(place, context, port, listener)
        return
    path = (*path, f"pool {pool.name}")
    changed = _pool_changes(context, pool)
    action = _on_pool(place, Kind.POOL, listener, pool)
    if changed:
        setting = dataclasses.replace(action, fields=changed)
        yield actions.change(path, _described(changed, pool), setting)
    state = members.PoolState(
        pool.id,
        action.members,
        place.children.monitors.get(pool.healthmonitor_id or ""),
        is_full=action.is_full,
    )
    difference = members.compare(context, port, state)
    if difference:
        where = (*place.path, f"pool {pool.name}", "members")
        yield members.step(context, port, state, difference, where, action)
    yield from _monitor(place, context, port, action)


def _new_pool(
    place: TreePlace, context: Context, port: DesiredPort, listener: Listener
) -> Step:
    name = names.child("pool", port.index, context.owner)
    fields = bodies.pool(context, port, name) | {"listener_id": listener.id}
    if context.tags and place.relation is Relation.SHARED:
        # After the deletion of its listener only this tag shows the owner.
        fields["tags"] = [names.ownership_tag(place.ref)]
    action = Action(
        Kind.POOL,
        fields=fields,
        listener=listener,
        later=creation.pool(context, port),
        balancer_id=place.balancer.id,
    )
    path = (*place.path, _shown(listener), f"pool {name}")
    return actions.create(path, "the listener has none", action)


def _on_pool(place: TreePlace, kind: Kind, listener: Listener, pool: Pool) -> Action:
    """Return an action on a pool that exists, or on its members."""
    return Action(
        kind,
        pool.id,
        balancer_id=place.balancer.id,
        observed=pool,
        listener=listener,
        pool=pool,
        members=place.children.members.get(pool.id, ()),
        is_full=pool.id in place.children.full,
    )


def _listener_changes(context: Context, listener: Listener) -> Body:
    """Return the settings of a listener that differ from the desired ones."""
    desired, can = context.desired, context.can
    changed: Body = {}
    if missing := [tag for tag in context.tags if tag not in listener.tags]:
        changed["tags"] = names.renewed(listener.tags, missing)
    if listener.connection_limit != desired.connection_limit:
        changed["connection_limit"] = desired.connection_limit
    headers = listener.insert_headers or {}
    forwards = desired.forwards_for and protocols.transport(listener.protocol) == "TCP"
    if (headers.get(bodies.FORWARDED_FOR) == "true") != forwards:
        rest = {k: v for k, v in headers.items() if k != bodies.FORWARDED_FOR}
        more = {bodies.FORWARDED_FOR: "true"} if forwards else {}
        changed["insert_headers"] = rest | more
    is_tls = listener.protocol == "TERMINATED_HTTPS"
    if is_tls and listener.default_tls_container_ref != desired.tls_ref:
        changed["default_tls_container_ref"] = desired.tls_ref
    if can.timeouts:
        for key, value in bodies.timeouts(desired.timeouts).items():
            if getattr(listener, key) != value:
                changed[key] = value
    if can.cidrs and set(listener.allowed_cidrs or ()) != set(desired.cidrs):
        changed["allowed_cidrs"] = list(desired.cidrs)
    return changed | _switched_on(listener)


def _pool_changes(context: Context, pool: Pool) -> Body:
    changed: Body = {}
    algorithm = context.desired.algorithm
    if algorithm and pool.lb_algorithm != algorithm:
        changed["lb_algorithm"] = algorithm
    changed |= session_affinity.changes(context.desired, pool)
    return changed | _switched_on(pool)


def _switched_on(observed: Listener | Pool | Monitor) -> Body:
    return {} if observed.admin_state_up else dict(bodies.SWITCHED_ON)


def _monitor(
    place: TreePlace, context: Context, port: DesiredPort, on_pool: Action
) -> Iterator[Step]:
    """Plan the health monitor of a pool. on_pool: an action on that pool."""
    pool = on_pool.pool
    if pool is None:
        return
    path = (*place.path, f"pool {pool.name}", "monitor")
    monitor = place.children.monitors.get(pool.healthmonitor_id or "")
    if monitor is not None:
        action = dataclasses.replace(
            on_pool, kind=Kind.MONITOR, id=monitor.id, observed=monitor
        )
        kind = bodies.monitor_type(context, port)
        if not context.monitors:
            yield actions.delete(path, "no health monitor is desired", action)
            return
        if monitor.type == kind:
            changed = _monitor_changes(context, port, monitor)
            if changed:
                action = dataclasses.replace(action, fields=changed)
                yield actions.change(path, _described(changed, monitor), action)
            return
        why = f"its type is {monitor.type}, desired {kind}"
        yield actions.delete(path, why, action)
    elif pool.healthmonitor_id or not context.monitors:
        return  # created since the monitors were listed, or none is desired
    name = names.child("monitor", port.index, context.owner)
    body = bodies.monitor(context, port, name) | {"pool_id": pool.id}
    action = dataclasses.replace(
        on_pool, kind=Kind.MONITOR, id="", observed=None, fields=body
    )
    yield actions.create(path, "the pool has none", action)


def _monitor_changes(context: Context, port: DesiredPort, monitor: Monitor) -> Body:
    desired: Body = dict(bodies.monitor_settings(context, port))
    if monitor.delay == context.desired.monitoring.delay_s:
        del desired["delay"]  # the cloud allows what we would not dare to ask for
    if monitor.type == "HTTP":
        desired |= bodies.HTTP_MONITOR
    desired |= bodies.SWITCHED_ON
    return {
        key: value for key, value in desired.items() if getattr(monitor, key) != value
    }


def _new_listener(place: TreePlace, context: Context, port: DesiredPort) -> Step:
    name = names.child("listener", port.index, context.owner)
    body = bodies.listener(context, port, name) | {"loadbalancer_id": place.balancer.id}
    if spare := _spare_pool(place, context, port):
        body["default_pool_id"] = spare.id
    action = Action(
        Kind.LISTENER,
        fields=body,
        later=creation.pool(context, port),
        balancer_id=place.balancer.id,
    )
    why = f"there is none for port {port.port}/{port.protocol}"
    return actions.create((*place.path, f"listener {name}"), why, action)


def _spare_pool(place: TreePlace, context: Context, port: DesiredPort) -> Pool | None:
    """Find the pool of an owned listener that another client has deleted."""
    name = names.child("pool", port.index, context.owner)
    protocol = protocols.of_pool(context.desired, port)
    return next(
        (
            pool
            for pool in place.children.pools.values()
            if not pool.listeners and (pool.name, pool.protocol) == (name, protocol)
        ),
        None,
    )


def _delete_pool(place: TreePlace, listener: Listener, pool: Pool, why: str) -> Step:
    path = (*place.path, _shown(listener), f"pool {pool.name}")
    return actions.delete(path, why, _on_pool(place, Kind.POOL, listener, pool))


def _transport(context: Context, port: DesiredPort) -> str:
    return protocols.transport(protocols.of_listener(context.desired, port))


def _shown(listener: Listener) -> str:
    return f"listener {listener.name or listener.id}"


def _described(changed: Body, observed: Listener | Pool | Monitor) -> str:
    """Describe observed and desired values."""
    return "; ".join(
        f"{key} is {_plain(getattr(observed, key))}, desired {_plain(value)}"
        for key, value in changed.items()
    )


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(getattr(value, "type", value))
