"""What of a plan destroys nodes or data."""

from typing import Any

import pytest

from lib.layouts.openstack import review
from lib.layouts.openstack.review import PlannedAction

INSTANCE, VOLUME = review.INSTANCE, review.VOLUME
PORT = "openstack_networking_port_v2"


def plan(kind: str, actions: list[str], before: Any = None, after: Any = None) -> Any:
    change = {"actions": actions, "before": before, "after": after}
    resource = {
        "address": f"{kind}.it",
        "mode": "managed",
        "type": kind,
        "change": change,
    }
    return {"format_version": "1.2", "resource_changes": [resource]}


def importing(kind: str) -> Any:
    document = plan(kind, ["no-op"])
    document["resource_changes"][0]["change"]["importing"] = {"id": "x"}
    return document


ROWS = {
    "a volume is imported": (importing(VOLUME), PlannedAction.IMPORT, False),
    "a server is deleted": (plan(INSTANCE, ["delete"]), PlannedAction.DELETE, True),
    "a server is replaced": (
        plan(INSTANCE, ["delete", "create"]),
        PlannedAction.REPLACE,
        True,
    ),
    "a server is replaced after its successor": (
        plan(INSTANCE, ["create", "delete"]),
        PlannedAction.REPLACE,
        True,
    ),
    "a server is resized": (
        plan(INSTANCE, ["update"], {"flavor_name": "a"}, {"flavor_name": "b"}),
        PlannedAction.UPDATE,
        False,
    ),
    "a new image wipes the disk though the plan shows an update": (
        plan(INSTANCE, ["update"], {"image_id": "a"}, {"image_id": "b"}),
        PlannedAction.REBUILD,
        True,
    ),
    "a server that boots from a volume has no image": (
        plan(INSTANCE, ["update"], {"image_id": "text"}, {"image_id": None}),
        PlannedAction.UPDATE,
        False,
    ),
    "a volume is deleted": (plan(VOLUME, ["delete"]), PlannedAction.DELETE, True),
    "a volume grows": (
        plan(VOLUME, ["update"], {"size": 10}, {"size": 20}),
        PlannedAction.UPDATE,
        False,
    ),
    "a volume shrinks": (
        plan(VOLUME, ["update"], {"size": 20}, {"size": 10}),
        PlannedAction.SHRINK,
        True,
    ),
    "a port is replaced, which the server's own change shows": (
        plan(PORT, ["delete", "create"]),
        PlannedAction.REPLACE,
        False,
    ),
    "an object is forgotten": (plan(VOLUME, ["forget"]), PlannedAction.FORGET, False),
    "an object is created": (plan(VOLUME, ["create"]), PlannedAction.CREATE, False),
}


@pytest.mark.parametrize(
    ("document", "action", "is_destructive"), ROWS.values(), ids=ROWS
)
def test_a_change_is_judged(
    document: Any, action: PlannedAction, is_destructive: bool
) -> None:
    (change,) = review.review(document)

    assert (change.action, change.is_destructive) == (action, is_destructive)
    assert bool(change.lost) or not is_destructive


@pytest.mark.parametrize("actions", [["no-op"], ["read"]])
def test_what_changes_nothing_is_omitted(actions: list[str]) -> None:
    assert review.review(plan(INSTANCE, actions)) == ()


def test_a_plan_without_changes_has_none() -> None:
    assert review.review({"format_version": "1.2"}) == ()


@pytest.mark.parametrize(
    "document", [{}, [], {"version": 4}], ids=["empty", "list", "state"]
)
def test_another_document_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="tofu show -json PLAN"):
        review.review(document)


def test_destructive_changes_are_first() -> None:
    first, second = plan(PORT, ["create"]), plan(VOLUME, ["delete"])
    first["resource_changes"] += second["resource_changes"]

    assert [change.is_destructive for change in review.review(first)] == [True, False]
