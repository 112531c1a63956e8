"""Storage domains for volumes, with what each one is fit for.

One request reads those of all data centers: only a data center shows their status.
"""

import dataclasses
import math
import threading
from collections.abc import Callable, Collection, Iterator

from ovirtsdk4 import types

from lib.cloud import errors
from lib.cloud.zvirt import client
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.volumes.class_parameters import DOMAIN
from lib.process import config

KEEP_S = 600.0
"""For which domains are kept; what does not fit is read again before it is refused."""
AGAIN_S = 5.0
"""Between two reads for what does not fit."""
DATA_CENTERS = "datacenters"
FIELD = f"parameter {DOMAIN}"
_BLOCK = frozenset({"iscsi", "fcp"})
_FILE = frozenset({"nfs", "glusterfs", "posixfs", "localfs"})
_OPERATION = "find storage domain"
_SHOWN_MAX = 20


@dataclasses.dataclass(frozen=True, slots=True)
class StorageDomain:
    """One domain. kind: such as data. storage: such as nfs. status: in its data center.

    available_bytes, size_bytes: free, and of all of it.
    """

    id: str
    name: str
    data_center: str
    data_center_id: str
    kind: str
    storage: str
    status: str
    available_bytes: int
    size_bytes: int

    @property
    def is_block(self) -> bool:
        """Whether it consists of block devices."""
        return self.storage in _BLOCK

    @property
    def is_for_data(self) -> bool:
        """Whether disks can be created in it, now or later."""
        return self.kind == "data" and self.storage in _BLOCK | _FILE

    @property
    def is_active(self) -> bool:
        """Whether it is in use."""
        return self.status == "active"


class StorageDomains:
    """The domains of an engine. Safe for several threads."""

    def __init__(
        self,
        access: client.EngineClient,
        data_center: str,
        clock: Callable[[], float],
    ) -> None:
        """data_center: name or ID of that of the cluster; empty: any."""
        self._access = access
        self._data_center = data_center
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[StorageDomain, ...] = ()
        self._read_at = -math.inf

    def find(self, text: str, timeout_s: float) -> StorageDomain:
        """Return the domain with a name or an ID, fit for a new disk.

        Raises:
            InvalidRequest: none exists, or it is not one for data of this cluster.
            InUse: it is not active.
            CloudError: the domains cannot be read.
        """
        try:
            return self._chosen(text, self._read(timeout_s, KEEP_S))
        except (errors.InvalidRequest, errors.InUse):
            return self._chosen(text, self._read(timeout_s, AGAIN_S))

    def usable(self, timeout_s: float) -> tuple[StorageDomain, ...]:
        """Return the active domains for data, as they are now.

        Raises:
            CloudError: the domains cannot be read.
        """
        domains = self._read(timeout_s, 0.0)
        return tuple(d for d in domains if d.is_active and self._is_for_cluster(d))

    def with_id(self, id_: str, timeout_s: float) -> StorageDomain | None:
        """Return the domain with an ID; None if it is not shown.

        Raises:
            CloudError: the domains cannot be read.
        """
        for keep_s in (KEEP_S, AGAIN_S):
            for domain in self._read(timeout_s, keep_s):
                if domain.id == id_:
                    return domain
        return None

    @property
    def data_center_id(self) -> str:
        """ID of a data center that the user sees; empty: none is known."""
        mine = (d.data_center_id for d in self._known if self._is_here(d))
        return next(mine, "")

    def _read(self, timeout_s: float, keep_s: float) -> tuple[StorageDomain, ...]:
        with self._lock:
            now = self._clock()
            if self._read_at + keep_s <= now:
                query = {"follow": "storage_domains"}
                centers = self._access.list(DATA_CENTERS, query, timeout_s=timeout_s)
                self._known = tuple(d for item in centers for d in _domains(item))
                self._read_at = now
            return self._known

    def _is_here(self, domain: StorageDomain) -> bool:
        chosen = self._data_center
        return chosen in ("", domain.data_center, domain.data_center_id)

    def _is_for_cluster(self, domain: StorageDomain) -> bool:
        return domain.is_for_data and self._is_here(domain)

    def _chosen(self, text: str, domains: Collection[StorageDomain]) -> StorageDomain:
        named = [d for d in domains if text in (d.id, d.name)]
        here = [d for d in named if self._is_here(d)]
        fit = [d for d in here if d.is_for_data]
        if len(fit) == 1:
            if fit[0].is_active:
                return fit[0]
            problem = f'{FIELD}: "{fit[0].name}" is in status {fit[0].status}'
            raise errors.InUse(f"{problem}: must be active", operation=_OPERATION)
        if len(fit) > 1:
            ids = ", ".join(sorted(d.id for d in fit))
            problem = "the name of several storage domains: must be the ID of one"
            text = f"{FIELD}: {config.shown(text)}: {problem}: {ids}"
            raise errors.InvalidRequest(text, operation=_OPERATION)
        raise errors.InvalidRequest(
            self._misfit(text, named, here, domains), operation=_OPERATION
        )

    def _misfit(
        self,
        text: str,
        named: Collection[StorageDomain],
        here: Collection[StorageDomain],
        domains: Collection[StorageDomain],
    ) -> str:
        """Return why no domain is fit, and which ones are."""
        names = sorted({d.name for d in domains if self._is_for_cluster(d)})
        shown = ", ".join(names[:_SHOWN_MAX]) or "none"
        expected = f"one of the storage domains for data: {shown}"
        if not named:
            return f"{FIELD}: {config.rejected(text, expected)}"
        (first, *_) = here or named
        what = f"of kind {first.kind} on storage {first.storage}"
        if not here:
            what = f"in data center {first.data_center}, not in {self._data_center}"
        return f"{FIELD}: {config.quoted(text)} is {what}: must be {expected}"


def _domains(center: Item) -> Iterator[StorageDomain]:
    for domain in center.entity.storage_domains or ():
        available, used = domain.available or 0, domain.used or 0
        yield StorageDomain(
            str(domain.id),
            str(domain.name or ""),
            str(center.entity.name or ""),
            center.id,
            _text(domain.type),
            _text(domain.storage and domain.storage.type),
            _text(domain.status) or "unknown",
            available,
            available + used,
        )


def _text(value: object) -> str:
    """Return the text of a value of an enumeration; empty: none, or an unknown one."""
    return str(getattr(value, "value", value) or "")


def disk_format(domain: StorageDomain, is_thin: bool) -> types.DiskFormat:
    """Return the format of a disk.

    Source: oVirt: a thin disk on block devices is qcow2, any other one raw.
    """
    if is_thin and domain.is_block:
        return types.DiskFormat.COW
    return types.DiskFormat.RAW
