"""Load balancers of the cluster's Services that this process has observed.

Kept for the decisions that must not depend on one answer of Octavia: whether an absence
is credible, and whether the address of a load balancer was ever in a status.
"""

from collections.abc import Callable, Collection, Hashable

from lib.cloud import absence_limit, errors
from lib.cloud.load_balancers import Ref
from lib.cloud.openstack.load_balancers.read import identity, native
from lib.cloud.openstack.load_balancers.read.observed import Identity
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.support import absence, mass_absence

_REMEDY = (
    "check Octavia; to have a load balancer recreated that was deleted, set annotation"
    f" {absence_limit.CONFIRM_ANNOTATION} of its Service to its ID"
)


class Presence:
    """What was observed, by ID. Safe for many threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: monotonic seconds."""
        self._mass = mass_absence.MassAbsence("load balancers", _REMEDY, clock)
        self._by_uid: dict[str, frozenset[str]] = {}
        self._shown: frozenset[str] = frozenset()

    def note_list(
        self,
        listed: Collection[native.LoadBalancer],
        refs: Collection[Ref],
        known: Collection[str],
    ) -> bool:
        """Note the list of the project; report whether one is of the cluster.

        refs: Services of the cluster. known: IDs that some of them lead to.
        """
        clusters = {ref.cluster.id for ref in refs}
        owners: dict[str, str] = {}
        for balancer in listed:
            if not identity.is_deleting(balancer):
                tags = identity.ownership_tags_of(balancer)
                uids = (names.uid_of(tags, cluster) for cluster in clusters)
                owners[balancer.id] = next((uid for uid in uids if uid), "")
        own = {id_ for id_, uid in owners.items() if uid or id_ in known}
        ids = {balancer.id for balancer in listed}
        self._mass.observed(own)
        self._mass.forget(ids - owners.keys())
        self._mass.listed(ids)
        self._note_owners({id_: uid for id_, uid in owners.items() if uid})
        return bool(own or ids.intersection(known))

    def _note_owners(self, owners: dict[str, str]) -> None:
        is_known = self._mass.is_known
        by_uid = {
            uid: kept
            for uid, ids in self._by_uid.copy().items()
            if (kept := frozenset(id_ for id_ in ids if is_known(id_)))
        }
        for id_, uid in owners.items():
            by_uid[uid] = by_uid.get(uid, frozenset()) | {id_}
        self._by_uid = by_uid
        self._shown = frozenset(id_ for id_ in self._shown if is_known(id_))

    def note_read(self, ids: Collection[str]) -> None:
        """Note load balancers that direct reads have found."""
        self._mass.observed(ids)

    def forget(self, id_: str) -> None:
        """Drop a load balancer that is being deleted."""
        self._mass.forget((id_,))

    def ids_of(self, ref: Ref) -> frozenset[str]:
        """Return the IDs of load balancers that were observed with a Service's tag."""
        known = self._by_uid.get(ref.uid, frozenset())
        return frozenset(id_ for id_ in known if self._mass.is_known(id_))

    def note_shown(
        self, ref: Ref, observed: Identity, floating_ips: Collection[native.FloatingIp]
    ) -> None:
        """Note a load balancer whose address is in the status of its Service."""
        main, shown = observed.load_balancer, {*identity.hints_of(ref).addresses}
        if main is not None:
            self._mass.forget((_pseudo_id(ref),))
            if shown & identity.addresses(main, floating_ips):
                self._shown |= {main.id}

    def was_shown(self, id_: str) -> bool:
        """Report whether its address was observed in the status of a Service."""
        return id_ in self._shown

    def confirm_s(
        self,
        ref: Ref,
        absent: Collection[Hashable],
        floating_ips: Collection[native.FloatingIp],
        *,
        is_leaving: bool,
    ) -> float:
        """Return how long these absences must last before they have effects.

        absent: IDs, or what stands for a Service without one.

        Raises:
            NotCredible: they are not credible, and the Service is not being deleted.
        """
        own = self._own(ref, absent)
        if not own:
            return absence.CONFIRM_S
        try:
            self._mass.check(own, "find the load balancer")
        except errors.NotCredible:
            if not is_leaving:
                raise
            return absence.IN_USE_S
        is_short = is_leaving or identity.is_released(ref, floating_ips)
        return absence.CONFIRM_S if is_short else absence.IN_USE_S

    def note_replaced(self, ref: Ref, absent: Collection[Hashable]) -> None:
        """Note that the absence of what a Service leads to takes effect now."""
        own = self._own(ref, absent)
        self._mass.replaced(own)

    def _own(self, ref: Ref, absent: Collection[Hashable]) -> set[str]:
        """Return for which of these a Service has certainly been served before."""
        hints = identity.hints_of(ref)
        is_shown = bool(hints.addresses) or hints.shows_name
        own: set[str] = set()
        for key in absent:
            if not isinstance(key, str):
                own.add(_pseudo_id(ref))
            elif self._mass.is_known(key) or (is_shown and key == hints.owned_id):
                own.add(key)
        return own - hints.confirmed


def _pseudo_id(ref: Ref) -> str:
    """Return what stands for the load balancer of a Service that names none."""
    return f"Service {ref.uid}"
