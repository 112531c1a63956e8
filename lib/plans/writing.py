"""What an engine of open plans needs of a cloud, and how a write of it may end."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.steps import Asked, Gate, Step, StepResult
from lib.cloud.write_places import Places
from lib.reconcile import failure

UNKNOWN_FIRST_S = 0.5
"""When to check first for what a request of unknown outcome has created."""


class Applier(Protocol):
    """What an engine needs of a protocol whose plans it carries out."""

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """Make one write of the cloud, and do not wait for its effect.

        Raises:
            CloudError: after Unavailable the outcome may be unknown.
        """
        ...

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """Return whether open plans may continue, by the id of the object."""
        ...


class UnknownOutcome(failure.Postponed):
    """A step may have been carried out that must not be applied twice."""

    def __init__(self, error: errors.CloudError) -> None:
        super().__init__(str(error), UNKNOWN_FIRST_S, is_routine=False)
        self.error = error


class NoPlace(failure.Postponed):
    """The cloud works on as much as it can take; the plan waits for a place."""


def _always(operation: str) -> contextlib.AbstractContextManager[float]:
    del operation
    return contextlib.nullcontext(math.inf)


def _settled(settle_s: float) -> float:
    del settle_s
    return 0.0


def _unlimited() -> None:
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class Writing:
    """When the cloud may be written.

    permit: given an operation, lets one write happen within its block and gives the
    seconds it may take, or raises and it is not sent: the end of the Lease holds for
    the cloud as for the API server. unsettled_s: given the seconds that a request may
    take, returns how long those of a previous leader may still take effect. places:
    returns those of the service that is written; None: there is no limit.
    """

    permit: Callable[[str], contextlib.AbstractContextManager[float]] = _always
    unsettled_s: Callable[[float], float] = _settled
    places: Callable[[], Places | None] = _unlimited
