"""Reads listeners, pools, monitors and members of load balancers, few calls for many.

What was read is kept by load balancer, and used again as long as its `updated_at`
says that nothing under it has changed, and we have changed nothing ourselves. That has
a resolution of one second, so what was read right after the last change is used for a
few seconds only.

After we have set members, only members are read again: listeners, pools and monitors
are those of before, for one read. What others changed meanwhile is in the next one.
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
from lib.cloud.openstack.load_balancers.spec.wanted import Monitored, Wanted
from lib.cloud.support import expiring, parallel

CROWD = 100
TIMES = 5
"""A project with more load balancers, and so many times ours, is mostly of others."""
PER_LIST = 50
"""Load balancers of the project for each that is read by itself, at least: lists of
1,000 are fewer calls for more."""
FEW = 20
"""So many are read by themselves in any such project."""
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
        wanted: Collection[native.LoadBalancer],
        depths: Mapping[str, Depth],
        deadline: float,
        *,
        reuses: bool,
    ) -> Mapping[str, Seen[Children] | Unknown]:
        """Return the children of each of these load balancers, by its id.

        depths: by the same ids. reuses: what is kept will do where nothing changed.
        """
        found: dict[str, Seen[Children] | Unknown] = {}
        noted: dict[str, _Kept] = {}
        now = self._api.now()
        for one in wanted:
            kept = self._note(one, now)
            noted[one.id] = kept
            is_good = now < kept.until and _will_do(kept.children, depths[one.id])
            if reuses and is_good:
                found[one.id] = Seen(kept.children or Children())
        missing = [one for one in wanted if one.id not in found]
        if not missing:
            return found
        taken = self._take_outlines(missing)
        outlines = taken if reuses else {}
        rest = [one for one in missing if one.id not in outlines]
        try:
            read = {**outlines, **(self._lists(rest, deadline) if rest else {})}
        except errors.CloudError as error:
            return found | {one.id: Unknown(error) for one in missing}
        trees = self._many(
            [one.id for one in missing],
            lambda id_: self._whole(id_, read[id_], depths[id_], deadline),
        )
        for one in missing:
            is_listed = one.id not in outlines
            is_still = is_listed and now - noted[one.id].since >= STILL_S
            until = float("inf") if is_still else now + FRESH_S
            kept = dataclasses.replace(noted[one.id], until=until, is_listed=is_listed)
            self._keep(one.id, noted[one.id], kept, trees[one.id])
        return found | trees

    def forget(self, present: Iterable[str]) -> None:
        """Drop what is kept of load balancers that are no more."""
        ids = set(present)
        with self._lock:
            self._listed = len(ids)
            self._kept = {key: one for key, one in self._kept.items() if key in ids}
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
        taken = ((one.id, self._outlines.take(one.id)) for one in missing)
        return {id_: outline for id_, outline in taken if outline is not None}

    def _note(self, one: native.LoadBalancer, now: float) -> _Kept:
        with self._lock:
            kept = self._kept.get(one.id)
            updated_at = one.updated_at or ""
            if kept is None or kept.updated_at != updated_at or not updated_at:
                kept = self._kept[one.id] = _Kept(updated_at, now)
            return kept

    def _keep(
        self, id_: str, noted: _Kept, kept: _Kept, read: Seen[Children] | Unknown
    ) -> None:
        """Keep what was read, unless it was changed meanwhile."""
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
            wanted = [one.id for one in missing]
            parts = self._many(wanted, lambda id_: self._single(id_, deadline))
            return {id_: _value(part) for id_, part in parts.items()}
        only = missing[0].id if len(missing) == 1 else ""
        listeners, pools = self._outer(only, deadline)
        ids = {one.id for one in missing}
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
            found = [
                lists.MONITOR.find(self._api, one, deadline) for one in sorted(used)
            ]
            read = [one.healthmonitor for one in found if one is not None]
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
                    found = lists.MEMBERS.visible(self._api, deadline, (), pool_id)
                    members[pool_id] = _compact(found)
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
            sys.intern(one.name or ""),
            sys.intern(one.address),
            one.protocol_port,
            one.subnet_id and sys.intern(one.subnet_id),
            one.weight,
            one.monitor_port,
            one.admin_state_up,
        )
        for one in members
    )


def _will_do(kept: Children | None, depth: Depth) -> bool:
    if kept is None:
        return False
    return depth < Depth.FULL or kept.full >= kept.pools.keys()


def _by_balancer(parts: Iterable[_Child]) -> Mapping[str, Sequence[_Child]]:
    """Group listeners or pools by the load balancers that they are under."""
    found: dict[str, list[_Child]] = {}
    for part in parts:
        for id_ in {balancer.id for balancer in part.loadbalancers}:
            found.setdefault(id_, []).append(part)
    return found


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
    found: Mapping[Ref, Identity],
    depth: Depth,
    config: settings.LoadBalancer,
) -> Mapping[str, Depth]:
    """Return the load balancers whose children matter, and how much of them.

    Those that Octavia is at will have others soon, and those that go need none, but
    where only our part of them goes.
    """
    needed: dict[str, Depth] = {}
    for target in targets:
        for id_, own in _needs(target, found[target.ref], depth, config):
            needed[id_] = max(own, needed.get(id_, Depth.CHANGED))
    return needed


def _needs(
    target: Target, found: Identity, depth: Depth, config: settings.LoadBalancer
) -> Iterator[tuple[str, Depth]]:
    main, wanted = found.load_balancer, identity.wanted_of(target)
    left = [(one, identity.relation_to_former(target.ref, one)) for one in found.former]
    if main is not None and wanted is None:
        left.append((main, found.relation))
    elif main is not None and wanted is not None:
        needs_all = depth <= Depth.CHANGED and needs_members(wanted)
        if main.provisioning_status == native.ACTIVE:
            # A changed Service may have another port to be asked.
            yield main.id, Depth.FULL if needs_all else depth
    for one, relation in left:
        is_alone = not identity.is_used_by_others(one, target.ref)
        goes_whole = relation is Relation.OWNED and is_alone
        is_cascaded = goes_whole and config.cascade_delete
        if not (identity.is_pending(one) or identity.is_deleting(one) or is_cascaded):
            yield one.id, depth


def needs_members(wanted: Wanted) -> bool:
    """Report whether monitor ports or subnets count, which only lists of members show.

    What the configuration says of subnets is compared by deep looks alone: it changes
    seldom, and for all Services at once.
    """
    asks = wanted.health_port > 0 and wanted.monitored is not Monitored.NO
    return asks or wanted.placement.names_member_subnet
