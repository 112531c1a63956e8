"""Confirms that an object which a list lacks does not exist.

Rules: a list is a hint. An object is absent only when the cloud itself answered "not
found" to two direct reads, CONFIRM_S apart, in the project that holds the cluster's
objects. An object that was observed being deleted needs one.
"""

import bisect
import dataclasses
import functools
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Generic, TypeVar

from lib.cloud import absence_limit, errors, provider_id
from lib.cloud.load_balancers import Node
from lib.cloud.support import absence_scope, expiring, parallel

CONFIRM_S = absence_limit.CONFIRM_S
IN_USE_S = 660.0
"""The same for an object in use whose loss nothing else shows: longer than the ten
minutes for which a cloud may answer wrongly, because its address is lost for good."""
FORGET_S = 1800.0
"""After which a first read proves nothing any more."""
READS_MAX = 300
"""Number of IDs that one observation reads directly because a list lacks them."""
READS_S = 40.0
"""All of them together: the observation has other reads to make in its time."""
_LATER = "many IDs are not in the list of the project; it is read the next time"
WITNESSES = 3
"""Nodes whose instances are read where nothing else shows the project."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Words:
    """Plural nouns for error messages.

    cloud: of provider IDs. objects: what is confirmed.
    """

    cloud: str
    objects: str


@dataclasses.dataclass(frozen=True, slots=True)
class DirectReads(Generic[T]):
    """Direct reads of a provider. Each takes a deadline in the time of the clock.

    find: returns an object of our project; None: the cloud reports that there is none.
    Raises CloudError when that is not known. has_any: reports whether one of these
    instances exists in our project.
    """

    find: Callable[[str, float], T | None]
    has_any: Callable[[Collection[str], float], bool]


class Absences(Generic[T]):
    """Absences that are confirmed, or will be. Safe to use from several threads."""

    def __init__(
        self,
        reads: DirectReads[T],
        words: Words,
        guard: absence_scope.Guard,
        clock: Callable[[], float],
    ) -> None:
        """clock: monotonic seconds."""
        self._reads = reads
        self._words = words
        self._guard = guard
        self._clock = clock
        self._absent = expiring.Expiring[Hashable, float](FORGET_S, clock)
        self._deleting = expiring.Expiring[Hashable, bool](FORGET_S, clock)
        self._nodes: tuple[Node, ...] = ()
        self._last_read = ""

    def note_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Keep the cluster's Nodes; their instances show which project is its own."""
        self._nodes = nodes

    def note_deleting(self, key: Hashable) -> None:
        """Record that an object is being deleted."""
        self._deleting.put(key, True)

    def is_deleting(self, key: Hashable) -> bool:
        """Report whether an object was being deleted less than FORGET_S ago."""
        return self._deleting.get(key) is not None

    def note_home(self) -> None:
        """Record that an object of the cluster was observed here.

        Raises:
            CloudError: authentication failed.
        """
        self._guard.observed()

    def _share(self, missing: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the IDs that are read now, and the others, which come next.

        Users may name any number of IDs, and each costs a read.
        """
        first = bisect.bisect_right(missing, self._last_read)
        ordered = [*missing[first:], *missing[:first]]
        now, later = ordered[:READS_MAX], ordered[READS_MAX:]
        self._last_read = now[-1] if later else ""
        return now, later

    def complete(
        self, ids: Collection[str], listed: Collection[str], deadline: float
    ) -> Mapping[str, T | errors.CloudError | None]:
        """Read directly the IDs that a list lacks; return the answers by ID.

        None: the cloud reports that it does not exist.

        Raises:
            CloudError: authentication failed.
        """
        missing = sorted(set(ids) - set(listed))
        self._absent.drop(set(ids) & set(listed))

        def read(id_: str) -> T | errors.CloudError | None:
            try:
                return self._reads.find(id_, deadline)
            except errors.CloudError as error:
                return error

        now, later = self._share(missing)
        deadline = min(deadline, self._clock() + READS_S)
        answers = parallel.each(read, now, "absence")
        answers_by_id = dict(zip(now, answers, strict=True)) | {
            id_: errors.Unavailable(_LATER, operation="read", resource=id_)
            for id_ in later
        }
        present = [
            id_
            for id_, answer in answers_by_id.items()
            if answer is not None and not isinstance(answer, errors.CloudError)
        ]
        if present:
            self._absent.drop(present)
            self._guard.observed()
        return answers_by_id

    def note_present(self, keys: Collection[Hashable]) -> None:
        """Record that these absences have ended."""
        self._absent.drop(keys)

    def left_s(
        self,
        keys: Collection[Hashable],
        deadline: float,
        confirm_s: float = CONFIRM_S,
    ) -> float:
        """Return the seconds until these absences are confirmed; 0.0 for no keys.

        confirm_s: how long they must last.

        Raises:
            Unavailable: this may not be the project of the cluster.
            CloudError: authentication failed.
        """
        if keys:
            self.check_home(deadline)
        return held_s(self._absent, keys, self._clock, confirm_s)

    def check_home(self, deadline: float) -> None:
        """Check that this is the project of the cluster.

        Before anything of the cluster was observed, an instance of a Node shows it.

        Raises:
            Unavailable: this may not be the project of the cluster.
            CloudError: authentication failed.
        """
        region = self._guard.here().region
        witnesses = list(_instances(self._nodes, self._words.cloud, region))
        read = functools.partial(self._reads.has_any, witnesses, deadline)
        # Without Nodes nothing can show the project, and nothing is lost by it.
        self._guard.check(f"find {self._words.objects}", read if witnesses else None)


def held_s(
    since: expiring.Expiring[Hashable, float],
    keys: Iterable[Hashable],
    clock: Callable[[], float],
    confirm_s: float = CONFIRM_S,
) -> float:
    """Return the seconds until conditions have held for confirm_s; note new ones.

    since: when each was first observed, by `clock`.
    """
    now = clock()
    left = (max(0.0, since.first(key, now) + confirm_s - now) for key in keys)
    return max(left, default=0.0)


def _instances(nodes: Iterable[Node], cloud: str, region: str) -> Iterator[str]:
    """Return the instance IDs of a few Nodes that have one."""
    count = 0
    for node in nodes:
        try:
            parsed = provider_id.parse(node.provider_id)
        except provider_id.ProviderIdError:
            continue
        if parsed.cloud == cloud and parsed.may_be_in(region):
            count += 1
            yield parsed.id
        if count == WITNESSES:
            return
