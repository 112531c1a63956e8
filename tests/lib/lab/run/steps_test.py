import threading

import pytest

from lib.lab.run import steps


class Log:
    """What happened, in order, from several threads."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def step(self, name: str, *needs: str) -> steps.StartStep:
        return steps.StartStep(name, lambda: self.rows.append(name), needs)


def never() -> None:
    pytest.fail("nothing was to be interrupted")


def test_a_step_runs_after_all_it_needs() -> None:
    """Needs come first, in whatever order the steps are written down."""
    log = Log()
    plan = [log.step("roof", "walls"), log.step("walls", "floor"), log.step("floor")]
    steps.run(plan, never)
    assert log.rows == ["floor", "walls", "roof"]


def test_steps_that_do_not_need_each_other_run_at_once() -> None:
    """Two independent steps meet, which they can only when both are under way."""
    both = threading.Barrier(2, timeout=10)
    plan = [steps.StartStep(name, both.wait) for name in "ab"]
    steps.run(plan, never)
    assert not both.broken


def test_a_need_that_is_no_step_counts_as_met() -> None:
    """What an existing cluster stands for is not waited for."""
    log = Log()
    steps.run([log.step("servers", "openstack")], never)
    assert log.rows == ["servers"]


def test_the_first_error_wins_and_nothing_begins_after_it() -> None:
    """The error of the step that failed first is raised; its dependants stay out."""
    log = Log()

    def fail() -> None:
        raise OSError("no disk")

    plan = [steps.StartStep("disk", fail), log.step("data", "disk")]
    with pytest.raises(OSError, match="no disk"):
        steps.run(plan, lambda: None)
    assert log.rows == []


def test_an_error_interrupts_the_steps_under_way() -> None:
    """A step that still runs is ended by the interruption, and its end awaited."""
    under_way, end, ended = (threading.Event() for _ in range(3))

    def long() -> None:
        under_way.set()
        assert end.wait(10)
        ended.set()

    def fail() -> None:
        assert under_way.wait(10)
        raise OSError("no disk")

    plan = [steps.StartStep("long", long), steps.StartStep("fail", fail)]
    with pytest.raises(OSError, match="no disk"):
        steps.run(plan, end.set)
    assert ended.is_set()


def test_ctrl_c_interrupts_like_an_error() -> None:
    """KeyboardInterrupt passes through after the steps under way have been ended."""
    end = threading.Event()

    def press() -> None:
        raise KeyboardInterrupt

    plan = [
        steps.StartStep("long", lambda: end.wait(10)),
        steps.StartStep("ctrl-c", press),
    ]
    with pytest.raises(KeyboardInterrupt):
        steps.run(plan, end.set)
    assert end.is_set()


def test_interruption_is_repeated_but_not_for_ever() -> None:
    """A step that can't be ended is left behind when the patience is over."""
    forever, calls = threading.Event(), []

    def fail() -> None:
        raise OSError("no disk")

    plan = [
        steps.StartStep("deaf", lambda: forever.wait(30)),
        steps.StartStep("fail", fail),
    ]
    with pytest.raises(OSError, match="no disk"):
        steps.run(plan, lambda: calls.append(1), patience_s=3 * steps.LOOK_S)
    forever.set()
    assert len(calls) > 1


def test_steps_in_a_circle_are_refused() -> None:
    """A plan that can't end says so instead of waiting."""
    log = Log()
    with pytest.raises(ValueError, match="circle"):
        steps.run([log.step("egg", "hen"), log.step("hen", "egg")], lambda: None)


def test_a_run_reports_how_far_it_is() -> None:
    """At last with all steps done, each with the time that it took."""
    states: list[steps.RunState] = []
    plan = [steps.StartStep(name, lambda: None, needs) for name, needs in CHAIN]
    steps.run(plan, never, watch=states.append)
    counts = [len(state.done) for state in states]
    assert counts == sorted(counts)
    assert states[-1].done == {"floor", "walls"}
    assert states[-1].elapsed_s.keys() == {"floor", "walls"}
    assert all(state.done <= state.elapsed_s.keys() for state in states)


CHAIN = (("floor", ()), ("walls", ("floor",)))
