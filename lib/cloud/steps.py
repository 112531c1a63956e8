"""Plans of several cloud writes: steps, gates between them, problems and notices.

Shared by all protocols whose objects need more than one write: load balancers,
machines, routes. A provider plans, `lib/plans` carries out. Frozen values only, no I/O.
"""

import dataclasses
import enum
from collections.abc import Iterable, Iterator

# ---------------------------------------------------------------- problems


class ProblemReason(enum.StrEnum):
    """Base of the closed sets of reasons: label of a metric, reason of an Event.

    CommonReason holds those of all clouds and objects; a protocol and a provider
    package declare their own beside it.
    """


class CommonReason(ProblemReason):
    """Reasons that every protocol and every provider may have."""

    UNSUPPORTED = "Unsupported"
    """The provider, or its version, lacks what is asked for."""
    IMMUTABLE = "ImmutableField"
    """It differs from what is asked for, and cannot be changed in place."""
    AMBIGUOUS = "AmbiguousMatch"
    CLEANUP_INCOMPLETE = "CleanupIncomplete"
    """Parts of an object that is no longer used cannot be deleted, or not yet."""
    REFUSED = "RefusedByCloud"
    """The cloud rejected a write, and will as long as nothing changes."""
    DENIED = "DeniedByAPIServer"
    """The API server denies a write of the Kubernetes object: admission, or RBAC."""
    CONTESTED = "FieldContested"
    """Another client changes a field back each time it is written."""
    DRIFT = "DriftRepaired"
    """Something was changed or deleted by others; it is being repaired."""
    MASS_ABSENCE = "MassAbsence"
    """More objects are absent at the same time than is plausible."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one object, in words for its owner.

    message: complete and constant; names field, value and what would be right.
    is_fatal: nothing is written as long as it stands, whatever else is asked for.
    event: reason of its Event where the reference has one of its own for it.
    """

    reason: ProblemReason
    message: str
    is_fatal: bool = False
    event: str = ""


class NoticeType(enum.StrEnum):
    """Source: Kubernetes core/v1 Event, type."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An Event about something that is no problem; the reference has it as well."""

    type: NoticeType
    reason: str
    message: str


# ---------------------------------------------------------------- steps


class Verb(enum.StrEnum):
    """What a step does with its object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One cloud write, printable.

    path: of the object in its tree, outermost first ("load balancer x", "pool y").
    why: how it differs from what is desired; no secret. is_gated: it may only be
    applied when the gate is open. is_repeatable: applying it twice does no harm; of
    the others at most one is applied in a reconciliation, and none immediately after
    one with an unknown outcome: observe first. group: steps of one group depend on each
    other, in their order, those of different groups do not: after a refusal the others
    go on. Empty: it depends on all steps before it, and all after it depend on it.
    """

    verb: Verb
    path: tuple[str, ...]
    why: str
    native: object
    is_gated: bool = True
    is_repeatable: bool = True
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {' / '.join(self.path)}: {self.why}"


def grouped(group: str, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps as those of one group; see `Step`."""
    for step in steps:
        yield dataclasses.replace(step, group=group)


@dataclasses.dataclass(frozen=True, slots=True)
class StepResult:
    """What a step brought about.

    id: of the object created. annotations: to be written on the Kubernetes object
    before the next step, since without them the cloud's could not be found again;
    key to value, None to remove it. opens_after_s: when it is worth asking for the
    gate first; 0: no gate was closed.
    """

    id: str = ""
    annotations: tuple[tuple[str, str | None], ...] = ()
    opens_after_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What brings an object one way closer to its target.

    steps: to be applied in this order; what cannot be known before the last of them
    is done comes with the next plan. settled: all that is desired holds, or, when
    nothing is desired, nothing owned is left. retry_after_s: observe again after it;
    None: nothing but a change, the drift period or (with fatal problems) the queue's
    backoff brings the key back. backs_off: the steps may only be applied after a
    backoff: they create again what failed. problems: all of them; with a fatal one
    steps is empty. object_id: whose gate the steps wait for, or, without steps, whose
    has to open before there can be any; empty: that of the object observed.
    """

    steps: tuple[Step, ...] = ()
    settled: bool = False
    retry_after_s: float | None = None
    backs_off: bool = False
    notices: tuple[Notice, ...] = ()
    problems: tuple[Problem, ...] = ()
    object_id: str = ""


# ---------------------------------------------------------------- gates


class GateState(enum.Enum):
    """Whether the next step of an open plan may be applied."""

    OPEN = "open"
    CLOSED = "closed"
    """The last write is still in progress; retry_after_s: when to check again."""
    LOST = "lost"
    """It failed, is absent or was changed by others: drop the plan and observe."""


@dataclasses.dataclass(frozen=True, slots=True)
class Gate:
    """The answer of a gate. retry_after_s: of one that is closed.

    why: of one that is closed: the object with its state, and what to do if it stays
    closed; constant as long as the state is the same. Empty: not known.
    """

    state: GateState
    retry_after_s: float = 0.0
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A gate that is asked for.

    id: of the object as observed, or `StepResult.id` of the step that created it.
    waited_s: how long ago the last step was applied.
    """

    id: str
    waited_s: float
