"""The vocabulary of places: how many objects of a cloud service are in progress.

Rules: frozen values and a protocol only, no I/O. A provider's client has the places of
its services; flows take one for each object that they write.
"""

import dataclasses
from collections.abc import Callable
from typing import Protocol

from lib.cloud.steps import Verb


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """Write that is due on an object.

    id: of the object. group: its namespace. verb: what is done. has_begun: something
    was written for it before. wake: called, from any thread, when it is to ask again.
    """

    id: str
    group: str
    verb: Verb
    wake: Callable[[], None]
    has_begun: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """Writes in progress, for metrics and messages.

    limit: places. held: objects in progress. waiting: objects without a place.
    oldest_s: the longest wait. took_s: how long the last objects were in progress on
    average; 0: none was finished yet.
    """

    limit: int
    held: int
    waiting: int
    oldest_s: float
    took_s: float = 0.0

    def text(self, service: str, objects: str) -> str:
        """Describe it in one line for users; empty while nothing is in progress.

        service: that is written. objects: for which it is written.
        """
        desired = self.held + self.waiting
        if not desired:
            return ""
        flight = f"{service}: {self.held} writes in flight of {desired} desired"
        each = f", {self.took_s:.0f} s each" if self.took_s else ""
        waiting = f", {self.waiting} {objects} wait" if self.waiting else ""
        return f"{flight}{each}{waiting}"


class Places(Protocol):
    """The places of one service. Safe for many threads; no call blocks."""

    def bound(self, start: int, most: int) -> None:
        """Set the number of places at the beginning, and at most."""
        ...

    def enter(self, work: Work) -> float:
        """Take a place for a write that is sent now; 0: it is taken.

        Else returns in how many seconds to ask again. An object with a place keeps it.
        """
        ...

    def answered(self, id_: str) -> None:
        """Note that the write of this object has been answered, in whatever way."""
        ...

    def lacks_answer(self) -> bool:
        """Report whether a read would show if there is room for one that waits."""
        ...

    def finished(
        self, id_: str, lasted_s: float, *, goes_on: bool = False, is_lost: bool = False
    ) -> None:
        """Note that the cloud has finished with an object, and release its place.

        lasted_s: seconds from the answer to the write until then, at most. goes_on:
        another write of the same plan follows: the place is kept. is_lost: it is absent
        or failed; how long that took counts of a deletion only.
        """
        ...

    def leave(self, id_: str) -> None:
        """Release a place, or a position in the line; without either do nothing."""
        ...

    def waited_s(self, id_: str) -> float:
        """Return for how many seconds an object has waited for a place."""
        ...

    def standing(self) -> Standing:
        """Return what is going on."""
        ...
