"""Between two tries of one key: never less than the backoff's floor, nor 5 minutes.

A change of the Service itself is another reason to reconcile it, and not held up.
"""

import datetime
from collections.abc import Mapping, Sequence

import hypothesis
import prometheus_client
from hypothesis import strategies

from lib.ccm import service_controllers
from lib.process import retry_after
from lib.reconcile import failure, metrics, outcome, queue, runner
from lib.reconcile.outcome import Outcome

NOW = 1_760_000_000.0
FIRST_S = service_controllers.FIRST_BACKOFF_S
LONGEST_S = 300.0
JITTER = queue.Backoff().jitter
DATES = strategies.datetimes(
    datetime.datetime(1970, 1, 2), datetime.datetime(9999, 1, 1)
).map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
HEADERS = strategies.one_of(
    strategies.none(),
    strategies.integers(-10, 10**6).map(str),
    strategies.sampled_from(["", "0", "9" * 400, "1e999", "nan", "inf", "-1", "soon"]),
    DATES,
    strategies.text(max_size=10),
)
FAILURES = strategies.one_of(
    strategies.none(),  # a bug
    strategies.builds(
        lambda header, is_routine: failure.Failure(
            "refused", retry_after.seconds(header, NOW), is_routine=is_routine
        ),
        HEADERS,
        strategies.booleans(),
    ),
)


class Nothing:
    """A flow that is never run."""

    name = "nothing"

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, str]:
        raise AssertionError(claims)

    def decide(self, snapshot: str, now: datetime.datetime) -> Outcome[str]:
        raise AssertionError(snapshot, now)

    def act(self, snapshot: str, action: str) -> str:
        raise AssertionError(snapshot, action)

    def held_s(self, snapshot: str) -> float:
        raise AssertionError(snapshot)

    def ended(self, snapshot: str, error: Exception | None) -> None:
        raise AssertionError(snapshot, error)

    def requeues(
        self, snapshot: str, error: Exception | None
    ) -> Sequence[outcome.Requeue]:
        raise AssertionError(snapshot, error)

    def is_note(self, action: str) -> bool:
        raise AssertionError(action)

    def is_slow(self, action: str) -> bool:
        raise AssertionError(action)

    def failure(self, error: Exception) -> failure.Failure | None:
        raise AssertionError(error)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(
    strategies.lists(strategies.tuples(FAILURES, strategies.floats(0, 0.999))),
)
def test_the_time_between_two_tries_is_bounded_on_both_sides(
    tries: list[tuple[failure.Failure | None, float]],
) -> None:
    """Whatever the cloud answers, and whatever its Retry-After says."""
    now, chance = 1000.0, 0.0
    keys = queue.Queue(
        queue.Backoff(FIRST_S, service_controllers.LONGEST_BACKOFF_S),
        clock=lambda: now,
        chance=lambda: chance,
    )
    reconcile_metrics = metrics.ReconcileMetrics(prometheus_client.CollectorRegistry())
    loop: runner.Runner[str, str] = runner.Runner(Nothing(), keys, reconcile_metrics)
    keys.add("a", "t")
    for failed, chance in tries:  # noqa: B007 # the queue reads it
        (claim,) = keys.take_due(1)
        tried_at = now
        loop._requeue(claim, failed)
        keys.done(claim.key)
        now = tried_at + FIRST_S * (1 - JITTER) - 0.001
        assert keys.take_due(1) == (), failed
        now = tried_at + LONGEST_S
        assert keys.depth() == 1, failed
