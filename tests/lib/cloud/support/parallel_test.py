"""Calls of one read run side by side, and never more than a few."""

import threading

import pytest

from lib.cloud import errors
from lib.cloud.support import calls, parallel


def test_results_are_in_the_order_of_their_items_and_few_run_at_a_time() -> None:
    lock = threading.Lock()
    together = threading.Barrier(2)
    running: list[int] = []
    most: list[int] = []

    def call(item: int) -> int:
        with lock:
            running.append(item)
            most.append(len(running))
        if item < 2:
            together.wait(60)  # the first two run at the same time
        with lock:
            running.remove(item)
        return item * 2

    items = range(100)
    assert parallel.each(call, items, "test") == [item * 2 for item in items]
    assert 2 <= max(most) <= parallel.AT_ONCE


def test_one_item_takes_no_thread() -> None:
    def name(item: int) -> str:
        del item
        return threading.current_thread().name

    here = threading.current_thread().name
    assert parallel.each(name, [1], "test") == [here]
    assert parallel.each(name, [], "test") == []
    assert here not in parallel.each(name, [1, 2], "test")


def test_a_call_is_counted_by_how_it_ends() -> None:
    observed: list[tuple[str, str, float]] = []
    times = iter((1.0, 3.5, 4.0, 6.0, 7.0))

    def observe(operation: str, outcome: str, seconds: float) -> None:
        observed.append((operation, outcome, seconds))

    with calls.counted(observe, "list things", lambda: next(times)):
        pass
    with pytest.raises(errors.NotFound), calls.counted(
        observe, "get thing", lambda: next(times)
    ):
        raise errors.NotFound("gone", operation="get thing")
    with pytest.raises(ZeroDivisionError), calls.counted(
        observe, "bug", lambda: next(times)
    ):
        raise ZeroDivisionError
    assert observed == [("list things", "ok", 2.5), ("get thing", "NotFound", 2.0)]
