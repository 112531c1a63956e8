"""Objects of a cluster that this process has observed, by the object they serve.

Kept for the decisions that must not depend on one answer of the cloud: whether an
absence is credible, and whether the address of an object was ever in a status.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from lib.cloud import errors
from lib.cloud.support import absence, mass_absence


class Presence:
    """Observed objects, by ID and by UID. Safe for many threads."""

    def __init__(self, objects: str, remedy: str, clock: Callable[[], float]) -> None:
        """As of `mass_absence.MassAbsence`."""
        self._mass = mass_absence.MassAbsence(objects, remedy, clock)
        self._operation = f"find {objects}"
        self._by_uid: dict[str, frozenset[str]] = {}
        self._shown: frozenset[str] = frozenset()

    def note_list(
        self,
        listed: Collection[str],
        owners: Mapping[str, str],
        going: Collection[str],
    ) -> None:
        """Note a whole list.

        listed: all IDs. owners: UIDs by IDs of those that count; empty: not known.
        going: IDs of those that are being deleted.
        """
        self._mass.observed(owners)
        self._mass.forget(going)
        self._mass.listed(listed)
        is_known = self._mass.is_known
        by_uid = {
            uid: kept
            for uid, ids in self._by_uid.copy().items()
            if (kept := frozenset(id_ for id_ in ids if is_known(id_)))
        }
        for id_, uid in owners.items():
            if uid:
                by_uid[uid] = by_uid.get(uid, frozenset()) | {id_}
        self._by_uid = by_uid
        self._shown = frozenset(id_ for id_ in self._shown if is_known(id_))

    def note_read(self, ids: Iterable[str]) -> None:
        """Note objects that direct reads have found."""
        self._mass.observed(ids)

    def forget(self, id_: str) -> None:
        """Drop an object that is being deleted, or what stands for one."""
        self._mass.forget((id_,))

    def ids_of(self, uid: str) -> frozenset[str]:
        """Return the IDs of what was observed with a UID, and is not deleted."""
        known = self._by_uid.get(uid, frozenset())
        return frozenset(id_ for id_ in known if self._mass.is_known(id_))

    def is_known(self, id_: str) -> bool:
        """Report whether an object was observed, and is not forgotten."""
        return self._mass.is_known(id_)

    def note_shown(self, id_: str) -> None:
        """Note that the address of an object is in the status of what it serves."""
        self._shown |= {id_}

    def was_shown(self, id_: str) -> bool:
        """Report whether its address was observed in a status."""
        return id_ in self._shown

    def confirm_s(
        self, absent: Collection[str], *, is_leaving: bool, is_released: bool
    ) -> float:
        """Return how long these absences must last before they have effects.

        is_leaving: what they serve is being deleted. is_released: the cloud shows that
        their address leads nowhere.

        Raises:
            NotCredible: too many are absent, and what they serve is not being deleted.
        """
        if not absent:
            return absence.CONFIRM_S
        try:
            self._mass.check(absent, self._operation)
        except errors.NotCredible:
            if not is_leaving:
                raise
            return absence.IN_USE_S
        return absence.CONFIRM_S if is_leaving or is_released else absence.IN_USE_S

    def note_replaced(self, ids: Iterable[str]) -> None:
        """Note that the absence of these objects takes effect now."""
        self._mass.replaced(ids)
