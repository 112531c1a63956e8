"""Confirms that a load balancer which a list lacks does not exist.

Rules: a list is a hint. A load balancer that a Service leads to by ID is absent only
when Octavia itself answered "not found" to two direct reads, CONFIRM_S apart, in the
project that holds the cluster's objects. One that was seen being deleted needs one.
"""

import dataclasses
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from lib.cloud import errors, provider_id
from lib.cloud.load_balancers import Node, Ref
from lib.cloud.model import Seen
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import singles
from lib.cloud.openstack.load_balancers.read import identity, lists, native
from lib.cloud.openstack.load_balancers.read.observed import Identity
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.support import absence_scope, parallel

CONFIRM_S = 15.0
"""Between the two reads that prove an absence, at least."""
FORGET_S = 600.0
"""After which a first read proves nothing any more."""
WITNESSES = 3
"""Nodes whose servers are looked for where nothing else shows the project."""

Answer = native.LoadBalancer | errors.CloudError | None
"""None: Octavia says that it does not exist."""


class Since:
    """Times at which conditions were first observed. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[Hashable, float] = {}

    def left_s(self, key: Hashable) -> float:
        """Return the seconds until a condition has held for CONFIRM_S; note it."""
        now = self._clock()
        with self._lock:
            kept = self._times.items()
            self._times = {k: at for k, at in kept if now - at < FORGET_S}
            return max(0.0, self._times.setdefault(key, now) + CONFIRM_S - now)

    def note(self, key: Hashable) -> None:
        """Note that a condition holds now."""
        with self._lock:
            self._times[key] = self._clock()

    def has(self, key: Hashable) -> bool:
        """Report whether a condition was noted less than FORGET_S ago."""
        with self._lock:
            at = self._times.get(key)
            return at is not None and self._clock() - at < FORGET_S

    def clear(self, keys: Iterable[Hashable]) -> None:
        """Forget conditions that hold no more."""
        with self._lock:
            for key in keys:
                self._times.pop(key, None)


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """The load balancers of one observation: the list, completed by direct reads.

    missing: what the direct reads of IDs that the list lacks answered.
    """

    load_balancers: tuple[native.LoadBalancer, ...]
    missing: Mapping[str, Answer]


class Absences:
    """Knows which absences are confirmed. Safe to use from several threads."""

    def __init__(self, api: client.Client, guard: absence_scope.Guard) -> None:
        self._api = api
        self._guard = guard
        self._absent = Since(api.now)
        self._going = Since(api.now)
        self._twins = Since(api.now)
        self._nodes: tuple[Node, ...] = ()

    def note_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Keep the cluster's Nodes; their servers show which project is its own."""
        self._nodes = nodes

    def note_going(self, id_: str) -> None:
        """Note that a load balancer is being deleted."""
        self._going.note(id_)

    def complete(
        self,
        refs: Collection[Ref],
        listed: Sequence[native.LoadBalancer],
        deadline: float,
    ) -> Known:
        """Read directly what the Services lead to and the list lacks.

        Raises:
            CloudError: authentication failed.
        """
        ids = {one.id for one in listed}
        known = {id_ for ref in refs for id_ in _ids(ref)}
        self._absent.clear(known & ids)
        for one in listed:
            if one.is_going:
                self._going.note(one.id)
        if known & ids or any(_is_of_clusters(one, refs) for one in listed):
            self._guard.observed()
        missing = self._read(sorted(known - ids), deadline)
        found = [x for x in missing.values() if isinstance(x, native.LoadBalancer)]
        if found:
            self._absent.clear(one.id for one in found)
            self._guard.observed()
        return Known((*listed, *found), missing)

    def judge(
        self, ref: Ref, found: Identity, known: Known, deadline: float
    ) -> Identity:
        """Return the identity with the seconds until its absences are confirmed.

        Raises:
            CloudError: it can't be told whether the load balancer exists.
        """
        if found.going:
            self._going.note(ref.uid)
        wait_s = self._missing_s(ref, found, known, deadline)
        twins_s = self._twins_s(found, deadline) if not wait_s else 0.0
        return dataclasses.replace(found, absent_in_s=wait_s, twins_in_s=twins_s)

    def _missing_s(
        self, ref: Ref, found: Identity, known: Known, deadline: float
    ) -> float:
        hints = identity.hints_of(ref)
        awaited: list[Hashable] = []
        for id_ in sorted(_ids(ref)):
            answer = known.missing.get(id_, errors.NotFound)
            is_own = id_ == hints.owned_id
            if found.load_balancer is not None and not is_own:
                continue  # a user named it, and it is not used
            if isinstance(answer, errors.CloudError):
                if is_own or not isinstance(answer, errors.Forbidden):
                    raise answer
            elif answer is None and not self._going.has(id_):
                awaited.append(id_)
        leads_by_address = not _ids(ref) and bool(hints.addresses)
        if leads_by_address and _is_none(found) and not self._going.has(ref.uid):
            awaited.append((ref.uid, hints.addresses))
        if awaited:
            self._check_home(deadline)
        return max((self._absent.left_s(key) for key in awaited), default=0.0)

    def _twins_s(self, found: Identity, deadline: float) -> float:
        """Return when a second load balancer with our tag may be deleted: 0.0: now.

        Only while the one in use is there, which a direct read confirms.
        """
        main = found.load_balancer
        if main is None or not found.duplicates:
            return 0.0
        keys = [(main.id, one.id) for one in found.duplicates]
        wait_s = max(self._twins.left_s(key) for key in keys)
        if wait_s:
            return wait_s
        read = lists.state(self._api, main.id, deadline)
        if read is not None and not read.is_going:
            return 0.0
        self._twins.clear(keys)
        return CONFIRM_S

    def _read(self, ids: Sequence[str], deadline: float) -> Mapping[str, Answer]:
        def read(id_: str) -> Answer:
            try:
                return lists.own(self._api, id_, deadline)
            except errors.CloudError as error:
                return error

        return dict(zip(ids, parallel.each(read, ids, "absence"), strict=True))

    def _check_home(self, deadline: float) -> None:
        """Check that this is the project of the cluster.

        Before anything of the cluster was observed, one of its Nodes' servers shows it.

        Raises:
            Unavailable: it is not, or that can't be told.
        """
        if self._guard.memory.home is None:
            region = self._guard.here().region
            witnesses = list(_servers(self._nodes, region))
            servers = singles.servers(self._api, witnesses, deadline)
            if any(isinstance(one, Seen) for one in servers.values()):
                self._guard.observed()
            elif witnesses:
                raise errors.Unavailable(
                    f"none of the Nodes' servers was found in {self._guard.here()};"
                    " load balancers that are missing there may exist elsewhere",
                    operation="find load balancers",
                )
        self._guard.check("find load balancers")


def _ids(ref: Ref) -> frozenset[str]:
    """Return the IDs that a Service leads to."""
    hints = identity.hints_of(ref)
    return frozenset({hints.given_id, hints.owned_id} - {""})


def _is_none(found: Identity) -> bool:
    return found.load_balancer is None and not found.going


def _is_of_clusters(one: native.LoadBalancer, refs: Collection[Ref]) -> bool:
    clusters = {ref.cluster.id for ref in refs}
    marks = identity.marks_of(one)
    return any(names.uid_of(marks, cluster) for cluster in clusters)


def _servers(nodes: Iterable[Node], region: str) -> Iterable[str]:
    """Return the server IDs of a few Nodes that have one."""
    found = 0
    for node in nodes:
        try:
            parsed = provider_id.parse(node.provider_id)
        except provider_id.ProviderIdError:
            continue
        is_here = parsed.region in ("", region)
        if parsed.cloud == provider_id.OPENSTACK and is_here:
            found += 1
            yield parsed.id
        if found == WITNESSES:
            return
