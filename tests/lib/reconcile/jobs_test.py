"""Jobs: slots, names, cancellation, an error."""

import threading

from lib.reconcile import jobs


def test_slots_names_and_ends() -> None:
    ended: list[str] = []
    last = threading.Event()

    def on_end(name: str) -> None:
        ended.append(name)
        if len(ended) == 2:
            last.set()

    pool = jobs.Jobs(2, on_end)
    go = threading.Event()

    def wait(cancel: threading.Event) -> None:
        del cancel
        go.wait(10)

    assert pool.start("a", wait)
    assert not pool.start("a", wait), "one job per name"
    assert pool.start("b", wait)
    assert not pool.start("c", wait), "no slot is free"
    assert (pool.free(), pool.running()) == (0, frozenset(("a", "b")))
    go.set()
    assert last.wait(10)
    assert sorted(ended) == ["a", "b"]
    assert (pool.free(), pool.running()) == (2, frozenset())


def test_a_stop_cancels_and_waits() -> None:
    pool = jobs.Jobs(1, lambda name: None)
    seen = threading.Event()

    def until_canceled(cancel: threading.Event) -> None:
        seen.set()
        cancel.wait(10)

    pool.start("a", until_canceled)
    assert seen.wait(10)
    assert pool.stop(10) == ()
    assert not pool.start("b", until_canceled), "nothing is started after a stop"


def test_an_error_frees_the_slot() -> None:
    ended = threading.Event()
    pool = jobs.Jobs(1, lambda name: ended.set())

    def fail(cancel: threading.Event) -> None:
        del cancel
        raise RuntimeError("a bug")

    pool.start("a", fail)
    assert ended.wait(10)
    assert pool.free() == 1
