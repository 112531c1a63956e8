"""Reads listeners, pools, monitors and members of many load balancers by few calls.

What was read is kept by load balancer, and used again as long as its `updated_at`
shows that nothing under it has changed, and we have changed nothing ourselves. That
has a resolution of one second, so what was read right after the last change is used for
a few seconds only.

After we have set members, only members are read again: listeners, pools and monitors
are cached for one read. Changes by other clients appear in the next one.
"""

import dataclasses
import sys
import threading
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TypeVar

from lib.cloud import errors
from lib.cloud.load_balancers import Depth, Ref, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.read import identity, lists, native
from lib.cloud.openstack.load_balancers.read.observed import (
    Children,
    Identity,
    Relation,
)
from lib.cloud.openstack.load_balancers.spec.desired import Desired, Monitored
from lib.cloud.support import expiring, parallel

CROWD = 100
TIMES = 5
"""A project with more load balancers than CROWD, and than TIMES those to be read, is
mostly used by others."""
PER_LIST = 50
"""Load balancers of the project for each that is read by itself, at least: lists of
1,000 are fewer calls for more."""
FEW = 20
"""Load balancers read one by one in any such project, at least."""
STILL_S = 2.0
"""Seconds that `updated_at` must have stood still before a read is kept for long."""
FRESH_S = 10.0
"""Seconds for which any other read is kept: while one thing follows the other."""
OUTLINE_S = 300.0
"""Seconds for which listeners, pools and monitors are kept while members are set."""


_Child = TypeVar("_Child", native.Listener, native.Pool)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """since: when this updated_at was first seen.

    children: None: not read since. until: to be used before that time. is_listed: its
    listeners, pools and monitors were read, not kept from before.
    """

    updated_at: str
    since: float
    children: Children | None = None
    until: float = float("inf")
    is_listed: bool = False


