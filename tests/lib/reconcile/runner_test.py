"""The runner: batches, workers, errors, and how it ends."""

import dataclasses
import datetime
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import prometheus_client
import pytest
import structlog

from lib.reconcile import failure, metrics, queue, runner
from lib.reconcile import outcome as outcomes
from lib.reconcile.outcome import Outcome


class Expected(Exception):
    """An error the flow below can explain."""


class Scheduled(Expected):
    """One for which the flow names the time of the next try."""


@dataclasses.dataclass(frozen=True, slots=True)
class Greet:
    """The one action of the flow below."""

    key: str
    number: int = 0
    is_note: bool = False


Log = Sequence[Mapping[str, object]]
Eventually = Callable[[Callable[[], bool]], None]
Run = Callable[..., threading.Event]


class Count(Protocol):
    """Reads a metric of the flow; None when it is not there."""

    def __call__(self, name: str, **labels: str) -> float | None: ...


Decide = Callable[[str, datetime.datetime], Outcome[Greet]]


def one_action(key: str, now: datetime.datetime) -> Outcome[Greet]:
    del now
    return Outcome((Greet(key),))


@dataclasses.dataclass
class FlowStub:
    """A flow whose snapshot is the key, and whose steps the test may replace."""

    decide_: Decide = one_action
    act_: Callable[[Greet], None] = lambda action: None
    observe_: Callable[[Sequence[queue.Claim]], None] = lambda claims: None
    absent: frozenset[str] = frozenset()
    slow: frozenset[str] = frozenset()
    name: str = "greetings"
    batches: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    done: list[Greet] = dataclasses.field(default_factory=list)
    topics: list[frozenset[str]] = dataclasses.field(default_factory=list)
    ends: list[tuple[str, Exception | None]] = dataclasses.field(default_factory=list)
    upon: list[str] = dataclasses.field(default_factory=list)
    holds: list[float] = dataclasses.field(default_factory=list)
    again: dict[str, tuple[outcomes.Requeue, ...]] = dataclasses.field(
        default_factory=dict
    )

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, str]:
        self.batches.append(tuple(claim.key for claim in claims))
        self.topics.extend(claim.topics for claim in claims)
        self.observe_(claims)
        return {
            claim.key: claim.key for claim in claims if claim.key not in self.absent
        }

    def has_done(self, action: Greet) -> bool:
        return action in self.done

    def decide(self, snapshot: str, now: datetime.datetime) -> Outcome[Greet]:
        return self.decide_(snapshot, now)

    def act(self, snapshot: str, action: Greet) -> str:
        self.upon.append(snapshot)
        self.act_(action)
        self.done.append(action)
        return f"{snapshot}, {action.number} written"

    def held_s(self, snapshot: str) -> float:
        return self.holds.pop(0) if self.holds else 0.0

    def is_note(self, action: Greet) -> bool:
        return action.is_note

    def requeues(
        self, snapshot: str, error: Exception | None
    ) -> Sequence[outcomes.Requeue]:
        return self.again.get(snapshot, ())

    def ended(self, snapshot: str, error: Exception | None) -> None:
        self.ends.append((snapshot, error))

    def is_slow(self, action: Greet) -> bool:
        return action.key in self.slow

    def failure(self, error: Exception) -> failure.Failure | None:
        if isinstance(error, Scheduled):
            return failure.Failure(str(error), requeue_after_s=0.03)
        if isinstance(error, Expected):
            return failure.Failure(str(error), retry_after_s=0.01)
        return None


@pytest.fixture()
def keys() -> Iterator[queue.Queue]:
    keys = queue.Queue(queue.Backoff(base_s=0.01, max_s=0.02))
    yield keys
    keys.shut_down()  # a loop that waits for keys ends at once


@pytest.fixture()
def run(
    running: Callable[[Callable[[threading.Event], None]], threading.Event],
    keys: queue.Queue,
    reconcile_metrics: metrics.ReconcileMetrics,
) -> Run:
    """Return a function that runs a flow until the test ends."""

    def start(
        flow: FlowStub,
        settings: runner.RunnerSettings | None = None,
        clocks: runner.Clocks | None = None,
    ) -> threading.Event:
        loop = runner.Runner(flow, keys, reconcile_metrics, settings, clocks)
        return running(loop.run)

    return start


