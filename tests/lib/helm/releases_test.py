"""When a revision was written last, by its labels and by its Secret."""

import datetime
from typing import Any

import pytest

from lib.helm import releases
from lib.kube import objects

START = datetime.datetime(2026, 11, 23, 8, tzinfo=datetime.UTC)


def at(minutes: int) -> datetime.datetime:
    return START + datetime.timedelta(minutes=minutes)


def seconds(minutes: int) -> str:
    return str(int(at(minutes).timestamp()))


ROWS: tuple[tuple[str, dict[str, str], int | None, int | None], ...] = (
    ("as helm installs", {"createdAt": seconds(1), "modifiedAt": seconds(3)}, 1, 3),
    # helm takes the labels of revision 1 over to revision 2.
    ("as helm upgrades", {"createdAt": seconds(1), "modifiedAt": seconds(3)}, 60, 60),
    ("pending", {"createdAt": seconds(2)}, 2, 2),
    ("no labels", {}, 5, 5),
    ("no time of creation", {"modifiedAt": seconds(3)}, None, 3),
    ("no numbers", {"createdAt": "x", "modifiedAt": "9" * 20}, 4, 4),
    ("nothing", {}, None, None),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_latest_time_counts(row: tuple[str, dict[str, str], Any, Any]) -> None:
    _, labels, created, expected = row
    own = {"owner": "helm", "name": "etcd", "version": "2", "status": "deployed"}
    metadata = objects.ObjectMeta(
        name="s",
        labels={**own, **labels},
        creation_timestamp=None if created is None else at(created),
    )
    observed = releases.revision(metadata)
    assert observed is not None
    assert observed.modified_at == (None if expected is None else at(expected))
