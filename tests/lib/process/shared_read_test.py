"""Shared reads are fresh, single, and forget their errors."""

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from lib.process import shared_read

PATIENCE_S = 5.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclasses.dataclass
class Source:
    """A source whose reads block until `end`, and count how many run."""

    began: queue.Queue[int] = dataclasses.field(default_factory=queue.Queue)
    ends: queue.Queue[Exception | None] = dataclasses.field(default_factory=queue.Queue)
    count: int = 0
    running: int = 0
    most: int = 0

    def read(self) -> str:
        self.count += 1
        self.running += 1
        self.most = max(self.most, self.running)
        number = self.count
        self.began.put(number)
        try:
            if error := self.ends.get(timeout=PATIENCE_S):
                raise error
        finally:
            self.running -= 1
        return f"result {number}"


class Caller(threading.Thread):
    """Calls `get` and keeps what came of it."""

    def __init__(self, get: Callable[[float], str], not_before: float) -> None:
        super().__init__(daemon=True)
        self._get = get
        self._not_before = not_before
        self.value = ""
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self._get(self._not_before)
        except ValueError as error:
            self.error = error

    def result(self) -> str:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.value


@pytest.fixture()
def source() -> Iterator[Source]:
    source = Source()
    yield source
    assert source.most <= 1


def wait_until_blocked(shared: shared_read.SharedRead[str], count: int) -> None:
    """Wait until `count` callers wait for a run of another."""
    end = threading.Event()
    for _ in range(500):
        if shared.waiting == count:
            return
        end.wait(0.005)
    raise AssertionError("callers did not wait")


def test_a_result_is_served_again_as_long_as_it_began_late_enough() -> None:
    """A second caller with an older demand gets the kept result, a newer one reads."""
    clock, numbers = Clock(), iter(range(10))
    shared = shared_read.SharedRead(lambda: next(numbers), clock)
    assert shared.get(100.0) == 0
    assert shared.get(99.0) == 0
    clock.now = 101.0
    assert shared.get(100.0) == 0
    assert shared.get(100.5) == 1


def test_callers_that_can_use_the_running_read_share_it(source: Source) -> None:
    """Ten callers at the same time cost one read."""
    shared = shared_read.SharedRead(source.read, Clock())
    first = Caller(shared.get, 100.0)
    source.began.get(timeout=PATIENCE_S)
    others = [Caller(shared.get, 100.0) for _ in range(9)]
    wait_until_blocked(shared, 9)
    source.ends.put(None)
    assert {caller.result() for caller in [first, *others]} == {"result 1"}
    assert source.count == 1


def test_callers_that_come_too_late_share_the_next_read(source: Source) -> None:
    """A read that began before the demand is not served; all such share one more."""
    clock = Clock()
    shared = shared_read.SharedRead(source.read, clock)
    first = Caller(shared.get, 100.0)
    source.began.get(timeout=PATIENCE_S)
    clock.now = 105.0
    late = [Caller(shared.get, 105.0) for _ in range(5)]
    wait_until_blocked(shared, 5)
    clock.now = 106.0
    source.ends.put(None)
    assert first.result() == "result 1"
    source.began.get(timeout=PATIENCE_S)
    wait_until_blocked(shared, 4)
    source.ends.put(None)
    assert {caller.result() for caller in late} == {"result 2"}
    assert source.count == 2


def test_an_error_goes_to_all_who_waited_and_is_not_kept(source: Source) -> None:
    """The next caller reads again, even with an older demand."""
    shared = shared_read.SharedRead(source.read, Clock())
    callers = [Caller(shared.get, 100.0)]
    source.began.get(timeout=PATIENCE_S)
    callers.append(Caller(shared.get, 100.0))
    wait_until_blocked(shared, 1)
    source.ends.put(ValueError("down"))
    for caller in callers:
        caller.result()
        assert str(caller.error) == "down"
    source.ends.put(None)
    assert shared.get(0.0) == "result 2"


def test_an_error_does_not_reach_those_who_needed_a_later_read(source: Source) -> None:
    """Who could not use the failed read gets the next one."""
    clock = Clock()
    shared = shared_read.SharedRead(source.read, clock)
    first = Caller(shared.get, 100.0)
    source.began.get(timeout=PATIENCE_S)
    clock.now = 105.0
    late = Caller(shared.get, 105.0)
    wait_until_blocked(shared, 1)
    source.ends.put(ValueError("down"))
    source.ends.put(None)
    assert late.result() == "result 2"
    first.result()
    assert first.error is not None


def test_an_error_leaves_the_last_good_result_for_older_demands(source: Source) -> None:
    """What was read before is still true for those who accept its age."""
    clock = Clock()
    shared = shared_read.SharedRead(source.read, clock)
    source.ends.put(None)
    assert shared.get(100.0) == "result 1"
    clock.now = 110.0
    source.ends.put(ValueError("down"))
    with pytest.raises(ValueError, match="down"):
        shared.get(110.0)
    assert shared.get(100.0) == "result 1"