@pytest.fixture()
def count(registry: prometheus_client.CollectorRegistry) -> Count:
    """Return a function that reads a metric of the flow; None when it is not there."""

    def read(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"controller": "greetings", **labels})

    return read


def test_a_key_is_observed_decided_and_acted_on(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    flow = FlowStub()
    keys.add("a", "t")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert flow.done == [Greet("a")]
    assert count("mooring_reconcile_duration_seconds_count") == 1


def test_a_batch_is_observed_in_one_call(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    flow = FlowStub()
    for number in range(20):
        keys.add(f"k{number}", "t")
    run(flow, runner.RunnerSettings(workers=4, batch_max=100, batch_s=0.01))
    eventually(lambda: len(flow.done) == 20)
    assert len(flow.batches) == 1


def test_a_key_without_a_snapshot_is_done(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    flow = FlowStub(absent=frozenset({"a"}))
    keys.add("a", "t")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="absent") == 1)
    keys.add("a", "t")
    eventually(lambda: flow.batches == [("a",), ("a",)])
    assert flow.done == []


def test_a_requeue_brings_the_same_topics_back(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    def once_more(key: str, now: datetime.datetime) -> Outcome[Greet]:
        del now
        return Outcome((), 0.01 if len(flow.batches) == 1 else None)

    flow = FlowStub(once_more)
    keys.add("a", "x")
    keys.add("a", "y")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert flow.topics == [frozenset("xy"), frozenset("xy")]
    assert count("mooring_reconcile_total", outcome="requeue") == 1


def test_decide_is_given_the_time_of_its_clock(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    then = datetime.datetime(2031, 1, 2, tzinfo=datetime.UTC)
    times: list[datetime.datetime] = []

    def note(key: str, now: datetime.datetime) -> Outcome[Greet]:
        times.append(now)
        return one_action(key, now)

    keys.add("a", "t")
    run(FlowStub(note), clocks=runner.Clocks(now=lambda: then))
    eventually(lambda: times == [then])


def test_an_expected_error_is_logged_once_as_a_warning_and_retried(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count, log: Log
) -> None:
    def fail_once(action: Greet) -> None:
        if len(flow.batches) == 1:
            raise Expected("the cloud is busy")

    flow = FlowStub(act_=fail_once)
    keys.add("a", "x")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert flow.topics == [frozenset("x")] * 2
    assert count("mooring_reconcile_total", outcome="failure") == 1
    assert count("mooring_retries_total") == 1
    (entry,) = (entry for entry in log if entry["log_level"] == "warning")
    assert entry["event"] == "reconcile failed"
    assert entry["error"] == "the cloud is busy"
    assert entry["key"] == "a"
    assert entry["controller"] == "greetings"
    assert entry["next_try_s"] == pytest.approx(0.011, abs=0.001)
    assert "exc_info" not in entry


@pytest.mark.parametrize("step", ["decide", "act"])
def test_a_bug_is_logged_once_with_its_traceback_and_backed_off(
    run: Run,
    keys: queue.Queue,
    eventually: Eventually,
    count: Count,
    log: Log,
    step: str,
) -> None:
    def break_in(here: str) -> None:
        if here == step and len(flow.batches) == 1:
            raise ZeroDivisionError

    def decide(key: str, now: datetime.datetime) -> Outcome[Greet]:
        break_in("decide")
        return one_action(key, now)

    flow = FlowStub(decide, lambda action: break_in("act"))
    keys.add("a", "t")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert count("mooring_reconcile_total", outcome="unexpected_error") == 1
    (entry,) = (entry for entry in log if entry["log_level"] == "error")
    assert isinstance(entry["exc_info"], ZeroDivisionError)


def test_actions_after_a_failed_one_are_not_carried_out(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    def fail_second(action: Greet) -> None:
        if action.number == 2 and len(flow.batches) == 1:
            raise Expected("no")

    three = Outcome(tuple(Greet("a", number) for number in (1, 2, 3)))
    flow = FlowStub(lambda key, now: three, fail_second)
    keys.add("a", "t")
    run(flow)
    eventually(lambda: len(flow.batches) == 2 and len(flow.done) == 4)
    assert [action.number for action in flow.done] == [1, 1, 2, 3]


def test_a_failed_observe_backs_off_all_its_keys_and_is_logged_once(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count, log: Log
) -> None:
    def fail_once(claims: Sequence[queue.Claim]) -> None:
        if len(flow.batches) == 1:
            raise Expected("no answer")

    flow = FlowStub(observe_=fail_once)
    for key in "abc":
        keys.add(key, "t")
    run(flow, runner.RunnerSettings(batch_max=10, batch_s=0.01))
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 3)
    assert count("mooring_reconcile_total", outcome="failure") == 3
    assert count("mooring_retries_total") == 3
    (entry,) = (entry for entry in log if entry["log_level"] == "warning")
    assert (entry["keys"], entry["step"]) == (3, "observe")


def test_an_error_in_explaining_errors_does_not_end_the_loop(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    @dataclasses.dataclass
    class Confused(FlowStub):
        def failure(self, error: Exception) -> failure.Failure | None:
            raise RuntimeError from error

    def fail_once(action: Greet) -> None:
        if len(flow.batches) == 1:
            raise Expected("no")

    flow = Confused(act_=fail_once)
    keys.add("a", "t")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert count("mooring_reconcile_total", outcome="unexpected_error") == 1


def test_success_lets_the_backoff_begin_anew(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    for _ in range(5):
        keys.retry("a", ["t"])
    run(FlowStub())
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert keys.retry("a", ["t"]) <= 0.01


def test_a_key_stays_claimed_until_its_own_act_has_ended(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    """While one key's act hangs, others are passed, but not that key again."""
    go_on, began = threading.Event(), threading.Event()

    def hang(action: Greet) -> None:
        if action.key == "slow":
            began.set()
            assert go_on.wait(10)

    flow = FlowStub(act_=hang)
    keys.add("slow", "t")
    run(flow, runner.RunnerSettings(workers=2))
    assert began.wait(5)
    keys.add("slow", "again")
    keys.add("quick", "t")
    eventually(lambda: flow.done == [Greet("quick")])
    assert flow.batches.count(("slow",)) == 1
    go_on.set()
    eventually(lambda: flow.done.count(Greet("slow")) == 2)


def test_no_more_keys_are_observed_while_every_worker_is_busy(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    go_on, began = threading.Event(), threading.Event()

    def hang(action: Greet) -> None:
        began.set()
        assert go_on.wait(10)

    flow = FlowStub(act_=hang)
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(workers=1))
    assert began.wait(5)
    keys.add("b", "t")
    time.sleep(0.05)
    assert flow.batches == [("a",)]
    go_on.set()
    eventually(lambda: len(flow.done) == 2)


@dataclasses.dataclass
class ReadingStub:
    """Reads keys that begin with "r", as long as it is let; what it reads is seen."""

    go_on: threading.Event = dataclasses.field(default_factory=threading.Event)
    batches: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    error: Exception | None = None

    def needs_read(self, snapshot: str) -> bool:
        return snapshot.startswith("r")

    def read(self, snapshots: Mapping[str, str]) -> Mapping[str, str]:
        self.batches.append(tuple(sorted(snapshots)))
        assert self.go_on.wait(10)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return {key: f"{snapshot}, read" for key, snapshot in snapshots.items()}


def test_who_has_more_to_be_read_keeps_nobody_else_and_shares_the_next_read(
    running: Callable[[Callable[[threading.Event], None]], threading.Event],
    reconcile_metrics: metrics.ReconcileMetrics,
    keys: queue.Queue,
    eventually: Eventually,
) -> None:
    flow, reading = FlowStub(), ReadingStub()
    keys.add("r1", "t")
    running(runner.Runner(flow, keys, reconcile_metrics, reading=reading).run)
    eventually(lambda: reading.batches == [("r1",)])
    for key in ("a", "r2", "b", "r3"):
        keys.add(key, "t")
    eventually(lambda: flow.done == [Greet("a"), Greet("b")])
    eventually(lambda: len(flow.batches) == 5)
    reading.go_on.set()
    eventually(lambda: len(flow.done) == 5)
    assert reading.batches == [("r1",), ("r2", "r3")]
    assert {greet.key for greet in flow.done[2:]} == {f"r{n}, read" for n in (1, 2, 3)}


def test_a_read_without_an_end_is_not_well_while_the_loop_turns(
    running: Callable[[Callable[[threading.Event], None]], threading.Event],
    reconcile_metrics: metrics.ReconcileMetrics,
    keys: queue.Queue,
    eventually: Eventually,
) -> None:
    reading, beats, now = ReadingStub(), [0], [100.0]

    def beat() -> None:
        beats[0] += 1

    clocks = runner.Clocks(monotonic=lambda: now[0], beat=beat)
    flow_runner = runner.Runner(
        FlowStub(), keys, reconcile_metrics, clocks=clocks, reading=reading
    )
    check = flow_runner.reads_within(60.0)
    assert check() is None
    keys.add("r1", "t")
    running(flow_runner.run)
    eventually(lambda: reading.batches == [("r1",)])
    now[0] += 60.0
    assert check() is None
    now[0] += 10.0
    assert check() == "a read has not ended for 70 s"
    before = beats[0]
    keys.add("a", "t")
    eventually(lambda: beats[0] > before)
    reading.go_on.set()
    eventually(lambda: check() is None)


class ReadingOfMany(ReadingStub):
    """Hangs while it reads many keys; reads of few end immediately."""

    def read(self, snapshots: Mapping[str, str]) -> Mapping[str, str]:
        if len(snapshots) <= runner.MANY:
            self.batches.append(tuple(sorted(snapshots)))
            return {key: f"{snapshot}, read" for key, snapshot in snapshots.items()}
        return super().read(snapshots)


def test_a_read_of_many_keys_does_not_delay_a_new_one(
    running: Callable[[Callable[[threading.Event], None]], threading.Event],
    reconcile_metrics: metrics.ReconcileMetrics,
    keys: queue.Queue,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that comes up later is read, decided and acted on before the read ends."""
    monkeypatch.setattr(runner, "SHARE_MANY_S", 0.05)
    flow, reading = FlowStub(), ReadingOfMany()
    many = [f"r{number}" for number in range(runner.MANY + 1)]
    keys.add_many(many, "t")
    settings = runner.RunnerSettings(batch_max=len(many))
    loop = runner.Runner(flow, keys, reconcile_metrics, settings, reading=reading)
    running(loop.run)
    eventually(lambda: len(reading.batches) == 1)
    for number in range(2 * runner.READS):
        key = f"r-new-{number}"
        keys.add(key, "t")
        eventually(functools.partial(flow.has_done, Greet(f"{key}, read")))
    assert not reading.go_on.is_set()
    assert len(flow.done) == 2 * runner.READS
    reading.go_on.set()
    eventually(lambda: len(flow.done) == 2 * runner.READS + len(many))


def test_a_read_that_fails_is_tried_again_for_every_key(
    running: Callable[[Callable[[threading.Event], None]], threading.Event],
    reconcile_metrics: metrics.ReconcileMetrics,
    keys: queue.Queue,
    eventually: Eventually,
) -> None:
    flow, reading = FlowStub(), ReadingStub(error=Expected("down"))
    reading.go_on.set()
    keys.add("r1", "t")
    running(runner.Runner(flow, keys, reconcile_metrics, reading=reading).run)
    eventually(lambda: flow.done == [Greet("r1, read")])
    assert len(reading.batches) == 2


def test_slow_actions_keep_nobody_but_each_other_from_being_looked_at(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    go_on = threading.Event()

    def hang(action: Greet) -> None:
        assert action.key not in "abc" or go_on.wait(10)

    flow = FlowStub(act_=hang, slow=frozenset("abc"))
    for key in "abc":
        keys.add(key, "t")
    run(flow, runner.RunnerSettings(workers=1, batch_max=3, batch_s=0.01))
    eventually(lambda: flow.batches == [("a", "b", "c")])
    keys.add("d", "t")
    eventually(lambda: flow.done == [Greet("d")])
    keys.add("e", "t")
    eventually(lambda: flow.done == [Greet("d"), Greet("e")])
    go_on.set()
    eventually(lambda: len(flow.done) == 5)


def test_acts_fan_out_over_all_workers(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(action: Greet) -> None:
        together.wait()

    flow = FlowStub(act_=meet)
    for key in "abc":
        keys.add(key, "t")
    run(flow, runner.RunnerSettings(workers=3, batch_max=3, batch_s=0.01))
    eventually(lambda: len(flow.done) == 3)


def test_a_dry_run_logs_actions_and_carries_none_out(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count, log: Log
) -> None:
    flow = FlowStub()
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(dry_run=True))
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert flow.done == []
    (entry,) = (entry for entry in log if entry["log_level"] == "info")
    assert entry["action"] == "Greet(key='a', number=0, is_note=False)"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_failure_that_was_decided_is_reported_and_retried(
    run: Run,
    keys: queue.Queue,
    eventually: Eventually,
    count: Count,
    log: Log,
    dry_run: bool,
) -> None:
    """Also in a dry run, which only does not record its Event."""
    error = Expected("the cloud cannot be read")
    failing = Outcome((), 0.0, error, (Greet("event", 1),))
    flow = FlowStub(lambda key, now: failing if len(flow.ends) < 3 else Outcome())
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(dry_run=dry_run))
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert count("mooring_reconcile_total", outcome="failure") == 3
    assert count("mooring_retries_total") == 3
    last = "a" if dry_run else "a, 1 written"
    assert flow.ends == [(last, error)] * 3 + [("a", None)]
    assert flow.done == [] if dry_run else [Greet("event", 1)] * 3
    failed = [entry for entry in log if entry["event"] == "reconcile failed"]
    assert [entry["error"] for entry in failed] == [str(error)] * 3
    levels = [entry["log_level"] for entry in failed]
    assert levels == ["warning", "debug", "debug"], "once a minute"
    assert not [entry for entry in log if entry["log_level"] == "info"]


def test_each_action_is_carried_out_upon_what_those_before_it_have_written(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    """Also upon notes; nothing of it is left for the next reconciliation."""
    both = Outcome((Greet("a", 1), Greet("a", 2, is_note=True), Greet("a", 3)))
    flow = FlowStub(lambda key, now: both)
    keys.add("a", "t")
    run(flow)
    eventually(lambda: len(flow.ends) == 1)
    assert flow.upon == ["a", "a, 1 written", "a, 1 written, 2 written"]
    assert flow.ends == [("a, 1 written, 2 written, 3 written", None)]
    keys.add("a", "t")
    eventually(lambda: len(flow.ends) == 2)
    assert flow.upon[3] == "a"


def test_a_key_that_is_held_is_not_decided_upon_and_comes_back(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    """With its topics, after the time that the flow returns."""
    flow = FlowStub(holds=[0.01, 0.02])
    keys.add("a", "t")
    run(flow)
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert count("mooring_reconcile_total", outcome="requeue") == 2
    assert flow.topics == [frozenset("t")] * 3
    assert flow.done == [Greet("a")]


def test_the_actions_before_a_decided_failure_are_carried_out(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    failing = Outcome((Greet("a"),), failure=Expected("no"))
    flow = FlowStub(lambda key, now: failing if not flow.ends else Outcome())
    keys.add("a", "t")
    run(flow)
    eventually(lambda: len(flow.ends) == 2)
    assert flow.done == [Greet("a")]


def test_a_dry_run_ignores_a_requeue_after_an_action_that_was_left_out(
    run: Run, keys: queue.Queue, eventually: Eventually, count: Count
) -> None:
    """Nothing has changed, so that it would be read and logged repeatedly."""
    flow = FlowStub(lambda key, now: Outcome((Greet(key),), 0.0))
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(dry_run=True))
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    time.sleep(0.1)
    assert flow.batches == [("a",)]
    keys.add("a", "drift")
    eventually(lambda: flow.batches == [("a",)] * 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Shout(Greet, outcomes.ReportAction):
    """One that is only heard."""


@pytest.mark.parametrize(
    "actions",
    [(), (Greet("a", is_note=True),), (Shout("a"),)],
    ids=["nothing to do", "a note", "an Event"],
)
def test_a_dry_run_goes_on_waiting_for_what_it_does_not_change(
    run: Run, keys: queue.Queue, eventually: Eventually, actions: tuple[Greet, ...]
) -> None:
    flow = FlowStub(lambda key, now: Outcome(actions, 0.0))
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(dry_run=True))
    eventually(lambda: len(flow.batches) >= 3)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_note_is_carried_out_without_a_word(
    run: Run,
    keys: queue.Queue,
    eventually: Eventually,
    count: Count,
    log: Log,
    dry_run: bool,
) -> None:
    """What only the process remembers is no news, and no harm in a dry run."""
    note = Greet("a", is_note=True)
    flow = FlowStub(lambda key, now: Outcome((note,)))
    keys.add("a", "t")
    run(flow, runner.RunnerSettings(dry_run=dry_run))
    eventually(lambda: count("mooring_reconcile_total", outcome="success") == 1)
    assert flow.done == [note]
    assert not log


def test_an_idle_loop_beats_and_one_whose_workers_hang_does_not(
    run: Run, keys: queue.Queue, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TURN_S", 0.01)
    beats: list[None] = []
    go_on, began = threading.Event(), threading.Event()

    def hang(action: Greet) -> None:
        began.set()
        assert go_on.wait(10)

    run(FlowStub(act_=hang), clocks=runner.Clocks(beat=lambda: beats.append(None)))
    eventually(lambda: len(beats) > 3)
    keys.add("a", "t")
    assert began.wait(5)
    time.sleep(0.03)
    quiet = len(beats)
    time.sleep(0.05)
    assert len(beats) == quiet
    go_on.set()
    eventually(lambda: len(beats) > quiet)


def test_a_long_reconciliation_that_advances_beats(
    run: Run, keys: queue.Queue, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers are busy for long, but each action ends."""
    monkeypatch.setattr(runner, "TURN_S", 60.0)
    beats: list[None] = []
    steps = [threading.Event() for _ in range(3)]
    reached: list[int] = []

    def act(action: Greet) -> None:
        reached.append(action.number)
        assert steps[action.number].wait(10)

    def decide(key: str, now: datetime.datetime) -> Outcome[Greet]:
        del now
        return Outcome(tuple(Greet(key, number) for number in range(3)))

    keys.add("a", "t")
    run(
        FlowStub(decide_=decide, act_=act),
        clocks=runner.Clocks(beat=lambda: beats.append(None)),
    )
    eventually(lambda: len(reached) == 1)
    began = len(beats)
    steps[0].set()
    eventually(lambda: len(reached) == 2 and len(beats) == began + 1)
    steps[1].set()
    eventually(lambda: len(reached) == 3 and len(beats) == began + 2)
    steps[2].set()


def test_stop_waits_for_the_act_in_flight_and_begins_no_other_key(
    keys: queue.Queue, reconcile_metrics: metrics.ReconcileMetrics
) -> None:
    go_on, began, stop = threading.Event(), threading.Event(), threading.Event()

    def hang(action: Greet) -> None:
        began.set()
        assert go_on.wait(10)

    flow = FlowStub(act_=hang)
    for number in range(200):
        keys.add(f"k{number}", "t")
    loop = runner.Runner(
        flow,
        keys,
        reconcile_metrics,
        runner.RunnerSettings(batch_max=200, batch_s=0.01),
    )
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    assert began.wait(5)
    stop.set()
    time.sleep(0.05)
    assert thread.is_alive()
    go_on.set()
    thread.join(5)
    assert not thread.is_alive()
    assert flow.done == [Greet("k0")]


def test_an_act_that_does_not_end_is_left_behind_without_its_next_action(
    keys: queue.Queue,
    reconcile_metrics: metrics.ReconcileMetrics,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(runner, "LAST_ACTS_S", 0.05)
    monkeypatch.setattr(runner, "TURN_S", 0.05)
    go_on, began, stop = threading.Event(), threading.Event(), threading.Event()

    def hang(action: Greet) -> None:
        began.set()
        assert go_on.wait(10)

    flow = FlowStub(lambda key, now: Outcome((Greet("a", 1), Greet("a", 2))), hang)
    keys.add("a", "t")
    loop = runner.Runner(flow, keys, reconcile_metrics)
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    assert began.wait(5)
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    go_on.set()
    eventually(lambda: len(flow.done) == 1)
    time.sleep(0.02)
    assert flow.done == [Greet("a", 1)]


def test_context_is_bound_while_a_pass_runs(
    run: Run, keys: queue.Queue, eventually: Eventually, log: Log
) -> None:
    """A lower layer's entry names controller and key without arguments."""
    flow = FlowStub(act_=lambda action: structlog.get_logger().info("deep down"))
    keys.add("a", "t")
    run(flow)
    eventually(lambda: len(flow.done) == 1)
    (entry,) = (entry for entry in log if entry["event"] == "deep down")
    assert (entry["controller"], entry["key"]) == ("greetings", "a")


def test_depth_and_age_of_the_queue_are_metrics(
    keys: queue.Queue,
    reconcile_metrics: metrics.ReconcileMetrics,
    registry: prometheus_client.CollectorRegistry,
    count: Count,
) -> None:
    runner.Runner(FlowStub(), keys, reconcile_metrics)
    assert count("mooring_queue_depth") == 0
    keys.add("a", "t")
    keys.add("b", "t")
    assert count("mooring_queue_depth") == 2
    age_s = count("mooring_queue_oldest_age_seconds")
    assert age_s is not None
    assert age_s >= 0
    assert count("mooring_reconcile_total", outcome="unexpected_error") == 0


def test_a_scheduled_try_replaces_the_backoff_and_does_not_increase_it(
    run: Run, keys: queue.Queue, eventually: Eventually, log: list[dict[str, object]]
) -> None:
    """Routine waits must not delay the first retry after a real failure."""
    errors = [Scheduled("wait")] * 5 + [Expected("down")]

    def refuse(action: Greet) -> None:
        del action
        if errors:
            raise errors.pop(0)

    flow = FlowStub(act_=refuse)
    keys.add("a", "t")
    run(flow)
    eventually(lambda: flow.done == [Greet("a")])
    waits = [
        entry["next_try_s"] for entry in log if entry["event"] == "reconcile failed"
    ]
    assert waits[:5] == [0.03] * 5
    assert waits[5] == pytest.approx(0.01, rel=0.21), "base_s: the first failure"


def test_an_unexpected_error_in_the_reading_lane_ends_the_loop(
    reconcile_metrics: metrics.ReconcileMetrics, keys: queue.Queue
) -> None:
    """Its keys would stay claimed for ever while the loop seems healthy."""

    class Partial:
        def needs_read(self, snapshot: str) -> bool:
            del snapshot
            return True

        def read(self, snapshots: Mapping[str, str]) -> Mapping[str, str]:
            del snapshots
            return {}

    keys.add("a", "t")
    loop = runner.Runner(FlowStub(), keys, reconcile_metrics, reading=Partial())
    with pytest.raises(KeyError):
        loop.run(threading.Event())


def test_what_was_carried_out_brings_its_key_back_for_other_topics(
    run: Run, keys: queue.Queue, eventually: Eventually
) -> None:
    """Also when a later action fails: what the first one wrote is not lost."""
    drift = outcomes.Requeue(0.08, frozenset({"drift"}))

    def decide(key: str, now: datetime.datetime) -> Outcome[Greet]:
        del now
        return Outcome((Greet(key, 1), Greet(key, 2)))

    def fail_once(action: Greet) -> None:
        if action.number == 2 and len(flow.topics) == 1:
            raise Scheduled("not now")

    flow = FlowStub(decide, fail_once, again={"a, 1 written": (drift,)})
    run(flow)
    keys.add("a", "sync")
    eventually(lambda: len(flow.topics) >= 3)
    assert flow.topics[0] == {"sync"}
    assert sorted(map(sorted, flow.topics[1:3])) == [["drift"], ["sync"]]
    assert flow.ends[0][0] == "a, 1 written"
