"""Observes load balancers for many Services at once."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import structlog

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Depth,
    Observation,
    Observed,
    Ref,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.read import (
    absence,
    identity,
    lists,
    native,
    surroundings,
)
from lib.cloud.openstack.load_balancers.read.children import ChildrenReader
from lib.cloud.openstack.load_balancers.read.observed import (
    Children,
    Features,
    Former,
    Identity,
    Relation,
    Surroundings,
    Tree,
    features,
)
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.wanted import Monitored, Wanted

LEAVING_S = 300.0
"""For how long it is remembered that a Service was being deleted."""
TIMEOUT_S = 120.0
"""Of one observation with all its calls."""


UNEXPECTED = "unexpected error; the log of openstack-ccm has it"


def wanted_of(target: Target) -> Wanted | None:
    """Give the room's own part of a target's spec."""
    if target.spec is None or not isinstance(target.spec.native, Wanted):
        return None
    return target.spec.native


class Observer:
    """Reads everything. Keeps only what `ChildrenReader` and `Kept` keep."""

    def __init__(
        self,
        api: client.Client,
        config: settings.LoadBalancer,
        absences: absence.Absences,
    ) -> None:
        self._api = api
        self._config = config
        self._absences = absences
        self._children = ChildrenReader(api)
        self._kept = surroundings.Kept(api.now)
        self._leaving = _Leaving(api.now)
        self._log = structlog.stdlib.get_logger()

    def forget(self, balancer_id: str, *, only_members: bool = False) -> None:
        """Drop what is kept of a load balancer that we have changed."""
        self._children.drop(balancer_id, only_members=only_members)

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """See the protocol."""
        deadline = self._api.now() + TIMEOUT_S
        if not targets:
            return {}
        self._leaving.note(targets)
        try:
            batch, judged, can = self._common(targets, depth, deadline)
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        unknown = {r: one for r, one in judged.items() if isinstance(one, Unknown)}
        found = {r: one for r, one in judged.items() if not isinstance(one, Unknown)}
        targets = [target for target in targets if target.ref in found]
        depths = _depths(targets, found, depth, self._config)
        needed = {
            one.id: one
            for each in found.values()
            for one in (each.load_balancer, *each.former)
            if one is not None and one.id in depths
        }
        reuses = depth <= Depth.CHANGED
        some = tuple(needed.values())
        children = self._children.read(some, depths, deadline, reuses=reuses)
        if depth >= Depth.FULL:
            ids = {one.vip_port_id for one in needed.values() if one.vip_port_id}
            try:
                batch.vip_ports = lists.ports_there(self._api, ids, deadline)
            except errors.CloudError as error:
                return unknown | {target.ref: Unknown(error) for target in targets}
        return unknown | {
            target.ref: self._isolated(target, found[target.ref], children, batch, can)
            for target in targets
        }

    def _isolated(
        self,
        target: Target,
        found: Identity,
        children: Mapping[str, Seen[Children] | Unknown],
        batch: surroundings.Batch,
        can: Features,
    ) -> Observation:
        """Observe one target; an unexpected error concerns no other of the batch."""
        try:
            return self._one(target, found, children, batch, can)
        except Exception as error:
            self._log.error(
                "unexpected error in observation", key=target.ref.key, exc_info=error
            )
            return Unknown(errors.Unavailable(UNEXPECTED, operation="observe"))

    def _common(
        self, targets: Collection[Target], depth: Depth, deadline: float
    ) -> tuple[surroundings.Batch, Mapping[Ref, Identity | Unknown], Features]:
        """Read the lists that all targets need, and find each its load balancer."""
        version = self._api.version(client.Service.LOAD_BALANCER)
        balancers = lists.load_balancers(self._api, deadline)
        self._children.forget(one.id for one in balancers)
        floating_ips = lists.floating_ips(self._api, deadline)
        wanted = {
            names.security_group(target.ref)
            for target in targets
            if target.spec is None or self._looks_for_groups(depth)
        }
        groups: tuple[native.SecurityGroup, ...] = ()
        if wanted:
            groups = lists.security_groups(self._api, wanted, deadline)
        batch = surroundings.Batch(
            self._api,
            self._config,
            deadline,
            floating_ips,
            _by_name(groups),
            self._kept,
        )
        refs = [target.ref for target in targets]
        known = self._absences.complete(refs, balancers, deadline)
        index = identity.Index(known.load_balancers, floating_ips)
        found: dict[Ref, Identity | Unknown] = {}
        for ref in refs:
            one = index.identify(ref)
            try:
                found[ref] = self._absences.judge(ref, one, known, deadline)
            except errors.CloudError as error:
                found[ref] = Unknown(error)
        return batch, found, features(version, self._config.lb_provider)

    def _is_abandoned(self, found: Identity, own: Children | None) -> bool:
        main = found.load_balancer
        if main is None or own is None or main.provisioning_status != native.ERROR:
            return False
        return identity.is_abandoned(main, own.listeners, self._leaving.refs())

    def _looks_for_groups(self, depth: Depth) -> bool:
        """Say whether groups count: where none are kept only those left from before."""
        return self._config.manage_security_groups or depth > Depth.CHANGED

    def _one(
        self,
        target: Target,
        found: Identity,
        children: Mapping[str, Seen[Children] | Unknown],
        batch: surroundings.Batch,
        can: Features,
    ) -> Observation:
        own: Children | None = None
        if found.load_balancer is not None:
            read = children.get(found.load_balancer.id)
            if isinstance(read, Unknown):
                return read
            own = read.value if read is not None else None
        groups = batch.groups.get(names.security_group(target.ref), ())
        wanted = wanted_of(target)
        try:
            if wanted is None:
                around = surroundings.of_deletion(batch, groups)
            elif found.load_balancer is not None and own is None:
                # Nothing is planned while Octavia is at it, or failed.
                around = Surroundings(batch.floating_ips, groups)
            else:
                around = surroundings.of_wanted(batch, wanted, found, own, groups)
        except errors.CloudError as error:
            return Unknown(error)
        former = _former(target.ref, found, children)
        if isinstance(former, Unknown):
            return former
        tree = Tree(found, can, own, around, former, self._is_abandoned(found, own))
        main = found.load_balancer
        return Seen(
            Observed(
                is_there=is_anything_there(target.ref, found, around),
                id=main.id if main else "",
                native=tree,
            )
        )


class _Leaving:
    """Services that were last observed while they were being deleted. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._refs: dict[str, tuple[Ref, float]] = {}

    def note(self, targets: Iterable[Target]) -> None:
        """Note which of the observed Services are being deleted, and which are not."""
        now = self._clock()
        with self._lock:
            kept = self._refs.items()
            self._refs = {u: old for u, old in kept if now - old[1] < LEAVING_S}
            for target in targets:
                self._refs.pop(target.ref.uid, None)
                if target.spec is None:
                    self._refs[target.ref.uid] = (target.ref, now)

    def refs(self) -> tuple[Ref, ...]:
        """Return those that were."""
        with self._lock:
            return tuple(ref for ref, _ in self._refs.values())


