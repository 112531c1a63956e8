"""What a plan for a load balancer would change, object by object, for previews.

Rules: texts for people, no secret among them; an empty text stands for "none".
"""

import dataclasses
from collections.abc import Callable

from lib.cloud.load_balancers import Observed, Plan, Target
from lib.cloud.steps import Verb


@dataclasses.dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a thing, as it is and as it would be.

    by: what asks for it: an annotation, a field of the Service; may be empty.
    """

    field: str
    old: str
    new: str
    by: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Touched:
    """One thing that would be made, changed or deleted.

    path: of the thing in the tree, outermost first. why: a sentence; empty where its
    changes, or the thing above it, say it. is_later: not by the steps that are planned
    now, but once they are done.
    """

    path: tuple[str, ...]
    verb: Verb
    changes: tuple[FieldChange, ...] = ()
    why: str = ""
    is_later: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """A plan in words.

    load_balancer: which one it is, and how it is; empty without one. waits_for: what
    has to happen before anything can be planned; empty: nothing. not_owned: load
    balancers with the name of the Service's that are not owned by it.
    """

    load_balancer: str = ""
    waits_for: str = ""
    not_owned: tuple[str, ...] = ()
    touched: tuple[Touched, ...] = ()


Explain = Callable[[Target, Observed, Plan], Explanation]
"""Puts a plan into words. Pure; the plan must be of that target and observation."""
