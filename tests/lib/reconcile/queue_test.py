"""The queue: one worker per key, nothing lost, nothing early, oldest first."""

import collections
import itertools
import threading
import time
from collections.abc import Callable
from typing import Protocol

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from lib.reconcile import queue as queues

NEVER = threading.Event()


class Clock(Protocol):
    """See conftest.py."""

    def __call__(self) -> float: ...

    def pass_by(self, seconds: float) -> None: ...


def keys(claims: tuple[queues.Claim, ...]) -> list[str]:
    return [claim.key for claim in claims]


@pytest.fixture()
def queue(clock: Clock) -> queues.Queue:
    return queues.Queue(clock=clock, chance=lambda: 0.0)


def test_topics_of_a_key_are_merged_into_one_claim(queue: queues.Queue) -> None:
    queue.add("a", "address")
    queue.add("a", "taint")
    queue.add("a", "taint")
    expected = queues.Claim("a", frozenset({"address", "taint"}))
    assert queue.take_due(10) == (expected,)
    assert queue.take_due(10) == ()


def test_topics_added_together_are_due_together_whatever_the_clock_does() -> None:
    """A clock that moves at each look must not tear them apart."""
    ticks = itertools.count()
    queue = queues.Queue(clock=lambda: float(next(ticks)))
    queue.add_all("a", ("x", "y", "z"), 10)
    while not (claims := queue.take_due(1)):
        pass
    assert claims == (queues.Claim("a", frozenset("xyz")),)


def test_many_keys_added_together_are_one_batch(queue: queues.Queue) -> None:
    queue.add_many(["a", "b", "c"], "x")
    assert keys(queue.take_due(10)) == ["a", "b", "c"]


def test_a_claimed_key_is_given_out_again_only_after_done(queue: queues.Queue) -> None:
    queue.add("a", "first")
    queue.take_due(1)
    queue.add("a", "second")
    assert queue.take_due(1) == ()
    queue.done("a")
    assert queue.take_due(1) == (queues.Claim("a", frozenset({"second"})),)


def test_done_without_further_adds_leaves_nothing(queue: queues.Queue) -> None:
    queue.add("a", "t")
    queue.take_due(1)
    queue.done("a")
    assert queue.take_due(1) == ()
    assert queue.depth() == 0


