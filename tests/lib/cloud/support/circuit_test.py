"""A circuit opens after failures in a row, refuses at once, and closes by one probe."""

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.support import circuit
from lib.cloud.support.circuit import Circuit

CLOSED = Circuit()
NEARLY = Circuit(failures=circuit.FAILURES - 1)
OPEN = Circuit(circuit.FAILURES, 5.0, 105.0)
PROBING = Circuit(circuit.FAILURES, 5.0, 105.0, is_probing=True)
PAUSED = Circuit(until=130.0)


@pytest.mark.parametrize(
    ("now", "at", "then", "wait_s"),
    [
        pytest.param(CLOSED, 100.0, CLOSED, 0.0, id="closed: passes"),
        pytest.param(NEARLY, 100.0, NEARLY, 0.0, id="not enough failures: passes"),
        pytest.param(OPEN, 102.0, OPEN, 3.0, id="open: refused, with the time left"),
        pytest.param(OPEN, 105.0, PROBING, 0.0, id="its time is over: one probe"),
        pytest.param(PROBING, 105.0, PROBING, 1.0, id="probing: the others wait"),
        pytest.param(PAUSED, 100.0, PAUSED, 30.0, id="Retry-After: refused until then"),
        pytest.param(PAUSED, 130.0, PAUSED, 0.0, id="after the pause: passes"),
    ],
)
def test_admission(now: Circuit, at: float, then: Circuit, wait_s: float) -> None:
    assert circuit.admitted(now, at) == (then, wait_s)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        pytest.param(CLOSED, Circuit(failures=1), id="the first only counts"),
        pytest.param(NEARLY, OPEN, id="the last one opens"),
        pytest.param(OPEN, OPEN, id="late failures of older calls change nothing"),
        pytest.param(
            PROBING,
            Circuit(circuit.FAILURES + 1, 10.0, 110.0),
            id="a failed probe opens for twice as long",
        ),
        pytest.param(
            Circuit(9, 60.0, 90.0, is_probing=True),
            Circuit(10, 60.0, 160.0),
            id="but not for longer than a minute",
        ),
    ],
)
def test_failures(now: Circuit, then: Circuit) -> None:
    assert circuit.failed(now, 100.0) == then


def test_success_and_retry_after_close() -> None:
    """Both are answers; the second keeps callers away for at most five minutes."""
    assert circuit.succeeded(CLOSED) == CLOSED
    assert circuit.paused(CLOSED, 100.0, 30.0) == PAUSED
    assert not circuit.paused(CLOSED, 100.0, 30.0).is_open
    assert circuit.paused(CLOSED, 100.0, 9999.0).until == 400.0


def test_a_pause_is_neither_ended_nor_shortened_by_older_calls() -> None:
    """A call that began before the 429 may succeed, or be asked for a shorter pause."""
    paused = circuit.paused(CLOSED, 100.0, 60.0)
    assert circuit.admitted(circuit.succeeded(paused), 101.0)[1] == 59.0
    assert circuit.paused(paused, 101.0, 5.0).until == 160.0


STEPS = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(["ask", "ok", "fail", "pause"]),
        strategies.floats(0.0, 90.0),
    ),
    max_size=60,
)


@hypothesis.given(STEPS)
def test_no_walk_blocks_for_ever_or_lets_two_probes_pass(
    steps: list[tuple[str, float]],
) -> None:
    """Calls begin and end in any order; every call that passed is told once."""
    now, at, under_way, in_a_row = Circuit(), 100.0, 0, 0
    for kind, passed_s in steps:
        at += passed_s
        if kind == "ask":
            before = now
            now, wait_s = circuit.admitted(now, at)
            assert 0.0 <= wait_s <= circuit.LONGEST_PAUSE_S
            assert not (before.is_probing and wait_s == 0.0), "a second probe"
            assert not (before.is_open and not now.is_probing and wait_s == 0.0)
            under_way += wait_s == 0.0
        elif under_way:
            under_way -= 1
            in_a_row = in_a_row + 1 if kind == "fail" else 0
            if kind == "fail":
                now = circuit.failed(now, at)
            else:
                is_pause = kind == "pause"
                now = (
                    circuit.paused(now, at, passed_s)
                    if is_pause
                    else circuit.succeeded(now)
                )
            assert now.is_open == (in_a_row >= circuit.FAILURES)
    if not now.is_probing:
        later, wait_s = circuit.admitted(now, now.until + 1e-3 + at)
        assert wait_s == 0.0, "it must be tried again some day"
        assert not circuit.succeeded(now).is_open
