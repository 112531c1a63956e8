"""Steps of a demo: shown as they are waited for, and given up in time."""

from collections.abc import Callable, Sequence

import pytest

from lib.lab import errors
from lib.lab.run import observed_steps, waiting
from lib.lab.run.observed_steps import ObservedStep, StepRow


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


def after(clock: Clock, time_s: float, evidence: str) -> Callable[[], str]:
    """Return what is observed from a time on."""
    return lambda: evidence if clock.time_s >= time_s else ""


def test_each_step_is_waited_for_and_shown() -> None:
    """A step begins when the one before it has ended; all rows are there at once."""
    clock, acts, tables = Clock(), list[tuple[str, float]](), list[list[StepRow]]()

    def act(name: str) -> Callable[[], None]:
        return lambda: acts.append((name, clock.time_s))

    steps = (
        ObservedStep("attach", act("attach"), after(clock, 1, "attached")),
        ObservedStep("write", act("write"), after(clock, 3, "written")),
        ObservedStep("read", act("read"), after(clock, 3, "same")),
    )

    def show(rows: Sequence[StepRow]) -> None:
        tables.append(list(rows))

    assert observed_steps.run(steps, show, clock.now, clock.sleep)
    assert acts == [("attach", 0), ("write", pytest.approx(1)), ("read", clock.time_s)]
    assert [row.evidence for row in tables[-1]] == ["attached", "written", "same"]
    assert tables[-1][1].seconds == pytest.approx(2)
    assert {len(rows) for rows in tables} == {3}
    assert tables[0][1:] == [StepRow("write"), StepRow("read")]


def test_a_step_that_does_not_end_ends_the_demo() -> None:
    """The steps behind it do not begin."""
    clock, acts = Clock(), list[int]()
    steps = (
        ObservedStep("attach", lambda: acts.append(1), lambda: ""),
        ObservedStep("write", lambda: acts.append(2), lambda: "written"),
    )
    assert not observed_steps.run(steps, lambda rows: None, clock.now, clock.sleep)
    assert acts == [1]
    assert clock.time_s > waiting.LIMIT_S


def test_lost_data_is_an_error() -> None:
    """It is not waited for."""
    clock = Clock()

    def lose() -> str:
        raise errors.LabError("the volume has lost its data: []")

    steps = (ObservedStep("read", lambda: None, lose),)
    with pytest.raises(errors.LabError, match="lost its data"):
        observed_steps.run(steps, lambda rows: None, clock.now, clock.sleep)
    assert clock.time_s == 0
