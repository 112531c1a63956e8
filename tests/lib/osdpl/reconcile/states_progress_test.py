"""One value says why a release is not as desired yet; each service is its worst."""

import dataclasses
from typing import Any

import pytest

from lib.osdpl.reconcile import conditions
from lib.osdpl.reconcile.conditions import Phase, ServiceState
from lib.osdpl.reconcile.states import Progress, ReleaseState, State, Step, Why

DONE = ReleaseState("done", "x", None, None, State.IN_SYNC, Step.NOTHING)
DUE = ReleaseState("due", "x", None, None, State.PENDING, Step.INSTALL)
LATER = dataclasses.replace(DUE, name="later", waits="done")
ROWS: dict[str, tuple[ReleaseState, dict[str, Any], Progress]] = {
    "in sync": (DONE, {}, Progress(Why.DONE)),
    "its step can be taken": (DUE, {}, Progress(Why.DUE)),
    "a job works on it": (DUE, {"is_running": True}, Progress(Why.RUNNING)),
    "it waits": (LATER, {}, Progress(Why.WAITING, "done")),
    "it is deleted": (DONE, {"step": Step.DELETE}, Progress(Why.DELETING)),
    "it is deleted later": (
        LATER,
        {"step": Step.DELETE},
        Progress(Why.DELETING, "done"),
    ),
    "it has failed": (
        LATER,
        {"is_failed": True, "failure": "no"},
        Progress(Why.FAILED, "no"),
    ),
    "it has failed without a text": (
        LATER,
        {"is_failed": True},
        Progress(Why.FAILED, "done"),
    ),
    "it cannot be applied": (
        LATER,
        {"state": State.INVALID, "failure": "bad"},
        Progress(Why.INVALID, "bad"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_why_a_release_is_not_as_desired(row: str) -> None:
    state, changes, progress = ROWS[row]
    assert dataclasses.replace(state, **changes).progress == progress


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((), ServiceState(Phase.APPLIED)),
        ((DONE, LATER), ServiceState(Phase.WAITING, "later: waiting for done")),
        (
            (LATER, dataclasses.replace(LATER, name="last", waits="later")),
            ServiceState(Phase.WAITING, "later, last: waiting for done"),
        ),
        ((LATER, DUE), ServiceState(Phase.APPLYING)),
        (
            (DUE, dataclasses.replace(DONE, step=Step.DELETE)),
            ServiceState(Phase.DELETING),
        ),
        (
            (LATER, dataclasses.replace(DONE, is_failed=True)),
            ServiceState(Phase.FAILED, "the last run failed"),
        ),
    ],
    ids=["none", "one waits", "two wait", "one is due", "deleted", "failed"],
)
def test_a_service_is_as_its_worst_release(
    states: tuple[ReleaseState, ...], expected: ServiceState
) -> None:
    assert conditions.of_service(states) == expected


def test_each_reason_is_a_phase_of_a_service() -> None:
    assert set(conditions._PHASES) == set(Why)
