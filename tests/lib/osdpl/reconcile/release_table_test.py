"""The table of releases is complete, and every status of helm has a row."""

import datetime
import itertools

import pytest

from lib.helm import model as helm
from lib.osdpl.reconcile import release_table
from lib.osdpl.reconcile.release_table import TABLE, Desired, Move, Observed

NOW = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
LIMIT_S = 660.0


def revision(status: helm.Status) -> helm.Revision:
    return helm.Revision("etcd", "openstack", 1, status, {}, "s", "u", "1")


def find(status: helm.Status | None, **changes: bool) -> Observed:
    facts = {
        "is_owned": True,
        "is_readable": True,
        "has_hash": False,
        "is_damaged": False,
        "is_abandoned": True,
    }
    newest = None if status is None else revision(status)
    return release_table.observed(newest, **{**facts, **changes})


def test_each_combination_has_a_row() -> None:
    whole = set(itertools.product(Observed, Desired, (False, True)))
    for row in sorted(whole):
        print(*row, TABLE[row].value, sep=" | ")
    assert set(TABLE) == whole
    assert set(TABLE.values()) == set(Move)


def test_nothing_is_done_while_a_child_process_works_on_it() -> None:
    rows = {move for (_, _, is_running), move in TABLE.items() if is_running}
    assert rows == {Move.WAIT}


def test_what_is_kept_is_never_touched() -> None:
    rows = {
        move
        for (_, desired, is_running), move in TABLE.items()
        if desired is Desired.KEPT and not is_running
    }
    assert rows == {Move.SKIP}


def test_a_release_of_another_owner_is_never_touched() -> None:
    rows = {move for (row, _, _), move in TABLE.items() if row is Observed.NOT_OWNED}
    assert rows == {Move.REFUSE, Move.SKIP, Move.WAIT}


@pytest.mark.parametrize("status", [None, *helm.Status])
def test_each_status_is_a_row(status: helm.Status | None) -> None:
    observed = find(status)
    expected = "no release" if status is None else status.value
    if status is helm.Status.UNKNOWN:
        expected = Observed.UNREADABLE.value
    assert observed.value.startswith(expected)
    assert find(status, is_owned=False) is (
        Observed.NONE if status is None else Observed.NOT_OWNED
    )
    assert find(status, is_readable=False) is (
        Observed.NONE if status is None else Observed.UNREADABLE
    )


@pytest.mark.parametrize("status", helm.Status)
def test_the_hash_counts_only_of_what_is_deployed(status: helm.Status) -> None:
    is_equal = find(status, has_hash=True) is Observed.EQUAL
    assert is_equal == (status is helm.Status.DEPLOYED)


@pytest.mark.parametrize("status", helm.Status)
def test_only_what_is_pending_can_be_busy(status: helm.Status) -> None:
    is_busy = find(status, is_abandoned=False) is Observed.BUSY
    assert is_busy == status.is_pending


@pytest.mark.parametrize(
    ("status", "age_s", "left_s"),
    [
        (helm.Status.PENDING_INSTALL, 0, LIMIT_S),
        (helm.Status.PENDING_UPGRADE, 60, LIMIT_S - 60),
        (helm.Status.PENDING_ROLLBACK, LIMIT_S, 0),
        (helm.Status.UNINSTALLING, LIMIT_S + 1, 0),
        (helm.Status.DEPLOYED, 0, 0),
    ],
)
def test_a_pending_revision_is_abandoned_after_the_time_of_a_run(
    status: helm.Status, age_s: float, left_s: float
) -> None:
    began = NOW - datetime.timedelta(seconds=age_s)
    observed = release_table.abandoned_in_s(revision(status), began, LIMIT_S, NOW)
    assert observed == left_s
    assert release_table.abandoned_in_s(revision(status), None, LIMIT_S, NOW) == 0
