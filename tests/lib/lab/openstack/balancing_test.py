import pytest

from lib.lab.openstack import balancing

POOL = ("pool", "1")
LISTENER = ("listener", "2")
BEFORE: balancing.Snapshot = {
    POOL: {"id": "1", "name": "web", "lb_algorithm": "ROUND_ROBIN"},
    LISTENER: {"id": "2", "tags": ["a", "b"], "listeners": [{"id": "3"}, {"id": "4"}]},
}


def after(kind: tuple[str, str], **fields: object) -> balancing.Snapshot:
    return {**BEFORE, kind: {**BEFORE[kind], **fields}}


def test_an_order_that_says_nothing_is_no_change() -> None:
    """Octavia lists things as they come."""
    turned = after(LISTENER, tags=["b", "a"], listeners=[{"id": "4"}, {"id": "3"}])
    assert balancing.changes(BEFORE, turned) == ()


def test_what_comes_and_goes_is_told_by_its_name() -> None:
    """A thing made anew under the same name is two changes."""
    anew = {("pool", "9"): {**BEFORE[POOL], "id": "9"}, LISTENER: BEFORE[LISTENER]}
    assert balancing.changes(BEFORE, anew) == (
        balancing.Change("pool", "1", "", "web", None),
        balancing.Change("pool", "9", "", None, "web"),
    )


@pytest.mark.parametrize(
    ("tags", "is_addition"),
    [(["a", "b", "c"], True), (["a", "c", "d"], False), (["a"], False), (None, False)],
)
def test_only_a_list_that_keeps_all_it_had_was_added_to(
    tags: object, is_addition: bool
) -> None:
    """One tag in the place of another is a loss."""
    (change,) = balancing.changes(BEFORE, after(LISTENER, tags=tags))
    assert (change.field, change.is_addition) == ("tags", is_addition)
