"""Observes load balancers for many Services together."""

import dataclasses
from collections.abc import Collection, Hashable, Mapping

import structlog

from lib.cloud import absence_limit, errors, provider_id
from lib.cloud.load_balancers import (
    Depth,
    Node,
    Observation,
    Observed,
    Ref,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import singles
from lib.cloud.openstack.load_balancers.read import (
    children,
    identity,
    lists,
    native,
    plan_environment,
)
from lib.cloud.openstack.load_balancers.read.observed import (
    Children,
    Environment,
    Features,
    Former,
    Identity,
    Tree,
    Version,
)
from lib.cloud.openstack.load_balancers.spec import providers
from lib.cloud.support import absence, absence_scope, expiring, presence

LEAVING_S = 300.0
"""For how long it is remembered that a Service was being deleted."""
TIMEOUT_S = 120.0
"""Of one observation with all its calls."""
ABSENT_POLL_S = 60.0
"""Interval at which a load balancer is read whose absence has to last long."""

_REMEDY = (
    "check Octavia; to have a load balancer recreated that was deleted, set annotation"
    f" {absence_limit.CONFIRM_ANNOTATION} of its Service to its ID"
)
_WORDS = absence.Words(provider_id.OPENSTACK, "load balancers")
_Missing = Mapping[str, native.LoadBalancer | errors.CloudError | None]
"""What direct reads of IDs that the list lacks answered; None: does not exist."""
UNEXPECTED = "unexpected error; the log of openstack-ccm has it"


class OctaviaObserver:
    """Reads everything. Keeps only what `ChildrenReader` and `Kept` keep."""

    def __init__(
        self,
        api: client.Client,
        config: settings.LoadBalancer,
        guard: absence_scope.Guard,
    ) -> None:
        """guard: where absence counts."""
        self._api = api
        self._config = config
        self._absences = absence.Absences(
            absence.DirectReads(self._own, self._has_any), _WORDS, guard, api.now
        )
        self._presence = presence.Presence("load balancers", _REMEDY, api.now)
        self._twins = expiring.Expiring[Hashable, float](absence.FORGET_S, api.now)
        self._children = children.ChildrenReader(api)
        self._kept = plan_environment.Kept(api.now)
        self._leaving = expiring.Expiring[str, Ref](LEAVING_S, api.now)
        self._log = structlog.stdlib.get_logger()

    def note_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Keep the cluster's Nodes: they show which project is its own."""
        self._absences.note_nodes(nodes)

    def note_deleting(self, balancer_id: str) -> None:
        """Record that a load balancer is being deleted."""
        self._absences.note_deleting(balancer_id)
        self._presence.forget(balancer_id)

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
        self._leaving.drop(target.ref.uid for target in targets)
        for target in targets:
            if target.spec is None:
                self._leaving.put(target.ref.uid, target.ref)
        try:
            batch, judged, version = self._common(targets, depth, deadline)
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        unknown = {
            r: identity_or_error
            for r, identity_or_error in judged.items()
            if isinstance(identity_or_error, Unknown)
        }
        identities = {
            r: identity_or_error
            for r, identity_or_error in judged.items()
            if not isinstance(identity_or_error, Unknown)
        }
        targets = [target for target in targets if target.ref in identities]
        depths = children.depths(targets, identities, depth, self._config)
        needed = {
            balancer.id: balancer
            for each in identities.values()
            for balancer in (each.load_balancer, *each.former)
            if balancer is not None and balancer.id in depths
        }
        reuses = depth <= Depth.CHANGED
        some = tuple(needed.values())
        read = self._children.read(some, depths, deadline, reuses=reuses)
        if depth >= Depth.FULL:
            ids = {
                balancer.vip_port_id
                for balancer in needed.values()
                if balancer.vip_port_id
            }
            try:
                batch.read_vip_ports(ids)
            except errors.CloudError as error:
                return unknown | {target.ref: Unknown(error) for target in targets}
        return unknown | {
            (ref := target.ref): self._isolated(
                target, identities[ref], read, batch, version
            )
            for target in targets
        }

    def _isolated(
        self,
        target: Target,
        observed: Identity,
        read: Mapping[str, Seen[Children] | Unknown],
        batch: plan_environment.Batch,
        version: Version,
    ) -> Observation:
        """Observe one target; an unexpected error concerns no other of the batch."""
        try:
            return self._one(target, observed, read, batch, version)
        except Exception as error:
            self._log.error(
                "unexpected error in observation", key=target.ref.key, exc_info=error
            )
            return Unknown(errors.Unavailable(UNEXPECTED, operation="observe"))

    def _common(
        self, targets: Collection[Target], depth: Depth, deadline: float
    ) -> tuple[plan_environment.Batch, Mapping[Ref, Identity | Unknown], Version]:
        """Read the lists that all targets need, and find each its load balancer."""
        version = self._api.version(client.Service.LOAD_BALANCER)
        balancers = lists.LOAD_BALANCERS.of_project(self._api, deadline)
        self._children.forget(balancer.id for balancer in balancers)
        floating_ips = lists.FLOATING_IPS.of_project(self._api, deadline)
        group_names = {
            identity.names_of(target.ref).security_group
            for target in targets
            if target.spec is None or self._looks_for_groups(depth)
        }
        groups: tuple[native.SecurityGroup, ...] = ()
        if group_names:
            few = sorted(group_names) if len(group_names) <= lists.NAMED else ()
            named = tuple(("name", name) for name in few)
            groups = lists.SECURITY_GROUPS.of_project(self._api, deadline, named)
        batch = plan_environment.Batch(
            self._api,
            self._config,
            deadline,
            floating_ips,
            _by_name(groups),
            self._kept,
        )
        refs = [target.ref for target in targets]
        missing = self._complete(refs, balancers, deadline)
        more = [x for x in missing.values() if isinstance(x, native.LoadBalancer)]
        index = identity.Index((*balancers, *more), floating_ips)
        identities: dict[Ref, Identity | Unknown] = {}
        for ref in refs:
            try:
                identities[ref] = self._judged(
                    ref, index.identify(ref), missing, floating_ips, deadline
                )
            except errors.CloudError as error:
                identities[ref] = Unknown(error)
        return batch, identities, version

    def _complete(
        self,
        refs: Collection[Ref],
        listed: Collection[native.LoadBalancer],
        deadline: float,
    ) -> _Missing:
        """Read directly what the Services lead to and the list lacks."""
        ids = {balancer.id for balancer in listed}
        known = {id_ for ref in refs for id_ in identity.ids_of(ref)}
        going = {each.id for each in listed if identity.is_deleting(each)}
        for id_ in going:
            self._absences.note_deleting(id_)
        owners = identity.owners(listed, refs, known)
        self._presence.note_list(ids, owners, going)
        if owners or known & ids:
            self._absences.note_home()
        for ref in refs:
            known |= self._presence.ids_of(ref.uid)
        missing = self._absences.complete(known, ids, deadline)
        self._presence.note_read(
            [id_ for id_, x in missing.items() if isinstance(x, native.LoadBalancer)]
        )
        return missing

    def _judged(
        self,
        ref: Ref,
        observed: Identity,
        missing: _Missing,
        floating_ips: Collection[native.FloatingIp],
        deadline: float,
    ) -> Identity:
        """Return the identity with the seconds until its absences are confirmed.

        Raises:
            CloudError: it is unknown whether the load balancer exists.
        """
        if observed.going:
            self._absences.note_deleting(ref.uid)
        self._note_present(ref, observed, floating_ips)
        keys = identity.missing_keys(
            ref,
            observed,
            missing,
            self._absences.is_deleting,
            self._presence.ids_of(ref.uid),
        )
        if keys:
            return self._absent(ref, observed, keys, floating_ips, deadline)
        shown = [x for x in observed.duplicates if self._presence.was_shown(x.id)]
        if shown and not identity.hints_of(ref).confirmed:
            spares = [x for x in observed.duplicates if x not in shown]
            kept = (*observed.kept, *shown)
            observed = dataclasses.replace(
                observed, duplicates=tuple(spares), kept=kept
            )
        twins_s = self._twins_s(observed, deadline)
        return dataclasses.replace(observed, twins_in_s=twins_s)

    def _note_present(
        self,
        ref: Ref,
        observed: Identity,
        floating_ips: Collection[native.FloatingIp],
    ) -> None:
        main, shown = observed.load_balancer, identity.hints_of(ref).addresses
        for id_ in observed.shown_ids:
            self._presence.note_shown(id_)
        if main is not None:
            self._absences.note_present([(ref.uid, shown)])
            self._presence.forget(identity.substitute(ref))
            if not identity.addresses(main, floating_ips).isdisjoint(shown):
                self._presence.note_shown(main.id)

    def _absent(
        self,
        ref: Ref,
        observed: Identity,
        keys: Collection[Hashable],
        floating_ips: Collection[native.FloatingIp],
        deadline: float,
    ) -> Identity:
        """Return the identity of a Service whose load balancer seems absent.

        Raises:
            CloudError: it is unknown whether the load balancer exists.
        """
        self._absences.check_home(deadline)
        is_leaving = self._leaving.get(ref.uid) is not None
        own = identity.served_by(ref, keys, self._presence.is_known)
        confirm_s = self._presence.confirm_s(
            own,
            is_leaving=is_leaving,
            is_released=identity.is_released(ref, floating_ips),
        )
        wait_s = self._absences.left_s(keys, deadline, confirm_s)
        if wait_s:
            is_long = confirm_s > absence.CONFIRM_S
            ids = [key for key in keys if isinstance(key, str)]
            return dataclasses.replace(
                observed,
                absent_in_s=min(wait_s, ABSENT_POLL_S),
                absent_id=ids[0] if ids and is_long else "",
            )
        if not is_leaving:
            self._presence.note_replaced(own)
        return dataclasses.replace(
            observed, twins_in_s=self._twins_s(observed, deadline)
        )

    def _twins_s(self, observed: Identity, deadline: float) -> float:
        """Return when another load balancer with our tag may be deleted: 0.0: now.

        Only while the one in use is there, which a direct read confirms.
        """
        main = observed.load_balancer
        if main is None or not observed.duplicates:
            return 0.0
        keys = [(main.id, balancer.id) for balancer in observed.duplicates]
        if wait_s := absence.held_s(self._twins, keys, self._api.now):
            return wait_s
        answer = lists.LOAD_BALANCER.find(self._api, main.id, deadline)
        if answer is not None and not identity.is_deleting(answer.loadbalancer):
            return 0.0
        self._twins.drop(keys)
        return absence.CONFIRM_S

    def _own(self, id_: str, deadline: float) -> native.LoadBalancer | None:
        """Read a load balancer; None when our project has none of this ID."""
        answer = lists.LOAD_BALANCER.find(self._api, id_, deadline)
        if answer is None or not self._api.project_filter():
            return None if answer is None else answer.loadbalancer
        project = answer.loadbalancer.project_id
        is_own = project in ("", None, self._api.project_id())
        return answer.loadbalancer if is_own else None

    def _has_any(self, server_ids: Collection[str], deadline: float) -> bool:
        servers = singles.servers(self._api, server_ids, deadline)
        return any(isinstance(server, Seen) for server in servers.values())

    def _is_abandoned(self, observed: Identity, own: Children | None) -> bool:
        main = observed.load_balancer
        if main is None or own is None or main.provisioning_status != native.ERROR:
            return False
        return identity.is_abandoned(main, own.listeners, self._leaving.values())

    def _looks_for_groups(self, depth: Depth) -> bool:
        """Report whether groups matter: where none are managed, only former ones."""
        return self._config.manage_security_groups or depth > Depth.CHANGED

    def _one(
        self,
        target: Target,
        observed: Identity,
        read: Mapping[str, Seen[Children] | Unknown],
        batch: plan_environment.Batch,
        version: Version,
    ) -> Observation:
        own: Children | None = None
        if observed.load_balancer is not None:
            main_read = read.get(observed.load_balancer.id)
            if isinstance(main_read, Unknown):
                return main_read
            own = main_read.value if main_read is not None else None
        groups = batch.groups.get(identity.names_of(target.ref).security_group, ())
        desired = identity.desired_of(target)
        try:
            if desired is None:
                environment = plan_environment.of_deletion(batch, groups)
            elif observed.load_balancer is not None and own is None:
                # Nothing is planned while Octavia is changing it, or failed.
                environment = Environment(batch.floating_ips, groups)
            else:
                environment = plan_environment.of_desired(
                    batch, desired, observed, own, groups
                )
        except errors.CloudError as error:
            return Unknown(error)
        former = _former(target.ref, observed, read)
        if isinstance(former, Unknown):
            return former
        can = features(version, observed.provider(self._config))
        tree = Tree(
            observed, can, own, environment, former, self._is_abandoned(observed, own)
        )
        main = observed.load_balancer
        return Seen(
            Observed(
                is_there=is_anything_there(target.ref, observed, environment),
                id=main.id if main else "",
                native=tree,
            )
        )


def is_anything_there(ref: Ref, observed: Identity, environment: Environment) -> bool:
    """Report whether an owned object of this Service still exists."""
    return bool(
        observed.load_balancer
        or observed.going
        or observed.duplicates
        or observed.kept
        or observed.former
        or environment.groups
        or any(identity.is_ours(ip, ref) for ip in environment.floating_ips)
    )


def _by_name(
    groups: Collection[native.SecurityGroup],
) -> Mapping[str, plan_environment.Groups]:
    by_name: dict[str, plan_environment.Groups] = {}
    for group in sorted(groups, key=lambda group: group.id):
        by_name[group.name] = (*by_name.get(group.name, ()), group)
    return by_name


def _former(
    ref: Ref, observed: Identity, reads: Mapping[str, Seen[Children] | Unknown]
) -> tuple[Former, ...] | Unknown:
    former: list[Former] = []
    for balancer in observed.former:
        read = reads.get(balancer.id)
        if isinstance(read, Unknown):
            return read
        children_ = read.value if read is not None else None
        former.append(
            Former(balancer, identity.relation_to_former(ref, balancer), children_)
        )
    return tuple(former)


def features(version: Version, provider: str) -> Features:
    """Return the features of a provider; ovn has tags and little else."""
    is_full = provider != providers.OVN
    return Features(
        timeouts=is_full and version >= (2, 1),
        tags=version >= (2, 5),
        flavors=is_full and version >= (2, 6),
        additive_members=version >= (2, 11),
        cidrs=is_full and version >= (2, 12),
        zones=is_full and version >= (2, 14),
        udp_http_monitors=is_full and version >= (2, 16),
        additional_vips=is_full and version >= (2, 26),
        http_monitors=is_full,
    )