def is_anything_there(ref: Ref, found: Identity, around: Surroundings) -> bool:
    """Say whether something of ours is left for this Service."""
    return bool(
        found.load_balancer
        or found.going
        or found.duplicates
        or found.former
        or around.groups
        or any(identity.is_ours(ip, ref) for ip in around.floating_ips)
    )


def _by_name(
    groups: Collection[native.SecurityGroup],
) -> Mapping[str, surroundings.Groups]:
    found: dict[str, surroundings.Groups] = {}
    for group in sorted(groups, key=lambda one: one.id):
        found[group.name] = (*found.get(group.name, ()), group)
    return found


def _depths(
    targets: Collection[Target],
    found: Mapping[Ref, Identity],
    depth: Depth,
    config: settings.LoadBalancer,
) -> Mapping[str, Depth]:
    """Say of which load balancers the children matter, and how much of them.

    Those that Octavia is at will have others soon, and those that go need none, but
    where only our part of them goes.
    """
    depths: dict[str, Depth] = {}
    for target in targets:
        for id_, own in _needs(target, found[target.ref], depth, config):
            depths[id_] = max(own, depths.get(id_, Depth.CHANGED))
    return depths


def _needs(
    target: Target, found: Identity, depth: Depth, config: settings.LoadBalancer
) -> Iterator[tuple[str, Depth]]:
    main, wanted = found.load_balancer, wanted_of(target)
    left = [(one, relation_to_former(target.ref, one)) for one in found.former]
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
        if not (one.is_pending or one.is_going or is_cascaded):
            yield one.id, depth


def _former(
    ref: Ref, found: Identity, children: Mapping[str, Seen[Children] | Unknown]
) -> tuple[Former, ...] | Unknown:
    former: list[Former] = []
    for one in found.former:
        read = children.get(one.id)
        if isinstance(read, Unknown):
            return read
        there = read.value if read is not None else None
        former.append(Former(one, relation_to_former(ref, one), there))
    return tuple(former)


def relation_to_former(ref: Ref, one: native.LoadBalancer) -> Relation:
    """Say what one that a Service has left was to it."""
    is_marked = names.mark(ref) in identity.marks_of(one)
    return Relation.OWNED if is_marked else Relation.SHARED


def needs_members(wanted: Wanted) -> bool:
    """Say whether monitor ports or subnets count, which only lists of members show.

    What the configuration says of subnets is compared by deep looks alone: it changes
    seldom, and for all Services at once.
    """
    asks = wanted.is_local and wanted.monitored is not Monitored.NO
    return asks or wanted.placement.names_member_subnet
