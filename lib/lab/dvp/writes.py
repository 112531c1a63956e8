"""What the simulator does: steps of the transitions, made of writes. Pure."""

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence

from lib.kube.resources import Resource
from lib.lab.dvp.kinds import GROUP, Item, Json


@dataclasses.dataclass(frozen=True, slots=True)
class CreateObject:
    """An object is made; one that is there already is left as it is."""

    kind: Resource
    namespace: str
    body: Json


@dataclasses.dataclass(frozen=True, slots=True)
class PatchObject:
    """An object is changed by a merge patch, unless it differs from `item` by now."""

    kind: Resource
    item: Item
    body: Json
    subresource: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object is deleted; fine when there is none. uid: empty: any."""

    kind: Resource
    namespace: str
    name: str
    uid: str = ""


Call = CreateObject | PatchObject | DeleteObject
Outcome = Callable[[str, str], Call]
"""What happens instead, by reason and message."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step of an object.

    transition: a key of `transitions.TRANSITIONS`. refused: what happens when the API
    server forbids a write, for example by a quota; its reason is that of the answer.
    failed: what happens when a test has the transition fail; None: it cannot fail.
    """

    transition: str
    item: Item
    calls: Sequence[Call]
    refused: Outcome | None = None
    failed: Outcome | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The transition and the UID of its object."""
        return self.transition, self.item.uid


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A condition as it is to be."""

    type: str
    status: bool
    reason: str
    message: str = ""


def status(kind: Resource, item: Item, fields: Mapping[str, object]) -> PatchObject:
    """Return the change of an object's status."""
    is_observed = kind.group == GROUP  # ServiceWithHealthchecks has no such field
    observed = {"observedGeneration": item.metadata.generation} if is_observed else {}
    return PatchObject(kind, item, {"status": {**observed, **fields}}, "status")


def holds(item: Item, condition: Finding) -> bool:
    """Report whether an object has a condition as it is to be."""
    return any(
        row.get("type") == condition.type
        and row.get("status") == str(condition.status)
        and row.get("reason") == condition.reason
        and row.get("message", "") == condition.message
        for row in item.status.get("conditions", ())
    )


def conditions(item: Item, now: datetime.datetime, *changed: Finding) -> list[Json]:
    """Return all conditions of an object, some of them changed."""
    before: Sequence[Json] = item.status.get("conditions", ())
    old = {row["type"]: row for row in before}
    for condition in changed:
        word = str(condition.status)
        previous = old.get(condition.type, {})
        since = previous.get("lastTransitionTime")
        if since is None or previous.get("status") != word:
            since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        old[condition.type] = {
            "type": condition.type,
            "status": word,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since,
            "observedGeneration": item.metadata.generation,
        }
    return list(old.values())


def finalizers(
    kind: Resource, item: Item, *, with_: str = "", without: str = ""
) -> PatchObject:
    """Return the change that adds or removes a finalizer."""
    kept = [name for name in item.metadata.finalizers if name != without]
    added = [with_] if with_ and with_ not in kept else []
    return PatchObject(kind, item, {"metadata": {"finalizers": kept + added}})
