"""The page of changes to layouts: each field, and what the next apply does."""

from tests.harness.layouts import changes
from tests.reference import sheets

HEADS = ("field", "root", "effect", "meaning")


def tables() -> sheets.Tables:
    """Return the table of all fields."""
    rows = [
        (f"`{field}`", change.step, change.effect.value, change.text)
        for field, change in changes.CHANGES.items()
    ]
    return {"changes": sheets.table(HEADS, rows)}