class ChildrenReader:
    """Reads children. Safe to use from several threads."""

    def __init__(self, api: client.Client) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._outlines = expiring.Expiring[str, Children](OUTLINE_S, api.now)
        self._listed = 0

    def read(
        self,
        balancers: Collection[native.LoadBalancer],
        depths: Mapping[str, Depth],
        deadline: float,
        *,
        reuses: bool,
    ) -> Mapping[str, Seen[Children] | Unknown]:
        """Return the children of each of these load balancers, by its id.

        depths: by the same ids. reuses: what is kept will do where nothing changed.
        """
        children_by_id: dict[str, Seen[Children] | Unknown] = {}
        noted: dict[str, _Kept] = {}
        now = self._api.now()
        for balancer in balancers:
            kept = self._note(balancer, now)
            noted[balancer.id] = kept
            is_good = now < kept.until and _will_do(kept.children, depths[balancer.id])
            if reuses and is_good:
                children_by_id[balancer.id] = Seen(kept.children or Children())
        missing = [
            balancer for balancer in balancers if balancer.id not in children_by_id
        ]
        if not missing:
            return children_by_id
        taken = self._take_outlines(missing)
        outlines = taken if reuses else {}
        rest = [balancer for balancer in missing if balancer.id not in outlines]
        try:
            read = {**outlines, **(self._lists(rest, deadline) if rest else {})}
        except errors.CloudError as error:
            return children_by_id | {
                balancer.id: Unknown(error) for balancer in missing
            }
        trees = self._many(
            [balancer.id for balancer in missing],
            lambda id_: self._whole(id_, read[id_], depths[id_], deadline),
        )
        for balancer in missing:
            is_listed = balancer.id not in outlines
            is_still = is_listed and now - noted[balancer.id].since >= STILL_S
            until = float("inf") if is_still else now + FRESH_S
            kept = dataclasses.replace(
                noted[balancer.id], until=until, is_listed=is_listed
            )
            self._keep(balancer.id, noted[balancer.id], kept, trees[balancer.id])
        return children_by_id | trees

    def forget(self, present: Iterable[str]) -> None:
        """Drop what is cached of load balancers that no longer exist."""
        ids = set(present)
        with self._lock:
            self._listed = len(ids)
            self._kept = {key: kept for key, kept in self._kept.items() if key in ids}
        self._outlines.keep(ids)

    def drop(self, id_: str, *, only_members: bool = False) -> None:
        """Drop what is kept of one: it is being changed, or was just now.

        only_members: its listeners, pools and monitors are not changed.
        """
        with self._lock:
            kept = self._kept.pop(id_, None)
            if not only_members:
                self._outlines.drop([id_])
            elif kept is not None and kept.children is not None and kept.is_listed:
                outline = dataclasses.replace(
                    kept.children, members={}, full=frozenset()
                )
                self._outlines.put(id_, outline)

    def _take_outlines(
        self, missing: Sequence[native.LoadBalancer]
    ) -> Mapping[str, Children]:
        """Return the kept listeners, pools and monitors, each of which serves once."""
        taken = (
            (balancer.id, self._outlines.take(balancer.id)) for balancer in missing
        )
        return {id_: outline for id_, outline in taken if outline is not None}

    def _note(self, balancer: native.LoadBalancer, now: float) -> _Kept:
        with self._lock:
            kept = self._kept.get(balancer.id)
            updated_at = balancer.updated_at or ""
            if kept is None or kept.updated_at != updated_at or not updated_at:
                kept = self._kept[balancer.id] = _Kept(updated_at, now)
            return kept

    def _keep(
        self, id_: str, noted: _Kept, kept: _Kept, read: Seen[Children] | Unknown
    ) -> None:
        """Cache the read value, unless it was changed in the meantime."""
        with self._lock:
            if isinstance(read, Seen) and self._kept.get(id_) is noted:
                self._kept[id_] = dataclasses.replace(kept, children=read.value)

    def _lists(
        self, missing: Sequence[native.LoadBalancer], deadline: float
    ) -> Mapping[str, Children]:
        """List for one load balancer what is its, for several what the project has.

        In a project that is mostly of others, each of several is read by itself.
        """
        few = max(FEW, self._listed // PER_LIST)
        is_crowded = self._listed > max(CROWD, TIMES * len(missing))
        if is_crowded and len(missing) <= few:
            missing_ids = [balancer.id for balancer in missing]
            parts = self._many(missing_ids, lambda id_: self._single(id_, deadline))
            return {id_: _value(part) for id_, part in parts.items()}
        only = missing[0].id if len(missing) == 1 else ""
        listeners, pools = self._outer(only, deadline)
        ids = {balancer.id for balancer in missing}
        monitors: tuple[native.Monitor, ...] = ()
        own = _by_balancer(pools)
        if any(pool.healthmonitor_id for id_ in ids for pool in own.get(id_, ())):
            monitors = lists.MONITORS.of_project(self._api, deadline)
        by_id = {monitor.id: monitor for monitor in monitors}
        heard = _by_balancer(listeners)
        return {id_: _part(heard.get(id_, ()), own.get(id_, ()), by_id) for id_ in ids}

    def _single(self, id_: str, deadline: float) -> Seen[Children] | Unknown:
        """Read what one load balancer has, with no list of the project."""
        try:
            listeners, pools = self._outer(id_, deadline)
            used = {pool.healthmonitor_id for pool in pools if pool.healthmonitor_id}
            answers = [
                lists.MONITOR.find(self._api, monitor_id, deadline)
                for monitor_id in sorted(used)
            ]
            read = [answer.healthmonitor for answer in answers if answer is not None]
            monitors = {monitor.id: monitor for monitor in read}
        except errors.CloudError as error:
            return Unknown(error)
        own = _by_balancer(pools).get(id_, ())
        return Seen(_part(_by_balancer(listeners).get(id_, ()), own, monitors))

    def _outer(
        self, only: str, deadline: float
    ) -> tuple[Sequence[native.Listener], Sequence[native.Pool]]:
        """List listeners and pools; only: of this load balancer, empty: of all."""
        api = self._api
        if not only:
            listeners = lists.LISTENERS.of_project(api, deadline)
            return listeners, lists.POOLS.of_project(api, deadline)
        listeners = lists.LISTENERS.visible(
            api, deadline, (("load_balancer_id", only),), only
        )
        pools = lists.POOLS.visible(api, deadline, (("loadbalancer_id", only),), only)
        return listeners, pools

    def _whole(
        self, id_: str, part: Children, depth: Depth, deadline: float
    ) -> Seen[Children] | Unknown:
        try:
            members: dict[str, tuple[native.Member, ...]] = {}
            if depth >= Depth.FULL:
                for pool_id in part.pools:
                    members_page = lists.MEMBERS.visible(
                        self._api, deadline, (), pool_id
                    )
                    members[pool_id] = _compact(members_page)
                full = frozenset(members)
            else:
                full = frozenset()
                if part.pools:
                    answer = lists.STATUS_TREE.read(self._api, id_, deadline)
                    for listener in answer.statuses.loadbalancer.listeners:
                        members |= {p.id: _compact(p.members) for p in listener.pools}
        except errors.CloudError as error:
            return Unknown(error)
        return Seen(dataclasses.replace(part, members=members, full=full))

    def _many(
        self,
        ids: Sequence[str],
        read: Callable[[str], Seen[Children] | Unknown],
    ) -> dict[str, Seen[Children] | Unknown]:
        return dict(zip(ids, parallel.each(read, ids, "children"), strict=True))


def _value(read: Seen[Children] | Unknown) -> Children:
    """Return what was read.

    Raises:
        CloudError: it could not be read.
    """
    if isinstance(read, Unknown):
        raise read.error
    return read.value


def _compact(members: Iterable[native.Member]) -> tuple[native.Member, ...]:
    """Share equal texts: there are many members at few addresses."""
    return tuple(
        native.Member(
            sys.intern(member.name or ""),
            sys.intern(member.address),
            member.protocol_port,
            member.subnet_id and sys.intern(member.subnet_id),
            member.weight,
            member.monitor_port,
            member.admin_state_up,
        )
        for member in members
    )


def _will_do(kept: Children | None, depth: Depth) -> bool:
    if kept is None:
        return False
    return depth < Depth.FULL or kept.full >= kept.pools.keys()


def _by_balancer(parts: Iterable[_Child]) -> Mapping[str, Sequence[_Child]]:
    """Group listeners or pools by the load balancers that they are under."""
    by_id: dict[str, list[_Child]] = {}
    for part in parts:
        for id_ in {balancer.id for balancer in part.loadbalancers}:
            by_id.setdefault(id_, []).append(part)
    return by_id


def _part(
    listeners: Iterable[native.Listener],
    pools: Iterable[native.Pool],
    monitors: Mapping[str, native.Monitor],
) -> Children:
    own = {pool.id: pool for pool in pools}
    used = {pool.healthmonitor_id for pool in own.values() if pool.healthmonitor_id}
    return Children(
        listeners=tuple(listeners),
        pools=own,
        monitors={key: monitors[key] for key in used if key in monitors},
    )


def depths(
    targets: Collection[Target],
    identities: Mapping[Ref, Identity],
    depth: Depth,
    config: settings.LoadBalancer,
) -> Mapping[str, Depth]:
    """Return the load balancers whose children matter, and how much of them.

    Those that Octavia is changing will have others soon; those that are deleted need
    none, except where only the Service's own part is deleted.
    """
    needed: dict[str, Depth] = {}
    for target in targets:
        for id_, own in _needs(target, identities[target.ref], depth, config):
            needed[id_] = max(own, needed.get(id_, Depth.CHANGED))
    return needed


def _needs(
    target: Target, observed: Identity, depth: Depth, config: settings.LoadBalancer
) -> Iterator[tuple[str, Depth]]:
    main, desired = observed.load_balancer, identity.desired_of(target)
    left = [
        (balancer, identity.relation_to_former(target.ref, balancer))
        for balancer in observed.former
    ]
    if main is not None and desired is None:
        left.append((main, observed.relation))
    elif main is not None and desired is not None:
        needs_all = depth <= Depth.CHANGED and needs_members(desired)
        if main.provisioning_status == native.ACTIVE:
            # A changed Service may have another port to be asked.
            yield main.id, Depth.FULL if needs_all else depth
    for balancer, relation in left:
        is_alone = not identity.other_users(balancer, target.ref)
        goes_whole = relation is Relation.OWNED and is_alone
        is_cascaded = goes_whole and config.cascade_delete
        if not (
            identity.is_pending(balancer)
            or identity.is_deleting(balancer)
            or is_cascaded
        ):
            yield balancer.id, depth


def needs_members(desired: Desired) -> bool:
    """Report whether monitor ports or subnets count, which only lists of members show.

    Subnets of the configuration are compared by deep drift detection alone: they change
    seldom, and for all Services together.
    """
    asks = desired.health_port > 0 and desired.monitored is not Monitored.NO
    return asks or desired.placement.names_member_subnet
