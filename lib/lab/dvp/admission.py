"""What the webhooks of a parent cluster refuse. Pure.

Every rule of a kind is judged at each CREATE and UPDATE, also of a label, as the
controller of the platform judges them; texts of messages are ours, except where clients
of the platform read them. Source: deckhouse/virtualization, commit cf3a9e6c.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from lib.kube.resources import Resource
from lib.lab.dvp.kinds import Item, Json


class Lookup(Protocol):
    """Other objects of the parent."""

    def get(self, kind: Resource, namespace: str, name: str) -> Item | None:
        """Return an object; None when there is none."""
        ...

    def within(self, kind: Resource, namespace: str) -> Sequence[Item]:
        """Return all objects of a kind in a namespace."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Review:
    """One write that is judged. old: None: the object is created."""

    kind: Resource
    new: Json
    old: Json | None
    others: Lookup

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.new["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return str(self.new["metadata"].get("namespace", ""))

    @property
    def spec(self) -> Json:
        """The desired spec."""
        return self.new.get("spec") or {}

    @property
    def old_spec(self) -> Json:
        """The spec before the write; empty for a new object."""
        return (self.old or {}).get("spec") or {}

    @property
    def phase(self) -> str:
        """The object's phase."""
        return str((self.new.get("status") or {}).get("phase", ""))

    @property
    def is_ready(self) -> bool:
        """Whether the object's condition Ready is True."""
        rows = (self.new.get("status") or {}).get("conditions", ())
        return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)

    def is_same(self, *path: str) -> bool:
        """Report whether a part of the spec is what it was."""
        return at(self.spec, *path) == at(self.old_spec, *path)


@dataclasses.dataclass(frozen=True, slots=True)
class AdmissionRule:
    """One rule. check: returns why a write is refused, or an empty text.

    fact: the source. on_create, on_update: when it is judged.
    """

    name: str
    kind: Resource
    check: Callable[[Review], str]
    fact: str
    on_create: bool = True
    on_update: bool = True


def at(document: Json, *path: str) -> object:
    """Return a part of a document; None when there is none."""
    below: object = document
    for name in path:
        below = below.get(name) if isinstance(below, dict) else None
    return below


def refusal(rules: Sequence[AdmissionRule], review: Review) -> str:
    """Return in which words a write is refused; empty: it is admitted."""
    for rule in rules:
        is_judged = rule.on_create if review.old is None else rule.on_update
        if rule.kind == review.kind and is_judged:
            reason = rule.check(review)
            if reason:
                return reason
    return ""
