"""A caller that waits: its key is reconciled until it is settled, or out of time."""

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence

import prometheus_client
import pytest

from lib.reconcile import failure, metrics, waiting
from lib.reconcile.outcome import Outcome, ReportAction


class TooLate(Exception):
    """The caller's deadline has come."""


class Refused(Exception):
    """The request cannot be fulfilled."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fill:
    """Put one litre into the tank."""


@dataclasses.dataclass(frozen=True, slots=True)
class Announce(ReportAction):
    """Report that the tank cannot be filled."""


Action = Fill | Announce


@dataclasses.dataclass
class Tank(waiting.WaitingFlow[int, Action]):
    """A flow that fills a tank litre by litre, in a time of its own.

    A snapshot is the level in litres.
    """

    desired: int
    room: int = 10
    deadline: float = 60.0
    level: int = 0
    now_s: float = 0.0
    failures: list[Exception] = dataclasses.field(default_factory=list)
    reads: list[float] = dataclasses.field(default_factory=list)
    announced: int = 0
    ends: list[Exception | None] = dataclasses.field(default_factory=list)

    name = "tanks"

    def observe(self, due: float) -> int:
        self.now_s = max(self.now_s, due)
        if self.now_s >= self.deadline:
            raise TooLate
        self.reads.append(self.now_s)
        return self.level

    def decide(self, snapshot: int, now: datetime.datetime) -> Outcome[Action]:
        del now
        if self.desired > self.room:
            return Outcome(failure=Refused("no room"), events=(Announce(),))
        if snapshot >= self.desired:
            return Outcome()
        return Outcome((Fill(),), requeue_after_s=2.0)

    def act(self, snapshot: int, action: Action) -> int:
        if isinstance(action, Announce):
            self.announced += 1
            return snapshot
        if self.failures:
            raise self.failures.pop(0)
        self.level += 1
        return self.level

    def ended(self, snapshot: int, error: Exception | None) -> None:
        self.ends.append(error)

    def failure(self, error: Exception) -> failure.Failure | None:
        match error:
            case failure.Postponed():
                return error.failure()
            case Refused() | TooLate():
                return failure.Failure(str(error))
        return None


Log = Sequence[Mapping[str, object]]
Settle = Callable[..., None]


@pytest.fixture()
def settle(reconcile_metrics: metrics.ReconcileMetrics) -> Settle:
    """Return a function that lets a caller wait for a tank."""

    def run(tank: Tank, *, dry_run: bool = False) -> None:
        settler = waiting.Settler(reconcile_metrics, dry_run, lambda: tank.now_s)
        settler.settle(tank, "tank 1")

    return run


def counts(registry: prometheus_client.CollectorRegistry) -> dict[str, float]:
    """Return how many reconciliations ended in each way."""
    values = {
        result.value: registry.get_sample_value(
            "mooring_reconcile_total", {"controller": "tanks", "outcome": result.value}
        )
        for result in metrics.Result
    }
    return {name: value for name, value in values.items() if value}


def test_it_goes_on_until_the_request_is_fulfilled(
    settle: Settle, registry: prometheus_client.CollectorRegistry, log: Log
) -> None:
    tank = Tank(desired=3)
    settle(tank)
    assert tank.level == 3
    assert tank.reads == [0.0, 2.0, 4.0, 6.0]
    assert [(entry["event"], entry["key"], entry["action"]) for entry in log] == [
        ("action completed", "tank 1", "Fill")
    ] * 3
    assert counts(registry) == {"success": 1, "requeue": 3}
    assert tank.ends == [None] * 4


def test_an_error_with_a_time_is_tried_again_and_any_other_ends_the_waiting(
    settle: Settle, registry: prometheus_client.CollectorRegistry, log: Log
) -> None:
    busy, broken = failure.Postponed("busy", 5.0), RuntimeError("broken")
    tank = Tank(desired=3, failures=[busy])
    settle(tank)
    assert tank.reads == [0.0, 5.0, 7.0, 9.0, 11.0]
    assert tank.level == 3
    (entry,) = (entry for entry in log if entry["event"] == "reconcile failed")
    assert (entry["log_level"], entry["error"], entry["next_try_s"]) == (
        "debug",
        "busy",
        5.0,
    )
    with pytest.raises(RuntimeError, match="broken"):
        settle(Tank(desired=3, failures=[broken]))
    assert counts(registry) == {
        "success": 1,
        "requeue": 3,
        "failure": 1,
        metrics.Result.UNEXPECTED_ERROR.value: 1,
    }
    retries = registry.get_sample_value(
        "mooring_retries_total", {"controller": "tanks"}
    )
    assert retries == 1


def test_the_failure_that_was_decided_reaches_the_caller_after_its_events(
    settle: Settle, registry: prometheus_client.CollectorRegistry
) -> None:
    tank = Tank(desired=11)
    with pytest.raises(Refused, match="no room"):
        settle(tank)
    assert tank.announced == 1
    assert counts(registry) == {"failure": 1}


def test_the_deadline_ends_the_waiting(
    settle: Settle, registry: prometheus_client.CollectorRegistry
) -> None:
    tank = Tank(desired=10, deadline=5.0)
    with pytest.raises(TooLate):
        settle(tank)
    assert tank.level == 3
    assert counts(registry) == {"requeue": 3, "failure": 1}


def test_a_dry_run_logs_what_it_does_not_do_and_says_so(
    settle: Settle, registry: prometheus_client.CollectorRegistry, log: Log
) -> None:
    """A request that holds already succeeds all the same."""
    tank = Tank(desired=3)
    with pytest.raises(waiting.Skipped, match="not carried out: Fill"):
        settle(tank, dry_run=True)
    assert tank.level == 0
    assert [(entry["event"], entry["controller"], entry["key"]) for entry in log] == [
        ("action skipped (dry run)", "tanks", "tank 1")
    ]
    settle(Tank(desired=3, level=3), dry_run=True)
    assert counts(registry) == {"failure": 1, "success": 1}
