import pytest

from tests.harness.openstack import inventory
from tests.harness.openstack.balancers import LISTENERS, POOLS, Json

POOL: Json = {"id": "1", "name": "web", "lb_algorithm": "ROUND_ROBIN"}
LISTENER: Json = {
    "id": "2",
    "tags": ["a", "b"],
    "listeners": [{"id": "3", "status": "a"}, {"id": "4"}],
}
BEFORE: inventory.Inventory = {POOLS: {"1": POOL}, LISTENERS: {"2": LISTENER}}


def with_listener(**fields: object) -> inventory.Inventory:
    return {**BEFORE, LISTENERS: {"2": {**LISTENER, **fields}}}


def test_an_order_that_says_nothing_is_no_change() -> None:
    """Octavia lists things as they come."""
    turned = with_listener(
        tags=["b", "a"], listeners=[{"id": "4"}, {"status": "a", "id": "3"}]
    )
    assert inventory.changes(BEFORE, turned) == ()


def test_what_passes_by_itself_is_no_change() -> None:
    """At any depth: a status is no setting."""
    passed = with_listener(
        provisioning_status="PENDING_UPDATE",
        listeners=[{"id": "3", "status": "b"}, {"id": "4"}],
    )
    assert inventory.changes(BEFORE, passed) == ()


def test_what_comes_and_goes_is_told_by_its_name() -> None:
    """An object that is recreated under the same name is two changes."""
    recreated = {POOLS: {"9": {**POOL, "id": "9"}}, LISTENERS: {"2": LISTENER}}
    assert inventory.changes(BEFORE, recreated) == (
        inventory.Change(POOLS, "1", "", "web", None),
        inventory.Change(POOLS, "9", "", None, "web"),
    )


@pytest.mark.parametrize(
    ("tags", "is_addition"),
    [(["a", "b", "c"], True), (["a", "c", "d"], False), (["a"], False), (None, False)],
)
def test_only_a_list_that_keeps_all_it_had_was_added_to(
    tags: object, is_addition: bool
) -> None:
    """One tag in the place of another is a loss."""
    (change,) = inventory.changes(BEFORE, with_listener(tags=tags))
    assert (change.field, change.is_addition) == ("tags", is_addition)