def test_a_delayed_topic_comes_when_its_time_has_come(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("a", "t", 5)
    clock.pass_by(4.9)
    assert queue.take_due(1) == ()
    clock.pass_by(0.2)
    assert keys(queue.take_due(1)) == ["a"]


def test_a_later_add_does_not_postpone_and_an_earlier_one_advances(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("a", "t", 5)
    queue.add("a", "t", 50)
    queue.add("b", "t", 50)
    queue.add("b", "t", 5)
    clock.pass_by(5)
    assert keys(queue.take_due(9)) == ["a", "b"]
    queue.done("a")
    queue.done("b")
    clock.pass_by(100)
    assert queue.take_due(9) == (), "an add that was overtaken must not come twice"


def test_a_topic_not_yet_due_stays_behind_for_its_own_time(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("a", "slow", 60)
    queue.add("a", "fast")
    assert queue.take_due(1) == (queues.Claim("a", frozenset({"fast"})),)
    queue.done("a")
    assert queue.take_due(1) == ()
    clock.pass_by(60)
    assert queue.take_due(1) == (queues.Claim("a", frozenset({"slow"})),)


def test_the_key_that_is_due_longest_comes_first(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("late", "t", 3)
    queue.add("early", "t", 1)
    queue.add("now", "t")
    clock.pass_by(10)
    queue.add("newest", "t")
    assert keys(queue.take_due(2)) == ["now", "early"]
    assert keys(queue.take_due(9)) == ["late", "newest"]


def test_depth_and_age_count_only_keys_that_are_due_and_free(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("a", "t")
    queue.add("b", "t", 10)
    queue.add("c", "t", 100)
    clock.pass_by(15)
    assert (queue.depth(), queue.age_s()) == (2, 15.0)
    queue.take_due(1)
    assert (queue.depth(), queue.age_s()) == (1, 5.0)
    queue.take_due(1)
    assert (queue.depth(), queue.age_s()) == (0, 0.0)


def test_retries_double_up_to_the_limit_and_forget_starts_anew(clock: Clock) -> None:
    backoff = queues.Backoff(base_s=1, max_s=5)
    queue = queues.Queue(backoff, clock=clock, chance=lambda: 0.0)
    assert [queue.retry("a", ["t"]) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert queue.retry("b", ["t"]) == 1, "the backoff is the key's own"
    queue.forget("a")
    assert queue.retry("a", ["t"]) == 1


def test_a_thousand_failures_still_give_the_longest_wait(clock: Clock) -> None:
    queue = queues.Queue(clock=clock, chance=lambda: 0.0)
    assert [queue.retry("a", ["t"]) for _ in range(1000)][-1] == 1000.0


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_jitter_shortens_the_backoff_but_never_a_named_time(
    clock: Clock, chance: float
) -> None:
    backoff = queues.Backoff(base_s=10, max_s=100, jitter=0.2)
    queue = queues.Queue(backoff, clock=clock, chance=lambda: chance)
    assert 8 <= queue.retry("a", ["t"]) <= 10
    assert 30 <= queue.retry("a", ["t"], retry_after_s=30) <= 36


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_a_named_pause_is_bounded_by_the_backoff_and_by_five_minutes(
    clock: Clock, chance: float
) -> None:
    """Retry-After 0 causes no hot loop, one of a day no lost key."""
    backoff = queues.Backoff(base_s=10, max_s=100, jitter=0.2)
    queue = queues.Queue(backoff, clock=clock, chance=lambda: chance)
    waits = [queue.retry("a", ["t"], retry_after_s=0.0) for _ in range(4)]
    assert waits == [w * (1 - 0.2 * chance) for w in (10, 20, 40, 80)]
    assert queue.retry("b", ["t"], retry_after_s=86400) == 300.0
    assert queue.retry("c", ["t"], retry_after_s=float("inf")) == 300.0


def test_routine_waits_do_not_increase_the_backoff(clock: Clock) -> None:
    """They have a backoff of their own."""
    backoff = queues.Backoff(base_s=5, max_s=300)
    queue = queues.Queue(backoff, clock=clock, chance=lambda: 0.0)
    conflicts = [queue.retry("b", ["t"], is_routine=True) for _ in range(3)]
    assert conflicts == [5, 10, 20]
    assert queue.retry("b", ["t"]) == 5
    queue.forget("b")
    assert queue.retry("b", ["t"], is_routine=True) == 5


def test_a_retried_key_comes_back_with_its_topics_after_the_wait(clock: Clock) -> None:
    queue = queues.Queue(queues.Backoff(2, 8), clock=clock, chance=lambda: 0.0)
    queue.add("a", "x")
    (claim,) = queue.take_due(1)
    queue.retry(claim.key, claim.topics)
    queue.done("a")
    assert queue.take_due(1) == ()
    clock.pass_by(2)
    assert queue.take_due(1) == (claim,)


def test_a_change_during_a_backoff_is_not_held_up_by_it(queue: queues.Queue) -> None:
    queue.retry("a", ["t"], retry_after_s=300)
    queue.add("a", "t")
    assert keys(queue.take_due(1)) == ["a"]


def test_many_requeues_of_one_key_do_not_pile_up_in_memory(queue: queues.Queue) -> None:
    for number in range(10_000):
        queue.add("a", "t", 20_000 - number)
    assert len(queue._later) < 200


def test_take_waits_for_a_key_that_is_added_by_another_thread() -> None:
    queue = queues.Queue()
    threading.Timer(0.05, queue.add, ("a", "t")).start()
    assert keys(queue.take(1, 0, NEVER)) == ["a"]


def test_take_waits_for_a_delayed_key_and_no_longer() -> None:
    queue = queues.Queue()
    queue.add("a", "t", 0.05)
    began = time.monotonic()
    assert keys(queue.take(1, 0, NEVER)) == ["a"]
    assert 0.05 <= time.monotonic() - began < 5


def test_take_gathers_a_batch_for_the_window_only() -> None:
    queue = queues.Queue()
    queue.add("a", "t")
    queue.add("b", "t", 0.02)
    queue.add("c", "t", 5)
    assert keys(queue.take(10, 0.1, NEVER)) == ["a", "b"]


def test_a_full_batch_does_not_wait_for_the_window_to_close() -> None:
    queue = queues.Queue()
    for key in "abc":
        queue.add(key, "t")
    began = time.monotonic()
    assert keys(queue.take(2, 30, NEVER)) == ["a", "b"]
    assert time.monotonic() - began < 5


def test_without_batching_no_window_is_waited_for() -> None:
    queue = queues.Queue()
    queue.add("a", "t")
    began = time.monotonic()
    assert keys(queue.take(1, 30, NEVER)) == ["a"]
    assert time.monotonic() - began < 5


def test_take_gives_up_after_its_timeout() -> None:
    queue = queues.Queue()
    assert queue.take(1, 0, NEVER, timeout_s=0.01) == ()


def test_stop_and_shut_down_end_a_waiting_take() -> None:
    for end in ("stop", "shut_down"):
        queue, stop = queues.Queue(), threading.Event()
        taken: list[object] = []
        thread = threading.Thread(
            target=lambda q=queue, s=stop, t=taken: t.append(q.take(1, 0, s))
        )
        thread.start()
        stop.set() if end == "stop" else queue.shut_down()
        thread.join(5)
        assert taken == [()]


def test_nothing_is_given_out_once_stop_is_set_or_the_queue_is_shut(
    clock: Clock,
) -> None:
    stop = threading.Event()
    stop.set()
    queue = queues.Queue(clock=clock)
    queue.add("a", "t")
    assert queue.take(1, 0, stop) == ()
    queue.shut_down()
    queue.add("b", "t")
    assert queue.take(1, 0, NEVER) == ()
    assert queue.take_due(5) == ()


class Crowd:
    """Takers that note what they see, and whether two ever held one key."""

    def __init__(self) -> None:
        self.queue = queues.Queue()
        self.stop = threading.Event()
        self.shared: list[str] = []
        self.taken: collections.Counter[tuple[str, str]] = collections.Counter()
        self._lock = threading.Lock()
        self._working: set[str] = set()

    def feed(self, number: int, turns: int) -> None:
        for turn in range(turns):
            key = f"k{(number * 7 + turn * 5) % 6}"
            self.queue.add(key, f"{number}-{turn}", turn % 2 * 0.001)

    def work(self) -> None:
        while not self.stop.is_set():
            for claim in self.queue.take(3, 0.001, self.stop, timeout_s=0.05):
                self._hold(claim)

    def _hold(self, claim: queues.Claim) -> None:
        with self._lock:
            self.shared += [claim.key] if claim.key in self._working else []
            self._working.add(claim.key)
            self.taken.update((claim.key, topic) for topic in claim.topics)
        time.sleep(0)
        with self._lock:
            self._working.discard(claim.key)
        self.queue.done(claim.key)


def test_many_threads_lose_nothing_and_never_share_a_key(
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    """What eight adders add, four takers see, one taker per key at a time."""
    crowd = Crowd()
    takers = [threading.Thread(target=crowd.work) for _ in range(4)]
    adders = [threading.Thread(target=crowd.feed, args=(n, 150)) for n in range(8)]
    for thread in takers + adders:
        thread.start()
    try:
        eventually(lambda: len(crowd.taken) == 8 * 150)
    finally:
        crowd.stop.set()
        for thread in takers + adders:
            thread.join()
    assert crowd.shared == []
    assert set(crowd.taken.values()) == {1}, "a topic added once is delivered once"


KEYS = st.sampled_from("abc")
TOPICS = st.sampled_from("xyz")
DELAYS = st.sampled_from([0.0, 0.0, 1.0, 3.0, 10.0])


def test_what_is_added_now_does_not_wait_for_a_batch() -> None:
    queue = queues.Queue()
    queue.add("a", "x", 60)
    queue.add_now("a", ("x",))
    began = time.monotonic()
    assert keys(queue.take(100, 30.0, NEVER)) == ["a"]
    assert time.monotonic() - began < 10


def test_what_is_added_now_does_not_tear_the_batch_of_others(
    queue: queues.Queue, clock: Clock
) -> None:
    queue.add("b", "x")
    queue.add_now("a", ("x",))
    assert keys(queue.take(100, 0.3, NEVER)) == ["a"]
    queue.add_now("a", ("y",))
    clock.pass_by(0.3)
    queue.done("a")
    assert keys(queue.take(100, 0.3, NEVER)) == ["a", "b"]


class QueueMachine(stateful.RuleBasedStateMachine):
    """Any order of calls, beside a model that is nothing but dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = queues.Queue(clock=lambda: self.now, chance=lambda: 0.0)
        self.due: dict[tuple[str, str], float] = {}
        self.claimed: dict[str, frozenset[str]] = {}
        self.urgent: set[str] = set()

    def expect(self, key: str, topic: str, delay_s: float) -> None:
        due = self.now + delay_s
        self.due[key, topic] = min(due, self.due.get((key, topic), due))

    @stateful.rule(key=KEYS, topic=TOPICS, delay_s=DELAYS)
    def add(self, key: str, topic: str, delay_s: float) -> None:
        self.queue.add(key, topic, delay_s)
        self.expect(key, topic, delay_s)

    @stateful.rule(key=KEYS, topic=TOPICS)
    def add_now(self, key: str, topic: str) -> None:
        self.queue.add_now(key, (topic,))
        self.expect(key, topic, 0.0)
        self.urgent.add(key)

    @stateful.rule(batch_max=st.integers(1, 3))
    def take(self, batch_max: int) -> None:
        free = {k for (k, _), at in self.due.items() if at <= self.now} - set(
            self.claimed
        )
        claims = self.queue.take_due(batch_max)
        assert len(claims) == min(batch_max, len(free))
        for claim in claims:
            topics = {
                t
                for (k, t), at in self.due.items()
                if k == claim.key and at <= self.now
            }
            assert claim.key in free
            assert claim.topics == topics
            oldest = min(self.due.pop((claim.key, topic)) for topic in topics)
            free.remove(claim.key)
            self.claimed[claim.key] = claim.topics
            others = [at for (k, _), at in self.due.items() if k in free]
            is_first = oldest <= min(others, default=oldest)
            assert is_first or claim.key in self.urgent, "oldest first"
            self.urgent.discard(claim.key)

    @stateful.rule(key=KEYS)
    def done(self, key: str) -> None:
        if key in self.claimed:
            del self.claimed[key]
            self.queue.done(key)

    @stateful.rule(key=KEYS, named=st.sampled_from([None, 0.5, 7.0]))
    def fail(self, key: str, named: float | None) -> None:
        if key in self.claimed:
            topics = self.claimed.pop(key)
            waited = self.queue.retry(key, topics, named)
            for topic in topics:
                self.expect(key, topic, waited)
            self.queue.done(key)

    @stateful.rule(seconds=st.sampled_from([0.5, 1.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @stateful.invariant()
    def depth_is_right(self) -> None:
        ready = {k for (k, _), at in self.due.items() if at <= self.now}
        assert self.queue.depth() == len(ready - set(self.claimed))

    def teardown(self) -> None:
        """Nothing is lost: in the end all that was added is handed out."""
        self.now += 10_000
        for key in tuple(self.claimed):
            self.done(key)
        while claims := self.queue.take_due(2):
            for claim in claims:
                for topic in claim.topics:
                    del self.due[claim.key, topic]
                self.queue.done(claim.key)
        assert self.due == {}


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = hypothesis.settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
